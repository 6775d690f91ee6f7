"""Figures about some rows that add up to those of all rows, in whatever order and batches the rows come."""

import operator
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, Self


class Adds:
    """A base of frozen dataclasses: two are added up field by field, plainly or as `joined` says of the field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        """Both together."""
        ours: Any = self
        return type(self)(
            **{
                one.name: one.metadata.get("join", operator.add)(getattr(self, one.name), getattr(other, one.name))
                for one in fields(ours)
            }
        )


def joined(join: Callable[[Any, Any], Any], **given: Any) -> Any:
    """A field of which two values are put together in another way than by a plus sign."""
    return field(metadata={"join": join}, **given)


def each(ours: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tuples entry by entry, at any depth; an empty one is nothing yet.

    >>> each((1, (2, 3)), (10, (20, 30))), each((), (5,))
    ((11, (22, 33)), (5,))
    """
    if not (ours and others):
        return ours or others
    return tuple(
        each(one, other) if isinstance(one, tuple) else one + other for one, other in zip(ours, others, strict=True)
    )


def by_key(join: Callable[[Any, Any], Any]) -> Callable[[Any, Any], dict[Any, Any]]:
    """Mappings key by key.

    >>> by_key(min)({1: 5}, {1: 3, 2: 4})
    {1: 3, 2: 4}
    """
    return lambda ours, others: {
        **ours,
        **{key: join(ours[key], value) if key in ours else value for key, value in others.items()},
    }
