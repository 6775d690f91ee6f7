"""What the consent page says, passage by passage: the very words whose hash is the version that she agrees to.

The page shows the document that is stored when she agrees (`hushbid.server.model.agreement`) and nothing beside it:
the template gets no other texts. Each sentence follows from settings: which of them is said when is decided here, and
tests/server/pages/test_consent.py names for each the test of what it promises.

The risk is told as a contrast, with and without taking part, after Nanayakkara, Smart, Cummings, Kaptchuk and Redmiles
(USENIX Security 2023): a named observer, a question with a yes or a no, and a starting guess of 50 out of 100, from
which nobody gets beyond e^ε/(1 + e^ε) through what she gives, since odds change by e^ε at most.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from hushbid.server.model.agreement import Passage
from hushbid.server.model.views import MenuView, ParticipationView
from hushbid.server.pages.wording import Texts, Writing, languages
from hushbid.server.service import Service

_Line = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The consent page's own words, and the document that holds them."""

    passages: tuple[Passage, ...]
    document: Mapping[str, Any]
    version: str


def passages(t: Texts, view: ParticipationView, stated: Mapping[str, Any], menu: MenuView) -> tuple[Passage, ...]:
    """Everything that the page says in a language to somebody with that view and menu, in its order.

    ``stated`` is what the campaign states itself. What has no text is not there.
    """
    w, key = Writing(t), _key_told(t, view.retention_days)
    risk = contrast_of(t, stated, view.max_privacy_loss, several=len(view.questions) > 1)
    every = (
        Passage(shape="facts", heading=t.coded("told.short"), texts=_short(t, w, view, stated, menu)),
        Passage(shape="facts", heading=t.coded("told.asks"), texts=_asks(t, stated["consent"])),
        *_asked(t, w, view),
        Passage(shape="steps", heading=t.coded("told.how"), texts=_how(t, view)),
        risk,
        Passage(shape="sees", heading=t.coded("sees.heading"), texts=_sees(t, view, stated, key)),
        Passage(shape="facts", heading=t.coded("kept.heading"), texts=_kept(t, view, stated, key)),
        Passage(shape="list", heading=t.coded("consent.rights"), texts=tuple(("", one) for one in _rights(t, view))),
        Passage(shape="act", heading="", texts=(("", t.coded("consent.agree")),)),
    )
    return tuple(one for one in every if one.texts)


def told_by(service: Service, secret: str, t: Texts, view: ParticipationView) -> Told:
    """What the page says to whoever holds a secret, as the document that she agrees to, with its version."""
    stated = service.consent(secret, language=t.language).document["stated"]
    said = passages(t, view, stated, service.menu(secret))
    found = service.consent(secret, language=t.language, told=said)
    return Told(passages=said, document=found.document, version=found.version)


def article(document: Mapping[str, Any], *moments: datetime | None) -> dict[str, Any]:
    """All that the template of a document needs: its words, with these moments also as markup, and how many of a
    hundred dots its picture fills."""
    write = Writing(languages()[document["language"]])
    most = write.chances(float(document["stated"]["largest_loss"]))
    return {"document": document, "shown": partial(write.timed, moments=moments), "most": most}


def contrast_of(t: Texts, stated: Mapping[str, Any], loss: float, *, several: bool, brief: bool = False) -> Passage:
    """The contrast for a privacy loss; ``brief`` where she has read the notes before.

    An observer, what they ask, where they start; without and with taking part, each with the words of its picture;
    then notes.
    """
    w = Writing(t)
    notes = [t.coded("risk.limit"), *([t.coded("risk.all")] if several else [])]
    if not brief:
        notes += [t.coded("risk.others"), t.coded("risk.factor", factor=w.at_most(math.exp(loss), 2))]
    texts = (
        ("", t.coded("risk.imagine", observer=stated["observer"] or t.coded("risk.observer"))),
        ("", stated["statement"] or t.coded("risk.statement")),
        ("", t.coded("risk.start")),
        (t.coded("risk.without"), t.coded("risk.without_text")),
        (t.coded("risk.picture", number=w.out_of_100(0.0)), t.coded("risk.picture_text")),
        (t.coded("risk.with"), t.coded("risk.with_text", most=w.out_of_100(loss))),
        (t.coded("risk.picture", number=w.out_of_100(loss)), t.coded("risk.picture_text")),
        *(("", note) for note in notes),
    )
    return Passage(shape="contrast", heading=t.coded("risk.heading"), texts=texts)


def _asked(t: Texts, w: Writing, view: ParticipationView) -> tuple[Passage, ...]:
    """The questions of a survey, and the stratum that she was put into."""
    questions = [(str(one["name"]), _kind_of(t, w, one)) for one in view.questions]
    if questions:
        questions.append(("", t.coded("asked.all")))
    group = []
    if view.strata:
        weights = [(name, weight) for part in view.strata.values() for name, weight in part.items()]
        combined = "; ".join(f"{name}: {w.number(weight, 9)}" for name, weight in weights)
        group = [("", t.coded("strata.hers", stratum=view.stratum, weights=combined))]
    return (
        Passage(shape="questions", heading=t.coded("asked.heading"), texts=tuple(questions)),
        Passage(shape="plain", heading="", texts=tuple(group)),
    )


def _kind_of(t: Texts, w: Writing, question: Mapping[str, Any]) -> str:
    """Which answers a question takes."""
    if question["kind"] == "yes_no":
        return t.coded("asked.yes_no")
    if question["kind"] == "choice":
        return t.coded("asked.choice", answers=", ".join(question["answers"]))
    low, high = (w.number(end, 12) for end in question["bounds"])
    unit = f" ({question['unit']})" if question["unit"] else ""
    return f"{t.coded('offer.range', low=low, high=high)}{unit}"


def _short(
    t: Texts, w: Writing, view: ParticipationView, stated: Mapping[str, Any], menu: MenuView
) -> tuple[_Line, ...]:
    """What somebody in a hurry wants to know: what, how much, how often, how paid, until when."""
    once, many = stated["single_visit"], len(view.questions)
    give = t.coded("told.give_once" if once else "told.give_later")
    asked = t.coded("told.one_question") if many < 2 else t.coded("told.questions", number=many)
    earn = [t.coded("told.earn_text", high=w.amount(max(menu.payment), view.currency, view.decimals))]
    if view.participation_fee:
        earn.append(t.coded("consent.fee", fee=w.money(view.participation_fee, view.currency, view.decimals)))
    come = [t.coded("told.come_once" if once else "told.come_twice")]
    if not once and view.deliver_by is not None:
        come.append(t.coded("told.come_by", time=w.moment(view.deliver_by)))
    if not once and view.setting == "local":
        come.append(t.coded("told.come_same"))
    paid = [t.coded("told.paid_text"), t.coded(f"told.payout_{stated['payout']}")]
    lines = [
        (t.coded("told.give"), f"{give} {asked}"),
        (t.coded("told.earn"), " ".join(earn)),
        (t.coded("told.come"), " ".join(come)),
        (t.coded("told.paid"), " ".join(paid)),
    ]
    if view.bid_by is not None:
        lines.append((t.coded("told.until"), t.coded("consent.until", time=w.moment(view.bid_by))))
    return tuple(lines)


def _asks(t: Texts, consent: Mapping[str, str]) -> tuple[_Line, ...]:
    """What the analyst states, where she states it."""
    terms = {"controller": "told.controller", "purpose": "told.purpose", "contact": "told.contact"}
    return tuple((t.coded(term), consent[name]) for name, term in terms.items() if consent.get(name))


def _how(t: Texts, view: ParticipationView) -> tuple[_Line, ...]:
    lines = [
        t.coded(name) for name in ("told.how_price", "told.how_decide", f"told.how_{view.setting}", "told.how_paid")
    ]
    if view.single_visit:
        lines[0] = t.coded("visit.how_both")
        lines[2] = t.coded("visit.how_opened")
        if view.deliver_by is not None:
            lines[2] = f"{lines[2]} {t.coded('visit.deadline', time=Writing(t).moment(view.deliver_by))}"
    return tuple(("", line) for line in lines)


def _sees(t: Texts, view: ParticipationView, stated: Mapping[str, Any], key: str) -> tuple[_Line, ...]:
    where = view.setting
    return (
        (t.coded("sees.buyer"), t.coded(f"sees.buyer_{where}")),
        (t.coded("sees.server"), t.coded(f"sees.server_{'once' if view.single_visit else where}", key=key)),
        (t.coded("sees.hacker"), t.coded(f"sees.hacker_{where}")),
        (t.coded("sees.court"), t.coded(f"sees.court_{where}")),
        (t.coded("sees.price"), t.coded("sees.price_text")),
        (t.coded("sees.world"), t.coded("sees.world_public" if stated["public_estimate"] else "sees.world_invited")),
    )


def _kept(t: Texts, view: ParticipationView, stated: Mapping[str, Any], key: str) -> tuple[_Line, ...]:
    """What this server keeps how long, and what the analyst says of the rest."""
    answer = [t.coded("kept.answer_text", key=key)]
    if stated["single_visit"]:
        answer.append(t.coded("kept.answer_unbought"))
    lines = [
        (t.coded(f"kept.answer_{view.setting}"), " ".join(answer)),
        (t.coded("kept.price"), t.coded("kept.price_text")),
        (t.coded("kept.agreement"), t.coded("kept.agreement_text")),
    ]
    if stated["payout"] != "none":
        days = int(stated["payout_days"])
        lines.append((t.coded("kept.payout"), t.coded("kept.payout_text", days, days=days)))
    if stated["consent"].get("storage"):
        lines.append((t.coded("kept.storage"), stated["consent"]["storage"]))
    return tuple(lines)


def _rights(t: Texts, view: ParticipationView) -> list[str]:
    withdraw = t.coded("consent.right_withdraw")
    if view.participation_fee:
        withdraw = f"{withdraw} {t.coded('consent.fee_kept' if view.fee_after_withdrawal else 'consent.fee_lost')}"
    needs = [t.coded("consent.needs_script")] if view.setting == "local" else []
    export = t.coded("consent.right_export" if view.payout == "none" else "consent.right_export_payout")
    return [t.coded("consent.right_decline"), withdraw, export, *needs]


def _key_told(t: Texts, days: int) -> str:
    """When the key to people's values is destroyed."""
    name = {0: "consent.key_at_once", 1: "consent.key_next_day"}.get(days, "consent.key_later")
    return t.coded(name, days=days)
