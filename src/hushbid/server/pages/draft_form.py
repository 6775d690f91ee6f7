"""Between a campaign's settings and the form in which an analyst types them: money in units, times without a zone.

A form is read as a whole (`filled`): every field that is wrong is named, in the words of the page's language. What is
typed where it does not count (the number of another goal, one visit or limits where noise is added in browsers) is
left out, and kept. `form_questions` reads what is asked, `form_prices` what people may ask for; goal, privacy,
protection and the rest are here.

The goal is asked in the words of a buyer: *I can spend* so much (on average, or never more), *I need this accuracy*, or
*an error costs me* so much. Privacy and protection are asked for in three degrees each, with a number for experts. A
choice that cannot be made together with what is typed is greyed out, with the reason, by the table of combinations. It
can still be made, as something else may be changed in the same step; then the form says at its field why the settings
do not go together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hushbid.common.money import MOST_DECIMALS
from hushbid.errors import HushbidError
from hushbid.mechanism.combinations import Combination, offered
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.consent import LANGUAGES, LONGEST_CONSENT, LONGEST_OWN_TEXT
from hushbid.server.model.settings import LEAST_LOSS, LEAST_PEOPLE, MOST_DAYS, MOST_PEOPLE, PAYOUTS, CampaignSettings
from hushbid.server.pages import form_prices
from hushbid.server.pages.form_prices import prices_typed, read_prior
from hushbid.server.pages.form_questions import (
    empty_question,
    is_number,
    is_part,
    question_count,
    questions_typed,
    read_errors,
    read_questions,
    read_strata,
    strata_typed,
    stratum_count,
)
from hushbid.server.pages.form_reading import Reading, moment_typed, money_typed, retyped
from hushbid.server.pages.wording import Texts, Writing, languages

GOALS = ("spend", "accuracy", "cost")
PRIVACY = {"strong": 0.5, "medium": 1.0, "light": 2.0}
"""The largest privacy loss of anybody, by degree."""

RELATIONS = {"none": 0.0, "some": 0.1, "much": 0.3}
"""How closely prices and answers may be related, by degree."""

OWN = "own"
MOST_LOSS = 100.0


def read_goal(form: Reading, decimals: int | None, *, simple: bool) -> dict[str, Any]:
    """The one goal that is stated; what stands beside the others is not meant."""
    goal = form.one_of("goal", GOALS)
    if goal == "spend":
        amount = form.money("budget", decimals, least=1)
        return {"hard_budget" if form.ticked("never_exceed") else "budget": amount}
    if goal == "cost":
        return {"buyer_weight": form.number("buyer_weight", above=0.0)}
    errors = read_errors(form)
    return {"standard_error": errors[0] if simple and isinstance(errors, tuple) else errors}


def read_protection(form: Reading) -> dict[str, Any]:
    """The largest loss of anybody, and the relation that is allowed for."""
    privacy = form.one_of("privacy", (*PRIVACY, OWN))
    relation = form.one_of("relation", (*RELATIONS, OWN))
    loss = PRIVACY.get(privacy)
    if loss is None:
        loss = form.number("max_privacy_loss", low=LEAST_LOSS, high=MOST_LOSS)
    related = RELATIONS.get(relation)
    if related is None:
        related = form.number("max_correlation", low=0.0, high=1.0)
    return {"max_privacy_loss": loss, "max_correlation": related}


def goal_field_of(name: str, typed: Mapping[str, str]) -> str:
    """The field at which a problem with the goal, the loss or the relation is to be told."""
    if name in ("budget", "hard_budget"):
        return "budget"
    if name == "standard_error":
        return "q-0-error"
    if name == "max_privacy_loss":
        return name if typed.get("privacy") == OWN else "privacy"
    if name == "max_correlation":
        return name if typed.get("relation") == OWN else "relation"
    return name


def goal_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """Goal, privacy and protection, as they would have been typed."""
    spends = settings.budget if settings.hard_budget is None else settings.hard_budget
    stated = {"budget": "spend", "hard_budget": "spend", "standard_error": "accuracy", "buyer_weight": "cost"}
    loss, related = settings.max_privacy_loss, settings.max_correlation
    privacy = next((name for name, one in PRIVACY.items() if one == loss), "medium" if loss is None else OWN)
    relation = next((name for name, one in RELATIONS.items() if one == related), OWN)
    return {
        "goal": stated[settings.stated],
        "budget": money_typed(spends, settings.decimals, write),
        "never_exceed": "yes" if settings.hard_budget is not None else "",
        "buyer_weight": "" if settings.buyer_weight is None else write.typed(settings.buyer_weight),
        "privacy": privacy,
        "max_privacy_loss": write.typed(loss) if privacy == OWN and loss is not None else "",
        "relation": relation,
        "max_correlation": write.typed(related) if relation == OWN else "",
    }


_COMBINED_GOALS = {"accuracy": "accuracy", "cost": "price"}
_CHOICES: dict[str, dict[str, Any]] = {
    "never_exceed": {"goal": "hard_budget"},
    "accuracy": {"goal": "accuracy"},
    "relation": {"correlation": 0.1},
    "limits": {"limits": True},
}
"""What each choice adds to a campaign."""


def unavailable(typed: Mapping[str, str]) -> dict[str, str]:
    """Return the choices that do not go with what is typed, each with the code of the reason."""
    here = _combination(typed)
    return {name: f"unavailable.{name}" for name, added in _CHOICES.items() if not offered(replace(here, **added))}


def _combination(typed: Mapping[str, str]) -> Combination:
    """Return what is typed as a combination of the table, as far as choices depend on it."""
    kinds = [typed.get(f"q-{place}-kind") for place in range(question_count(typed))]
    questions: Any = "several" if len(kinds) > 1 or "choice" in kinds else "yes_no" if "yes_no" in kinds else "none"
    goal: Any = _COMBINED_GOALS.get(
        typed.get("goal", ""), "hard_budget" if typed.get("never_exceed") == "yes" else "budget"
    )
    return Combination(
        setting="local" if typed.get("setting") == "local" else "central",
        goal=goal,
        cap="one",
        strata=stratum_count(typed) > 0,
        questions=questions,
    )


EMPTY: dict[str, str] = {
    "title": "",
    "question": "",
    "description": "",
    "questions": "1",
    **empty_question(0),
    "strata": "0",
    "strata_kind": "shares",
    "setting": "central",
    "people": "100",
    "minimum_people": "10",
    "single_visit": "yes",
    "limits": "yes",
    "goal": "spend",
    "budget": "200",
    "never_exceed": "",
    "buyer_weight": "",
    "prices": "typical",
    "price_low": "0.5",
    "price_high": "5",
    "pilot": "",
    "pilot_people": "",
    "prior": "",
    "privacy": "medium",
    "max_privacy_loss": "",
    "relation": "some",
    "max_correlation": "",
    "currency": "EUR",
    "decimals": "2",
    "participation_fee": "0",
    "fee_after_withdrawal": "",
    "spending_limit": "",
    "accept_rounding": "",
    "bid_by": "",
    "deliver_by": "",
    "automatic": "",
    **{f"consent_{part}": "" for part in LONGEST_CONSENT},
    **{f"consent_text_{language}": "" for language in LANGUAGES},
    "observer": "",
    "statement": "",
    "payout": "none",
    "payout_days": "90",
    "retention_days": "0",
    "public_estimate": "",
}
"""The form's fields, and what stands in them first, as it is typed in English."""

_NUMBERS = frozenset(
    {
        *("budget", "buyer_weight", "price_low", "price_high", "max_privacy_loss", "max_correlation"),
        *("participation_fee", "spending_limit"),
    }
)
_LONGEST = 25_000
_TICKS = ("fee_after_withdrawal", "accept_rounding", "automatic", "public_estimate")


@dataclass(slots=True, kw_only=True)
class Filled:
    """A form that was read."""

    settings: CampaignSettings | None = None
    """What it says, if all of it can be read and is allowed."""

    people: int = 0
    """For how many people to look ahead."""

    problems: dict[str, str] = field(default_factory=dict)
    """Sentences by field; under ``form`` what concerns none in particular."""


def typed_fields(sent: Mapping[str, str]) -> dict[str, str]:
    """The fields that the form has, and no others."""
    return {name: text[:_LONGEST] for name, text in sent.items() if name in EMPTY or is_part(name)}


def first_form(write: Writing) -> dict[str, str]:
    """What stands in an empty form."""
    return in_language(EMPTY, "en", write)


def in_language(fields: Mapping[str, str], typed_in: str, write: Writing) -> dict[str, str]:
    """What was typed in one language as it is shown in another: numbers alone are written differently."""
    before = languages().get(typed_in)
    if before is None or typed_in == write.texts.language:
        return dict(fields)
    return retyped(fields, lambda name: name in _NUMBERS or is_number(name), Writing(before), write)


def as_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """Settings as an analyst would have typed them."""
    decimals, consent = settings.decimals, settings.consent
    plain = ("description", "setting", "currency", "observer", "statement", "payout")
    whole = ("decimals", "minimum_people", "retention_days", "payout_days")
    return {
        **{name: str(getattr(settings, name)) for name in (*plain, *whole)},
        **questions_typed(settings, write),
        **strata_typed(settings, write),
        **goal_typed(settings, write),
        **prices_typed(settings, write),
        **{name: "yes" if getattr(settings, name) else "" for name in (*_TICKS, "single_visit", "limits")},
        "participation_fee": money_typed(settings.participation_fee, decimals, write),
        "spending_limit": money_typed(settings.spending_limit_minor, decimals, write),
        **{name: moment_typed(getattr(settings, name)) for name in ("bid_by", "deliver_by")},
        **{f"consent_{part}": getattr(consent, part) for part in LONGEST_CONSENT},
        **{f"consent_text_{language}": consent.texts.get(language, "") for language in LANGUAGES},
    }


def filled(
    typed: Mapping[str, str], write: Writing, *, least: int = LEAST_PEOPLE, now: datetime | None = None
) -> Filled:
    """Read a form; ``least`` people are the fewest that the server allows. With ``now`` it is to be saved:
    deadlines must be later, and money must cover the fees."""
    form = Reading(typed=typed, write=write)
    values = read_questions(form)
    values["strata"] = read_strata(form)
    local = form.one_of("setting", ("central", "local")) == "local"
    values["setting"] = "local" if local else "central"
    people = form.whole("people", 1, MOST_PEOPLE)
    values["minimum_people"] = form.whole("minimum_people", least, MOST_PEOPLE)
    values["single_visit"] = form.ticked("single_visit") and not local
    values["limits"] = form.ticked("limits") and "limits" not in unavailable(typed)
    currency, decimals = form.given("currency"), form.whole("decimals", 0, MOST_DECIMALS)
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        form.refuse("currency", "form.currency")
    values |= {"currency": currency, "decimals": decimals}
    values |= read_goal(form, decimals, simple="questions" not in values)
    values["prior"] = read_prior(form)
    values |= read_protection(form)
    _read_rest(form, values)
    if now is not None:
        _refuse_what_cannot_open(form, values, people or 0, now)
    found = Filled(people=people or 0, problems=form.problems)
    if not form.problems:
        _check(found, values, typed, write.texts)
    return found


def _refuse_what_cannot_open(form: Reading, values: Mapping[str, Any], people: int, now: datetime) -> None:
    """Deadlines that have passed, and money that does not even cover the participation fees of the people planned."""
    for name in ("bid_by", "deliver_by"):
        if values[name] is not None and values[name] <= now:
            form.refuse(name, "form.past")
    fees = values["participation_fee"] * people
    limit = values["spending_limit"]
    minor = None if limit is None else round(limit * 10 ** values["decimals"])
    for name, money in (*((one, values.get(one)) for one in ("budget", "hard_budget")), ("spending_limit", minor)):
        if fees > 0 and money is not None and money <= fees:
            form.refuse(goal_field_of(name, form.typed), "form.below_fees")


def _read_rest(form: Reading, values: dict[str, Any]) -> None:
    """Money beside the payments, times, consent and payouts."""
    decimals = values["decimals"]
    values["participation_fee"] = form.optional("participation_fee", lambda name: form.money(name, decimals)) or 0
    limit = form.optional("spending_limit", lambda name: form.money(name, decimals, least=1))
    values["spending_limit"] = None if limit is None else limit / 10**decimals
    values |= {name: form.ticked(name) for name in _TICKS}
    values |= {name: form.moment(name) for name in ("bid_by", "deliver_by")}
    bid_by, deliver_by = values["bid_by"], values["deliver_by"]
    if bid_by is not None and deliver_by is not None and deliver_by <= bid_by:
        form.refuse("deliver_by", "form.later")
    for name in ("bid_by", "deliver_by"):
        if values["automatic"] and not form.given(name):
            form.refuse(name, "form.needs_deadline")
    values["description"] = form.text("description", LONGEST["description"])
    consent: dict[str, Any] = {part: form.text(f"consent_{part}", longest) for part, longest in LONGEST_CONSENT.items()}
    texts = {language: form.text(f"consent_text_{language}", LONGEST_OWN_TEXT) for language in LANGUAGES}
    values["consent"] = {**consent, "texts": texts}
    values |= {name: form.line(name, LONGEST[name]) for name in ("observer", "statement")}
    values["payout"] = form.one_of("payout", PAYOUTS)
    values["payout_days"] = form.whole("payout_days", 1, MOST_DAYS)
    values["retention_days"] = form.whole("retention_days", 0, MOST_DAYS)


def _check(found: Filled, values: dict[str, Any], typed: Mapping[str, str], t: Texts) -> None:
    """Let the settings check themselves."""
    try:
        found.settings = CampaignSettings.from_dict(values)
    except HushbidError as problem:
        place, sentence = told(problem, typed, t)
        found.problems[place] = sentence


def told(problem: HushbidError, typed: Mapping[str, str], t: Texts) -> tuple[str, str]:
    """At which field of the form a refusal is to be told, and in which words of the page's language."""
    name = (problem.field or "").partition("[")[0].partition(".")[0]
    if name == "prior":
        place = form_prices.field_of(typed)
    elif name in ("bounds", "variance", "questions", "unit"):
        place = "q-0-high" if name == "bounds" else "q-0-variance" if name == "variance" else "q-0-name"
    elif name == "strata":
        place = "strata"
    else:
        place = goal_field_of(name, typed)
    known = place in EMPTY or place in ("pilot_file", "q-0-error", "strata", "people")
    code = f"refused_setting.{name}"
    return place if known else "form", t.coded(code if code in t else "refused_setting.form")
