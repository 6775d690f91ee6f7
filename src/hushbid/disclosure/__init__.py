"""Releasing an estimate, or a survey's answers, so that nobody loses more privacy than promised; below the market.

    >>> plan = ReleasePlan.of([0.5, 1.0, 1.0], setting="central", bounds=(0, 10), label="doctest")
    >>> release = release_plan(plan, [3.0, 4.0, None])         # the third person dropped out
    >>> release.privacy_loss
    array([0.5, 1. , 0. ])

The modules, from the bottom: ``noise`` draws (OpenDP) and ``tails`` says how far; ``relation`` bounds the bias of an
estimate from people whose prices tell of their data, ``contrast`` makes one sum of strata whose means are combined,
``promises`` says what is promised, ``grid`` keeps the arithmetic exact, ``error`` says how far off the estimate may be,
``message`` is what a device sends in the local setting; ``release`` is what comes out, which ``cards`` shows in
a notebook, ``central`` and ``local`` are the two settings. A survey's ``answers`` become numbers, ``survey`` and
``survey_local`` are the settings for it,
``survey_message`` is what a device sends; a single yes/no question is sent by randomised response, ``response_local``,
as a ``response_message``. ``preparing`` checks everything and leaves only the drawing, ``preparing_from_sums``,
``survey_from_sums`` and ``contrast_from_sums`` do so where an engine added up. That it is drawn once is
the business of the ``ledger``.
"""

from hushbid.disclosure.delivery import simulate_plan
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import PromiseCheck
from hushbid.disclosure.ledger.once import Answer, release_once, release_plan, release_synthetic
from hushbid.disclosure.local import privatize, simulate_privatized
from hushbid.disclosure.message import PrivatizedValue
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.relation import Relation
from hushbid.disclosure.release import Grid, QuestionAnswer, Release
from hushbid.disclosure.response_message import RandomisedResponse
from hushbid.disclosure.survey_local import message_kind, privatize_answers
from hushbid.disclosure.survey_message import PrivatizedAnswers

__all__ = [
    "Answer",
    "ErrorModel",
    "Grid",
    "PrivatizedAnswers",
    "PrivatizedValue",
    "PromiseCheck",
    "QuestionAnswer",
    "RandomisedResponse",
    "Relation",
    "Release",
    "ReleasePlan",
    "message_kind",
    "privatize",
    "privatize_answers",
    "release_once",
    "release_plan",
    "release_synthetic",
    "simulate_plan",
    "simulate_privatized",
]
