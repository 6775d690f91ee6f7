"""Priors as plain dicts, for files, and as short texts, for the command line.

============  =================================  =======================================================
family        text                               dict, beside ``"family"``
============  =================================  =======================================================
uniform       ``uniform:1,2``                    ``low``, ``high``
exponential   ``exponential:0.5``                ``scale``
lognormal     ``lognormal:0,1``                  ``mean_log``, ``sd_log``
empirical     ``empirical:1,2,4`` or, weighted,  ``values``, ``weights``
              ``empirical:3*1,0.5*2``
============  =================================  =======================================================
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hushbid.errors import PriorError
from hushbid.priors.base import Prior
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, LogNormal, ParametricPrior, Uniform

_PARAMETRIC: dict[str, type[ParametricPrior]] = {family.family: family for family in (Uniform, Exponential, LogNormal)}


def parse_prior(text: str) -> Prior:
    """The prior that a text such as ``uniform:1,2`` describes.

    >>> parse_prior("uniform:1,2")
    Uniform(low=1.0, high=2.0)
    """
    family, colon, rest = text.strip().partition(":")
    if family in _PARAMETRIC and colon:
        return _parse_parametric(_PARAMETRIC[family], rest, text)
    if family == Empirical.family and colon:
        weights, values = zip(*(_parse_weighted(part, text) for part in rest.split(",")), strict=True)
        return Empirical(values, weights)
    raise PriorError(f"a prior's text must start with one of {_names()} and a colon, got {text!r}")


def prior_from_dict(form: Mapping[str, Any]) -> Prior:
    """The prior that a plain dict describes.

    >>> prior_from_dict({"family": "exponential", "scale": 0.5})
    Exponential(scale=0.5)
    """
    family = form.get("family")
    if family in _PARAMETRIC:
        names = [field.name for field in fields(_PARAMETRIC[family])]  # type: ignore[arg-type]
        _check_keys(form, family, names)
        return _PARAMETRIC[family](*(_number(form[name], name) for name in names))
    if family == Empirical.family:
        _check_keys(form, family, ["values", "weights"])
        return Empirical(form["values"], form["weights"])
    raise PriorError(f"a prior's family must be one of {_names()}, got family={family!r}")


def _names() -> str:
    return ", ".join([*_PARAMETRIC, Empirical.family])


def _check_keys(form: Mapping[str, Any], family: str, names: list[str]) -> None:
    if set(form) != {"family", *names}:
        given = ", ".join(sorted(str(name) for name in form if name != "family")) or "nothing"
        raise PriorError(f"the dict of a prior of family {family!r} must hold {', '.join(names)}, got {given}")


def _parse_parametric(family: type[ParametricPrior], rest: str, text: str) -> Prior:
    names = [field.name for field in fields(family)]  # type: ignore[arg-type]
    parts = rest.split(",")
    if len(parts) != len(names):
        form = f"{family.family}:{','.join(names)}"
        raise PriorError(f"the text of a prior of family {family.family!r} must read {form}, got {text!r}")
    return family(*(_parse_number(part, text) for part in parts))


def _parse_weighted(part: str, text: str) -> tuple[float, float]:
    weight, star, value = part.partition("*")
    if not star:
        return 1.0, _parse_number(part, text)
    return _parse_number(weight, text), _parse_number(value, text)


def _parse_number(part: str, text: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise PriorError(f"a number was expected in place of {part.strip()!r} in the prior {text!r}") from None


def _number(value: object, name: str) -> float:
    if value == "inf":
        return float("inf")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PriorError(f"{name} must be a number, got {name}={value!r}")
    return float(value)
