"""The pages of campaigns in many states, as analysts, auditors, participants and strangers see them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher

from hushbid.priors import LogNormal, Uniform
from hushbid.questions import Choice, Number, YesNo
from hushbid.server.service import accounts
from tests.server.http.support import Live, live
from tests.server.pages.support import Visitor
from tests.server.support import PASSWORD, Installation, Play, decided, drafted, opened

NOISY = "noisy "
"""Before the name of a page on which numbers are drawn by chance."""

_SURVEY = (
    Number(name="How many hours?", bounds=(0, 14), unit="hours"),
    YesNo(name="Did you take anything?"),
    Choice(name="How rested?", answers=("rested", "so-so", "tired")),
)
_CONSENT = {
    "controller": "Institute",
    "contact": "privacy@example.org",
    "purpose": "A study.",
    "storage": "Ten years.",
    "texts": {"en": "We ask nurses.", "de": "Wir fragen Pflegekräfte."},
}
_LATER = {"bid_by": datetime(2026, 12, 1, 18, tzinfo=UTC), "deliver_by": datetime(2026, 12, 15, 18, tzinfo=UTC)}
_STAFF = ("", "/people", "/payments", "/audit", "/log", "/participants", "/copy", "/edit", "/report")
_STEPS = ("open", "close", "release", "cancel", "pay", "unpay", "undelivered")
_MINE = (
    *("", "/choice", "/answers", "/agreement", "/decline", "/withdraw", "/device", "/others", "/leave"),
    *("/given-up", "/payout"),
)


def server_pages(folder: Path, languages: Sequence[str], *, rows_that_type: int = 9) -> dict[str, str]:
    """Every page in each of these languages, by its name; only the first people type into all forms.

    If that is one, only one of those who stand alike looks at all pages.
    """
    found: dict[str, str] = {}
    accounts._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with Installation(folder / "home", None).start() as service, live(service) as site:
        plays = _plays(site)
        found |= dict(_strangers(site, plays, languages=languages))
        for name, play in plays.items():
            found |= dict(_staff(site, name, play, "ann", languages=languages))
            found |= dict(_participants(site, name, play, languages, rows_that_type))
        found |= dict(_staff(site, "released", plays["released"], "otto", languages=languages))
        found |= dict(_forms(site, plays, languages=languages))
    return found


def _plays(site: Live) -> dict[str, Play]:
    service = site.service
    people = ["a@example.org", "b@example.org", "c@example.org", "d@example.org"]
    released = decided(service, people, public_estimate=True, payout="email", participation_fee=2.5, retention_days=9)
    released.deliver([0, 1, 2])
    service.state_payout(released.token(0), "a@example.org")
    released.release()
    service.mark_paid(released.who, released.id, ["b@example.org"])
    asked: dict[str, Any] = {"questions": _SURVEY, "bounds": None, "consent": _CONSENT, "question": "How do you sleep?"}
    plays = {
        "draft": drafted(service, 3),
        "full draft": drafted(service, 5, **asked, **_LATER, participation_fee=1, budget=100, limits=True),
        "bidding": opened(service, 4, participation_fee=1, description="For the council.\nNobody else.", limits=True),
        "survey": opened(service, 5, **asked, **_LATER, observer="your employer", statement="Less than 6 hours?"),
        "local": opened(service, 4, setting="local", unit="hours", payout="iban", prior=LogNormal(0.0, 0.6)),
        "single": opened(service, 4, single_visit=True, payout="panel", prior=Uniform(1, 4), fee_after_withdrawal=True),
        "strata": opened(service, [("a", None, "x"), ("b", None, "y"), ("c", None, "x")], **_strata()),
        "offers": decided(service, 4, payout="iban", **_LATER),
        "local offers": decided(service, 4, setting="local", unit="hours"),
        "survey offers": decided(service, 4, **{**asked, "consent": {}}),
        "released": released,
    }
    service.bid(plays["bidding"].token(1), 1.5)
    service.decline(plays["bidding"].token(2))
    plays["offers"].deliver([1, 2])
    service.withdraw(plays["offers"].token(2))
    for name in ("nothing", "undelivered", "cancelled"):
        plays[name] = _ended(service, name)
    return plays


def _strata() -> dict[str, Any]:
    return {"strata": {"shares": {"x": 0.5, "y": 0.5}}}


def _ended(service: Any, how: str) -> Play:
    play = decided(service, 3) if how == "undelivered" else opened(service, 3)
    if how == "undelivered":
        play.release(accept_nobody=True)
        return play
    play.bid([0])
    if how == "nothing":
        play.decide()
    else:
        service.cancel(play.who, play.id, "It rained.")
    return play


def _each(visitor: Visitor, path: str, name: str, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    for language in languages:
        answer = visitor.client.get(f"{path}?lang={language}")
        place = answer.headers.get("location", "")
        yield f"{name}/{language}", f"<!-- {answer.status_code} {place} -->{answer.text}"


def _strangers(site: Live, plays: dict[str, Play], languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    with Visitor(site.url) as visitor:
        for path in ("/", "/p/other", "/p", "/p/left", "/login", "/nothing-here", "/campaigns"):
            yield from _each(visitor, path, f"stranger {path}", languages)
        for name, play in plays.items():
            yield from _each(visitor, f"/c/{play.id}", f"{_noise(name)}public {name}", languages)
        for language in languages:
            visitor.get(f"/login?lang={language}")
            for link in ("", "nonsense", "hb_p_unknown", plays["draft"].link(0)):
                answer = visitor.send("/p/enter", "/p/other", link=link)
                yield f"stranger enters {link[:12]}/{language}", answer.text
            yield f"wrong password/{language}", visitor.send("/login", "/login", name="ann", password="x").text
            yield f"forged/{language}", visitor.client.post("/login", data={"name": "ann"}).text


def _staff(site: Live, name: str, play: Play, who: str, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    with Visitor(site.url) as visitor:
        visitor.log_in(who, PASSWORD)
        for path in ("/campaigns", "/privacy-account", "/campaigns/new") if name == "released" else ():
            yield from _each(visitor, path, f"{NOISY}{who} {path}", languages)
        base = f"/campaigns/{play.id}"
        steps = [f"/steps/{step}" for step in _STEPS]
        person = play.links[0].id
        more = [
            f"/people/{person}/link",
            f"/people/{person}/remove",
            "/as-participant/consent",
            "/as-participant/choice",
        ]
        for part in (*_STAFF, *steps, *more):
            yield from _each(
                visitor, base + part, f"{_noise(name)}{who} {name} {part.replace(person, 'person')}", languages
            )


def _participants(
    site: Live, name: str, play: Play, languages: Sequence[str], rows_that_type: int
) -> Iterator[tuple[str, str]]:
    stands = [site.service.participation(play.token(row)).state for row in range(len(play.links))]
    for row in range(len(play.links)):
        if rows_that_type == 1 and stands[row] in stands[:row]:
            continue
        with Visitor(site.url) as visitor:
            visitor.come_in(play.fresh(row))
            before = f"{_noise(name)}{name} person {row}"
            yield from _each(visitor, "/p", f"{before} first", languages)
            if play.view.state.value == "bidding" and row == 0:
                visitor.agree()
            for path in _MINE:
                yield from _each(visitor, f"/p{path}", f"{before} /p{path}", languages)
            for language in languages if row < rows_that_type else ():
                visitor.get(f"/p?lang={language}")
                for path, page, fields in _sent(play.view.state.value):
                    answer = visitor.send(path, page, **fields)
                    yield f"{before} {path} {sorted(fields.values())}/{language}", f"{answer.status_code}{answer.text}"


def _sent(state: str) -> list[tuple[str, str, dict[str, str]]]:
    """What is typed into participants' forms, and refused or asked about again; one of a kind where it is too late."""
    prices = [
        ("/p/choice", "/p/choice", {"price": price}) for price in ("", "abc", "1.000", "-1", "1.23456", "1.5", "9")
    ]
    prices += [("/p/choice", "/p/choice", {"price": "1.5", "limit": limit}) for limit in ("49", "x", "70")]
    values = [("/p/deliver", "/p", {"value": value}) for value in ("", "abc", "77", "7.5")]
    answers = [("/p/deliver", "/p", {"answer-0": value, "answer-1": "yes"}) for value in ("", "x", "99", "5")]
    if state != "bidding":
        prices = prices[-1:]
    if state != "delivering":
        values, answers = values[-1:], answers[-1:]
    return [*prices, *values, *answers, ("/p/agree", "/p", {}), ("/p/payout", "/p/payout", {"handle": "none"})]


def _forms(site: Live, plays: dict[str, Play], languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Drafts that are refused field by field, forecasts, invitations and steps."""
    wrong = ["", "x", "-1", "0", "1e9", "999999999999", "0.123456789", "é" * 5000]
    with Visitor(site.url) as visitor:
        visitor.log_in("ann", PASSWORD)
        for language in languages:
            edit = f"/campaigns/{plays['full draft'].id}/edit"
            visitor.get(f"{edit}?lang={language}")
            fields = visitor.fields(edit)
            for number, text in enumerate(wrong):
                typed = {
                    name: text if not name.startswith(("csrf", "once")) else value for name, value in fields.items()
                }
                answer = visitor.client.post(edit, data={**typed, "do": "save"}, follow_redirects=True)
                yield f"draft refused {number}/{language}", answer.text
            for number, changes in enumerate(_changes()):
                answer = visitor.client.post("/campaigns/preview", data={**fields, **changes}, follow_redirects=True)
                yield f"{NOISY}preview {number}/{language}", answer.text
            base = f"/campaigns/{plays['draft'].id}"
            for number, typed in enumerate(({"count": "x"}, {"count": "0"}, {"count": ""}, {"people": "a\na"})):
                hidden = visitor.hidden(f"{base}/participants")
                answer = visitor.client.post(f"{base}/participants", data={**hidden, **typed}, follow_redirects=True)
                yield f"invite {number}/{language}", answer.text


def _changes() -> list[dict[str, str]]:
    return [
        {},
        {"do": "preview"},
        {"setting": "local"},
        {"goal": "budget", "budget": "1"},
        {"goal": "hard_budget", "hard_budget": "50"},
        {"goal": "accuracy", "error": "0.5"},
        {"currency": "eur"},
        {"people": "0"},
        {"participation_fee": "100"},
        {"bid_by": "2020-01-01T10:00"},
        {"automatic": "yes", "bid_by": "", "deliver_by": ""},
    ]


def _noise(name: str) -> str:
    return NOISY if name in ("released",) else ""
