"""Agreeing: an act of hers that is stored with its time, and with the version and language of what she was shown.

She may agree as long as bids are taken. Of several agreements the last counts, as with bids: whoever reads on in
another language and agrees there has agreed to that text. Each one is in the log; the last is on her receipt, in her
personal export, and in the analyst's. Agreeing to the same again changes nothing. An agreement stays when she declines
or withdraws: it says what she was shown, and nothing of what she gave.

The pages take no price without an agreement. A program needs one where the analyst states a consent of her own
(`hushbid.server.model.settings.Consent`); where she states none, there is nothing
beside the interface's own documentation.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from sqlalchemy import Connection

from hushbid.errors import Conflict
from hushbid.server.model import rules
from hushbid.server.model.agreement import Passage, checked_language, document_of, version_of
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.views import ConsentView, ParticipationView, Principal
from hushbid.server.service.bodies import described
from hushbid.server.service.participation import acting
from hushbid.server.service.use_case import Route, changes, reads
from hushbid.server.service.views_of import agreement_view, participation_view
from hushbid.server.store import campaigns, events, participants
from hushbid.server.store.database import Transaction

_OTHER = "version must be that of what this campaign states in that language now: read it again, and agree to that."


@changes("agree", Route("PUT /participation/agreement", "Agree", by="secret"))
def agree(
    tx: Transaction,
    secret: str,
    *,
    version: Annotated[
        str,
        described("The version of what was read, as `GET /participation/consent` has it.", pattern=r"^[0-9a-f]{64}$"),
    ],
    language: Annotated[Literal["en", "de"], described("In which language it was read.")] = "en",
    told: Sequence[Passage] = (),
) -> ParticipationView:
    """Agree to the document of that version; refused if it is not the one that is stated now.

    Needed before a bid where `must_agree` is true. The last agreement counts; the same one again changes nothing.
    """
    campaign, participant = acting(tx, secret)
    rules.require_bids_taken(campaign, tx.now)
    rules.require_may_answer(participant)
    document = _document(campaign, participant, language, told)
    if version != version_of(document):
        raise Conflict(_OTHER)
    if (participant.agreed_version, participant.agreed_language) == (version, language):
        return participation_view(campaign, participant)
    participants.keep_consent(tx.connection, campaign.id, version, document)
    body = {"participant": participant.id, "agreement": version, "language": language}
    head = events.append(tx, campaign.id, "agreed", body)
    changed = replace(participant, agreed_at=head.at, agreed_version=version, agreed_language=language)
    names = ("agreed_at", "agreed_version", "agreed_language")
    participants.change(tx.connection, participant.id, **{name: getattr(changed, name) for name in names})
    return participation_view(campaign, changed)


@reads(Route("GET /participation/consent", "What am I asked to agree to?", by="secret", query=("language",)))
def read_consent(
    connection: Connection, secret: str, *, language: str = "en", told: Sequence[Passage] = ()
) -> ConsentView:
    """Return what the campaign states, with the analyst's own text in that language, as a document with its version,
    and what was agreed to before."""
    participant = participants.by_secret(connection, secret)
    return consent_view(campaigns.get(connection, participant.campaign_id), participant, language=language, told=told)


def consent_view(
    campaign: Campaign, participant: Participant, *, language: str, told: Sequence[Passage] = ()
) -> ConsentView:
    """What somebody is asked to agree to in a language."""
    document = _document(campaign, participant, checked_language(language), told)
    return ConsentView(
        document=document,
        version=version_of(document),
        required=rules.must_agree(campaign),
        agreement=agreement_view(participant),
    )


@reads()
def read_agreed(connection: Connection, secret: str) -> dict[str, Any] | None:
    """The document that a participant agreed to last; None if she has agreed to nothing."""
    participant = participants.by_secret(connection, secret)
    return participants.consent(connection, participant.campaign_id, participant.agreed_version)


@reads(by="staff")
def agreements(connection: Connection, who: Principal, campaign_id: str) -> dict[str, Any]:
    """Who agreed to what when, in the order of invitation, and every document; auditors see no labels."""
    campaigns.get(connection, campaign_id)
    everybody = participants.in_order(connection, campaign_id)
    return {
        "format": "hushbid-agreements",
        "version": 1,
        "campaign": campaign_id,
        "agreements": [
            {
                "id": one.id,
                **({"label": one.label} if who.role == "analyst" else {}),
                "at": one.agreed_at,
                "version": one.agreed_version,
                "language": one.agreed_language,
            }
            for one in everybody
            if one.agreed_at is not None
        ],
        "documents": participants.consents_of(connection, campaign_id),
    }


def _document(campaign: Campaign, participant: Participant, language: str, told: Sequence[Passage]) -> dict[str, Any]:
    return document_of(campaign.id, campaign.settings, stratum=participant.stratum, language=language, told=told)
