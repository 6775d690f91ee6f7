"""The fields of a draft's form: those of the schema, by their names, and what is asked for otherwise."""

from itertools import chain

from hushbid.campaign.spec import LANGUAGES, choices_of, fields_of
from hushbid.server.model.settings import LEAST_LOSS, MOST_LOSS, CampaignSettings
from hushbid.server.pages.form_reading import typed_value
from hushbid.server.pages.form_rows import empty_question
from hushbid.server.pages.wording import Writing, languages

GOALS = ("spend", "accuracy", "cost")
OWN = "own"
PRIVACY = {"strong": 0.5, "medium": 1.0, "light": 2.0}
"""Everyone's largest privacy loss, by degree."""

RELATIONS = {"none": 0.0, "some": 0.1, "much": 0.3}
"""How closely prices and answers may be related, by degree."""

DEGREES: dict[str, tuple[str, dict[str, float], dict[str, float]]] = {
    "privacy": ("max_privacy_loss", PRIVACY, {"ge": LEAST_LOSS, "le": MOST_LOSS}),
    "relation": ("max_correlation", RELATIONS, {"ge": 0.0, "le": 1.0}),
}
"""What is chosen by degree: the field of the market, its degrees, and the limits of a number for experts."""

SCHEMA = dict(fields_of(CampaignSettings))
TEXTS = "server.consent.texts"
NEEDED = ("people", "minimum_people", "payout_days", "retention_days")
_IN_A_LINE = ("observer", "statement", "currency")
AMOUNTS = ("participation_fee", "spending_limit")


def form_name(name: str) -> str:
    """Return what a field of the schema is called in the form."""
    table, _, leaf = name.rpartition(".")
    return f"consent_{leaf}" if table == "server.consent" else "people" if leaf == "population" else leaf


FIELDS = {
    form_name(name): name
    for name in SCHEMA
    if (name.startswith(("server.", "money.")) and name != TEXTS)
    or name in ("market.setting", "market.accept_rounding", "market.population", "market.expected_share")
}
"""Fields that are typed as the schema has them, and their full names there."""

ASKED: dict[str, tuple[str, ...]] = {
    "told": ("description",),
    "ethics": ("consent_controller", "consent_contact", "consent_purpose", "consent_storage"),
    "example": ("observer", "statement"),
    "people": ("people", "minimum_people"),
    "visits": ("single_visit",),
    "when": ("bid_by", "deliver_by", "automatic"),
    "goal": ("expected_share",),
    "paid": ("participation_fee", "payout", "payout_days", "fee_after_withdrawal"),
    "privacy": ("limits",),
    "more": ("currency", "decimals", "retention_days", "spending_limit", "accept_rounding", "public_estimate"),
}
"""Where the form asks for them: each is asked for as its kind is. A field that is named nowhere comes last of all."""

ASKED["more"] += tuple(name for name in FIELDS if name != "setting" and name not in set(chain(*ASKED.values())))


def kind_of(name: str) -> str:
    """Return how a field of the form is typed: as a tick, a pick, a time, a whole number, a number, a text or lines."""
    info = SCHEMA[FIELDS[name]]
    if choices_of(info):
        return "pick"
    known = {"bool": "tick", "datetime": "moment", "int": "whole", "float": "number"}
    found = next((kind for word, kind in known.items() if word in str(info.annotation)), "text")
    return "lines" if found == "text" and name not in _IN_A_LINE else found


def choices_for(name: str) -> tuple[str, ...]:
    """Return what a field may be picked from."""
    return choices_of(SCHEMA[FIELDS[name]])


PLACES = {
    "goal": "goal-spend",
    "privacy": "privacy-strong",
    "relation": "relation-none",
    "strata": "strata_kind",
    "setting": "setting-central",
    "prices": "prices-typical",
}
"""Where a problem of several inputs is to be seen, by the identifiers of elements that take the focus."""

EMPTY: dict[str, str] = {
    **{name: typed_value(SCHEMA[full].get_default(), Writing(languages()["en"])) for name, full in FIELDS.items()},
    **dict.fromkeys(("title", "question", *(f"consent_text_{language}" for language in LANGUAGES)), ""),
    **dict.fromkeys(("never_exceed", "buyer_weight", "pilot", "pilot_people", "prior"), ""),
    **dict.fromkeys((leaf for leaf, _, _ in DEGREES.values()), ""),
    **empty_question(0),
    "questions": "1",
    "strata": "0",
    "strata_kind": "shares",
    "setting": "central",
    "people": "100",
    "single_visit": "yes",
    "limits": "yes",
    "currency": "EUR",
    "goal": "spend",
    "budget": "200",
    "prices": "typical",
    "price_low": "0.5",
    "price_high": "5",
    "privacy": "medium",
    "relation": "some",
}
"""The form's fields, and what stands in them first, as it is typed in English."""

NUMBERS = frozenset(
    {
        *(name for name in FIELDS if kind_of(name) == "number"),
        *("budget", "buyer_weight", "price_low", "price_high", "max_privacy_loss", "max_correlation"),
    }
)
