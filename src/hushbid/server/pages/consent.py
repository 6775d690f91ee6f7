"""What the consent page says, passage by passage: the very words whose hash is the version that she agrees to.

The page shows these passages and nothing else but what the campaign states itself (title, questions, the analyst's own
texts); the pictures show the numbers that stand beside them. Each sentence follows from settings: which of them is said
when is decided here, and tests/server/pages/test_consent.py names for each the test of what it promises.

The risk is told as a contrast, with and without taking part, after Nanayakkara, Smart, Cummings, Kaptchuk and Redmiles
(USENIX Security 2023): a named observer, a question with a yes or a no, and a starting guess of 50 out of 100, from
which nobody gets beyond e^ε/(1 + e^ε) through what she gives, since odds change by e^ε at most.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from hushbid.server.domain.agreement import Passage
from hushbid.server.domain.views import MenuView, ParticipationView
from hushbid.server.pages import pictures
from hushbid.server.pages.numbers import Writing
from hushbid.server.pages.texts import Texts
from hushbid.server.service import Service

_Line = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What somebody could find out about her, with and without what she gives."""

    imagine: str
    statement: str
    start: str
    without: _Line
    taking_part: _Line
    notes: tuple[str, ...]
    dots: tuple[Markup, Markup]

    @property
    def lines(self) -> tuple[_Line, ...]:
        """All its words, in the order of the page."""
        bare = tuple(("", one) for one in (self.imagine, self.statement, self.start))
        return (*bare, self.without, self.taking_part, *(("", note) for note in self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The consent page's own words."""

    short: Passage
    asks: Passage
    risk: Passage
    contrast: Contrast
    sees: Passage
    how: Passage
    kept: Passage
    rights: Passage
    stated: Mapping[str, Any]
    """What the campaign states itself."""

    version: str = ""
    """Of all of it."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Everything that she agrees to, in the order of the page; what has no text is not there."""
        every = (self.short, self.asks, self.how, self.risk, self.sees, self.kept, self.rights)
        return tuple(one for one in every if one.texts)


def told(t: Texts, view: ParticipationView, stated: Mapping[str, Any], menu: MenuView) -> Told:
    """What the page says in a language to somebody with that view and menu; ``stated`` is what the campaign states."""
    w, key = Writing(t), _key_told(t, view.retention_days)
    contrast = contrast_of(t, stated, view.max_privacy_loss, several=len(view.questions) > 1)
    return Told(
        short=Passage(heading=t("told.short"), texts=_short(t, w, view, stated, menu)),
        asks=Passage(heading=t("told.asks"), texts=_asks(t, stated["consent"])),
        how=Passage(heading=t("told.how"), texts=_how(t, view)),
        risk=Passage(heading=t("risk.heading"), texts=contrast.lines),
        contrast=contrast,
        sees=Passage(heading=t("sees.heading"), texts=_sees(t, view, stated, key)),
        kept=Passage(heading=t("kept.heading"), texts=_kept(t, view, stated, key)),
        rights=Passage(heading=t("consent.rights"), texts=tuple(("", one) for one in _rights(t, view))),
        stated=stated,
    )


def told_by(service: Service, secret: str, t: Texts, view: ParticipationView) -> Told:
    """What the page says to whoever holds a secret, with its version."""
    stated = service.consent(secret, language=t.language).document["stated"]
    found = told(t, view, stated, service.menu(secret))
    return replace(found, version=service.consent(secret, language=t.language, told=found.passages).version)


def contrast_of(t: Texts, stated: Mapping[str, Any], loss: float, *, several: bool, brief: bool = False) -> Contrast:
    """The contrast for a privacy loss; ``brief`` where she has read the notes before."""
    w = Writing(t)
    most = w.out_of_100(loss)
    notes = [t("risk.limit"), *([t("risk.all")] if several else [])]
    if not brief:
        notes += [t("risk.others"), t("risk.factor", factor=w.at_most(math.exp(loss), 2))]
    return Contrast(
        imagine=t("risk.imagine", observer=stated["observer"] or t("risk.observer")),
        statement=stated["statement"] or t("risk.statement"),
        start=t("risk.start"),
        without=(t("risk.without"), t("risk.without_text")),
        taking_part=(t("risk.with"), t("risk.with_text", most=most)),
        notes=tuple(notes),
        dots=(pictures.dots(t, w, 0.0, name="without"), pictures.dots(t, w, loss, name="with")),
    )


def _short(
    t: Texts, w: Writing, view: ParticipationView, stated: Mapping[str, Any], menu: MenuView
) -> tuple[_Line, ...]:
    """What somebody in a hurry wants to know: what, how much, how often, how paid, until when."""
    once, many = stated["one_visit"], len(view.questions)
    give = t("told.give_once" if once else "told.give_later")
    asked = t("told.one_question") if many < 2 else t("told.questions", number=many)
    earn = [t("told.earn_text", high=w.amount(max(menu.payment), view.currency, view.decimals))]
    if view.participation_fee:
        earn.append(t("consent.fee", fee=w.money(view.participation_fee, view.currency, view.decimals)))
    come = [t("told.come_once" if once else "told.come_twice")]
    if not once and view.deliver_by is not None:
        come.append(t("told.come_by", time=w.moment(view.deliver_by)))
    if not once and view.setting == "local":
        come.append(t("told.come_same"))
    paid = [t("told.paid_text"), t(f"told.payout_{stated['payout']}")]
    lines = [
        (t("told.give"), f"{give} {asked}"),
        (t("told.earn"), " ".join(earn)),
        (t("told.come"), " ".join(come)),
        (t("told.paid"), " ".join(paid)),
    ]
    if view.report_by is not None:
        lines.append((t("told.until"), t("consent.until", time=w.moment(view.report_by))))
    return tuple(lines)


def _asks(t: Texts, consent: Mapping[str, str]) -> tuple[_Line, ...]:
    """What the analyst states, where she states it."""
    terms = {"controller": "told.controller", "purpose": "told.purpose", "contact": "told.contact"}
    return tuple((t(term), consent[name]) for name, term in terms.items() if consent.get(name))


def _how(t: Texts, view: ParticipationView) -> tuple[_Line, ...]:
    lines = [t(name) for name in ("told.how_price", "told.how_decide", f"told.how_{view.setting}", "told.how_paid")]
    if view.one_visit:
        lines[0] = t("visit.how_both")
        lines[2] = t("visit.how_opened")
        if view.deliver_by is not None:
            lines[2] = f"{lines[2]} {t('visit.deadline', time=Writing(t).moment(view.deliver_by))}"
    return tuple(("", line) for line in lines)


def _sees(t: Texts, view: ParticipationView, stated: Mapping[str, Any], key: str) -> tuple[_Line, ...]:
    where = view.setting
    return (
        (t("sees.buyer"), t(f"sees.buyer_{where}")),
        (t("sees.server"), t(f"sees.server_{'once' if view.one_visit else where}", key=key)),
        (t("sees.hacker"), t(f"sees.hacker_{where}")),
        (t("sees.court"), t(f"sees.court_{where}")),
        (t("sees.price"), t("sees.price_text")),
        (t("sees.world"), t("sees.world_public" if stated["public_estimate"] else "sees.world_invited")),
    )


def _kept(t: Texts, view: ParticipationView, stated: Mapping[str, Any], key: str) -> tuple[_Line, ...]:
    """What this server keeps how long, and what the analyst says of the rest."""
    answer = [t("kept.answer_text", key=key)]
    if stated["one_visit"]:
        answer.append(t("kept.answer_unbought"))
    lines = [
        (t(f"kept.answer_{view.setting}"), " ".join(answer)),
        (t("kept.price"), t("kept.price_text")),
        (t("kept.agreement"), t("kept.agreement_text")),
    ]
    if stated["payout"] != "none":
        lines.append((t("kept.payout"), t("kept.payout_text", days=stated["payout_days"])))
    if stated["consent"].get("storage"):
        lines.append((t("kept.storage"), stated["consent"]["storage"]))
    return tuple(lines)


def _rights(t: Texts, view: ParticipationView) -> list[str]:
    withdraw = t("consent.right_withdraw")
    if view.participation_fee:
        withdraw = f"{withdraw} {t('consent.fee_kept' if view.fee_after_withdrawal else 'consent.fee_lost')}"
    needs = [t("consent.needs_script")] if view.setting == "local" else []
    export = t("consent.right_export" if view.payout == "none" else "consent.right_export_payout")
    return [t("consent.right_decline"), withdraw, export, *needs]


def _key_told(t: Texts, days: int) -> str:
    """When the key to people's values is destroyed."""
    name = {0: "consent.key_at_once", 1: "consent.key_next_day"}.get(days, "consent.key_later")
    return t(name, days=days)
