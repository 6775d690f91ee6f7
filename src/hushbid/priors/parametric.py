"""The common part of families that a few named numbers describe."""

from dataclasses import fields
from typing import Any

from hushbid.priors.base import ContinuousPrior
from hushbid.priors.numerals import number_text, plain_number


class ParametricPrior(ContinuousPrior):
    """A family that a few named numbers describe: a frozen dataclass whose fields are floats."""

    def to_dict(self) -> dict[str, Any]:
        """The prior as a plain dict that `prior_from_dict` reads back."""
        return {"family": self.family} | {name: plain_number(getattr(self, name)) for name in self.parameter_names()}

    def to_text(self) -> str:
        """The prior as a short text that `parse_prior` reads back."""
        return f"{self.family}:" + ",".join(number_text(getattr(self, name)) for name in self.parameter_names())

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """The names of the parameters, in the order of the constructor and of the text form."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def _set(self, **parameters: float) -> None:
        for name, value in parameters.items():
            object.__setattr__(self, name, value)
