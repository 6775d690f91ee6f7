"""Releasing one estimate so that nobody loses more privacy than promised; below the market, on plain plans.

    >>> plan = ReleasePlan.of([0.5, 1.0, 1.0], setting="central", bounds=(0, 10), label="doctest")
    >>> release = release_plan(plan, [3.0, 4.0, None])         # the third person dropped out
    >>> release.privacy_loss
    array([0.5, 1. , 0. ])

The modules, from the bottom: ``noise`` draws (OpenDP), ``grid`` keeps the arithmetic exact, ``plan`` says what is
promised, ``error`` how far off the estimate may be, ``central`` and ``local`` are the two settings, ``wire`` is the
local message, ``claims`` makes sure that nothing is drawn twice, ``publish`` puts it together, ``release`` is what
comes out, ``fields`` reads it back; ``asking`` says what is asked of whom, ``account`` keeps what was drawn for it, and
``once`` answers.
"""

from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import PromiseCheck
from hushbid.disclosure.local import privatize, simulate_privatized
from hushbid.disclosure.message import PrivatizedValue
from hushbid.disclosure.once import Answer, release_made_up, release_once
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Grid, Release
from hushbid.disclosure.releasing import release_plan, simulate_plan

__all__ = [
    "Answer",
    "ErrorModel",
    "Grid",
    "PrivatizedValue",
    "PromiseCheck",
    "Release",
    "ReleasePlan",
    "privatize",
    "release_made_up",
    "release_once",
    "release_plan",
    "simulate_plan",
    "simulate_privatized",
]
