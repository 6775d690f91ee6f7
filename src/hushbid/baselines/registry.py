"""Which rivals there are: ours, in the order of tables, and those of one's own, after them.

A rival of one's own is a subclass of `Rival`. `compare` takes its class as it is; once it is registered, every
comparison has it, on the command line and in reports too, under its name.
"""

from dataclasses import is_dataclass
from typing import TypeVar

from hushbid.baselines.first_best import FirstBest
from hushbid.baselines.ghosh_roth import FixedAccuracy
from hushbid.baselines.near_optimal import NearOptimal, Optimal
from hushbid.baselines.no_privacy import NoPrivacy
from hushbid.baselines.posted_price import PostedPrice
from hushbid.baselines.rival import Rival
from hushbid.baselines.uniform_loss import UniformLoss
from hushbid.errors import InputError

__all__ = ["RIVALS", "every_rival", "refuse_no_rival", "register", "rivals_named"]

RIVALS: tuple[type[Rival], ...] = (FirstBest, NearOptimal, PostedPrice, FixedAccuracy, UniformLoss, NoPrivacy)
"""Every rival of ours, in the order of tables."""

_REGISTERED: dict[str, type[Rival]] = {}
_LONGEST = 40
Kind = TypeVar("Kind", bound=type[Rival])


def register(rival: Kind) -> Kind:
    """Let every comparison have a rival of one's own: a decorator above the class.

    Its ``name`` must not be one of ours or somebody else's; a class that is defined again, as in a notebook, takes the
    place of its former self.
    """
    refuse_no_rival(rival)
    if rival.name in (Optimal.name, *(one.name for one in RIVALS)):
        raise InputError(f"name of {rival.__name__} must not be that of a rival of Hushbid, got {rival.name!r}.")
    other = _REGISTERED.get(rival.name)
    if other is not None and (other.__module__, other.__qualname__) != (rival.__module__, rival.__qualname__):
        taken = f"{other.__module__}.{other.__qualname__}"
        raise InputError(f"name of {rival.__name__} must not be taken, but {rival.name!r} is registered by {taken}.")
    _REGISTERED[rival.name] = rival
    return rival


def refuse_no_rival(rival: object) -> None:
    """A rival must be a class that can be compared."""
    if not (isinstance(rival, type) and issubclass(rival, Rival)):
        shown = repr(rival) if isinstance(rival, str | type) else f"an object of {type(rival).__name__}"
        raise InputError(f"a rival must be a subclass of hushbid.baselines.Rival, got {shown}.", field="rivals")
    called = rival.__name__
    missing = sorted(rival.__abstractmethods__)
    missing += [name for name in ("name", "truthful", "voluntary") if not hasattr(rival, name)]
    if missing:
        raise InputError(f"the rival {called} must define {', '.join(missing)}.", field="rivals")
    if not (is_dataclass(rival) and "__dataclass_fields__" in vars(rival)):
        told = f"the rival {called} must be a dataclass: put @dataclass(frozen=True, kw_only=True) above it."
        raise InputError(told, field="rivals")
    name = rival.name
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONGEST:
        told = f"name of {called} must be a text of 1 to {_LONGEST} characters, got {name!r}."
        raise InputError(told, field="rivals")
    for claim in ("truthful", "voluntary"):
        if not isinstance(getattr(rival, claim), bool):
            raise InputError(
                f"{claim} of {called} must be True or False, got {getattr(rival, claim)!r}.", field="rivals"
            )


def every_rival() -> tuple[type[Rival], ...]:
    """Ours and those that are registered."""
    return (*RIVALS, *_REGISTERED.values())


def rivals_named(*names: str) -> tuple[type[Rival], ...]:
    """The rivals of these names, in their order; all without a name."""
    known = {one.name: one for one in every_rival()}
    for name in names:
        if name not in known:
            shown = ", ".join(map(repr, known))
            raise InputError(f"a rival must be one of {shown}, got {name!r}.", field="rival")
    return tuple(known[name] for name in names) or every_rival()
