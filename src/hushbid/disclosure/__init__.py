"""Releasing an estimate, or a survey's answers, so that nobody loses more privacy than promised; below the market.

    >>> plan = ReleasePlan.of([0.5, 1.0, 1.0], setting="central", bounds=(0, 10), label="doctest")
    >>> release = release_plan(plan, [3.0, 4.0, None])         # the third person dropped out
    >>> release.privacy_loss
    array([0.5, 1. , 0. ])

The modules, from the bottom: ``noise`` draws (OpenDP) and ``tails`` says how far; ``grid`` keeps the arithmetic exact,
``relation`` bounds the bias of an estimate from people whose prices tell of their data, ``error`` says how far off the
estimate may be and ``weighing`` what is asked and how errors follow from weights; ``combination`` makes one sum of
strata, ``answers`` become numbers, ``promises`` says what is promised, ``question_answer`` is what is found for a
question and ``release`` all of it, which ``cards`` shows in a notebook. *Central*: ``sum_plan`` says what is added up,
``sums`` adds up in any batches, ``prepare`` leaves only the drawing, and ``memory`` is one batch of people who are
known. *Local*: ``messages`` are what devices send, ``local`` makes them, and ``received`` reads and weighs them.
``delivery`` takes a plan and data in either setting, simulates, and adds everybody's figures to what was drawn; the
``ledger`` draws once; ``given_losses`` is all of it for losses that are given.
"""

from hushbid.disclosure.delivery import simulate_plan
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.given_losses import private_mean
from hushbid.disclosure.grid import PromiseCheck
from hushbid.disclosure.ledger.once import Answer, release_once, release_plan, release_synthetic
from hushbid.disclosure.local import privatize, privatize_answers
from hushbid.disclosure.messages import Message, message_kind
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.question_answer import QuestionAnswer
from hushbid.disclosure.relation import Relation
from hushbid.disclosure.release import Grid, Release

__all__ = [
    "Answer",
    "ErrorModel",
    "Grid",
    "Message",
    "PromiseCheck",
    "QuestionAnswer",
    "Relation",
    "Release",
    "ReleasePlan",
    "message_kind",
    "private_mean",
    "privatize",
    "privatize_answers",
    "release_once",
    "release_plan",
    "release_synthetic",
    "simulate_plan",
]
