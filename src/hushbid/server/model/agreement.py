"""What a person agrees to, word by word, and the version by which an agreement names it.

The document is what the campaign states about itself and, on the pages, every sentence that she was shown in her
language::

    format, version      "hushbid-consent", 2
    campaign, language   whose, and of the pages or of the program
    stated               the settings that concern her, doubles as texts; the analyst's own text in that language
    told                 every other word of the page, passage by passage: a heading, texts that may stand beside a
                         term, and the shape in which the page shows them

Its version is the SHA-256 of its canonical form (docs/reference/receipts.md). Whoever has the document can compute it;
the server keeps every document that somebody agreed to, as long as it keeps the campaign.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hushbid.campaign.spec import LANGUAGES
from hushbid.common.documents import content_hash, time_text
from hushbid.errors import InputError
from hushbid.receipts.receipt import in_texts
from hushbid.server.model.settings import CampaignSettings

FORMAT, VERSION = "hushbid-consent", 2
_AS_THEY_ARE = (
    *("title", "question", "description", "unit", "setting", "currency", "decimals", "participation_fee"),
    *("fee_after_withdrawal", "limits", "retention_days", "public_estimate", "single_visit", "observer", "statement"),
    *("payout", "payout_days", "strata"),
)


Shape = Literal["facts", "sees", "steps", "list", "questions", "plain", "contrast", "act"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One part of what a page tells her."""

    shape: Shape = "plain"
    """How the page shows it."""

    heading: str
    """Above it; may be empty."""

    texts: tuple[tuple[str, str], ...]
    """In order: a term, or nothing, and what is said about it."""

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the document."""
        texts = [{"term": term, "text": text} for term, text in self.texts]
        return {"shape": self.shape, "heading": self.heading, "texts": texts}


def document_of(
    campaign: str, settings: CampaignSettings, *, stratum: str | None, language: str, told: Sequence[Passage] = ()
) -> dict[str, Any]:
    """What somebody in that stratum is asked to agree to; nothing is told to a program, which reads what is stated."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "campaign": campaign,
        "language": checked_language(language),
        "stated": stated_of(settings, stratum=stratum, language=language),
        "told": [passage.to_dict() for passage in told],
    }


def version_of(document: dict[str, Any]) -> str:
    """By which an agreement names what was agreed to.

    >>> version_of({"told": []}) == version_of({"told": []}) != version_of({"told": [1]})
    True
    """
    return content_hash(document)


def stated_of(settings: CampaignSettings, *, stratum: str | None, language: str) -> dict[str, Any]:
    """The settings that concern a participant, as plain values without floating-point numbers."""
    own = settings.server.consent.text_in(language)
    text, written_in = ("", language) if own is None else own
    consent = {**settings.server.consent.model_dump(exclude_defaults=True), "text": text, "text_language": written_in}
    consent.pop("texts", None)
    stated: dict[str, Any] = {name: getattr(settings.shown, name) for name in _AS_THEY_ARE}
    stated |= {
        "largest_loss": settings.largest_loss,
        "questions": list(settings.shown.questions),
        "bounds": None if settings.market.bounds is None else list(settings.market.bounds),
        "stratum": stratum,
        "bid_by": None if settings.server.bid_by is None else time_text(settings.server.bid_by),
        "deliver_by": None if settings.server.deliver_by is None else time_text(settings.server.deliver_by),
        "consent": consent,
    }
    plain: dict[str, Any] = in_texts(stated)
    return plain


def checked_language(language: object) -> str:
    """A language of the pages."""
    if language not in LANGUAGES:
        raise InputError(
            f"language must be one of {', '.join(LANGUAGES)}, got {str(language)[:20]!r}.", field="language"
        )
    return str(language)
