"""Which baselines there are: ours, in the order of tables, and those of one's own, after them.

A baseline of one's own is a subclass of `Baseline`. `compare` takes its class as it is; once it is registered, every
comparison has it, on the command line and in reports too, under its name.
"""

from dataclasses import is_dataclass
from typing import TypeVar

from hushbid.baselines.baseline import Baseline
from hushbid.baselines.first_best import FirstBest
from hushbid.baselines.ghosh_roth import FixedAccuracy
from hushbid.baselines.near_optimal import NearOptimal, Optimal
from hushbid.baselines.no_privacy import NoPrivacy
from hushbid.baselines.posted_price import PostedPrice
from hushbid.baselines.uniform_loss import UniformLoss
from hushbid.errors import InputError

BASELINES: tuple[type[Baseline], ...] = (FirstBest, NearOptimal, PostedPrice, FixedAccuracy, UniformLoss, NoPrivacy)
"""Every baseline of ours, in the order of tables."""

_REGISTERED: dict[str, type[Baseline]] = {}
_LONGEST = 40
Kind = TypeVar("Kind", bound=type[Baseline])


def register(baseline: Kind) -> Kind:
    """Let every comparison have a baseline of one's own: a decorator above the class.

    Its ``name`` must not be one of ours or somebody else's; a class that is defined again, as in a notebook, takes the
    place of its former self.
    """
    refuse_no_baseline(baseline)
    if baseline.name in (Optimal.name, *(one.name for one in BASELINES)):
        raise InputError(
            f"name of {baseline.__name__} must not be that of a baseline of Hushbid, got {baseline.name!r}."
        )
    other = _REGISTERED.get(baseline.name)
    if other is not None and (other.__module__, other.__qualname__) != (baseline.__module__, baseline.__qualname__):
        taken = f"{other.__module__}.{other.__qualname__}"
        raise InputError(
            f"name of {baseline.__name__} must not be taken, but {baseline.name!r} is registered by {taken}."
        )
    _REGISTERED[baseline.name] = baseline
    return baseline


def refuse_no_baseline(baseline: object) -> None:
    """A baseline must be a class that can be compared."""
    if not (isinstance(baseline, type) and issubclass(baseline, Baseline)):
        shown = repr(baseline) if isinstance(baseline, str | type) else f"an object of {type(baseline).__name__}"
        raise InputError(
            f"a baseline must be a subclass of hushbid.baselines.Baseline, got {shown}.", field="baselines"
        )
    called = baseline.__name__
    missing = sorted(baseline.__abstractmethods__)
    missing += [name for name in ("name", "truthful", "voluntary") if not hasattr(baseline, name)]
    if missing:
        raise InputError(f"the baseline {called} must define {', '.join(missing)}.", field="baselines")
    if not (is_dataclass(baseline) and "__dataclass_fields__" in vars(baseline)):
        told = f"the baseline {called} must be a dataclass: put @dataclass(frozen=True, kw_only=True) above it."
        raise InputError(told, field="baselines")
    name = baseline.name
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONGEST:
        told = f"name of {called} must be a text of 1 to {_LONGEST} characters, got {name!r}."
        raise InputError(told, field="baselines")
    for claim in ("truthful", "voluntary"):
        if not isinstance(getattr(baseline, claim), bool):
            raise InputError(
                f"{claim} of {called} must be True or False, got {getattr(baseline, claim)!r}.", field="baselines"
            )


def every_baseline() -> tuple[type[Baseline], ...]:
    """Ours and those that are registered."""
    return (*BASELINES, *_REGISTERED.values())


def baselines_named(*names: str) -> tuple[type[Baseline], ...]:
    """The baselines of these names, in their order; all without a name."""
    known = {one.name: one for one in every_baseline()}
    for name in names:
        if name not in known:
            shown = ", ".join(map(repr, known))
            raise InputError(f"a baseline must be one of {shown}, got {name!r}.", field="baseline")
    return tuple(known[name] for name in names) or every_baseline()
