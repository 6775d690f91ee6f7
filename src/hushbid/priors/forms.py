"""Priors as plain dicts, for files, and as short texts, for the command line.

============  =============================================  ================================================
family        text                                           the dict, beside ``"family"``
============  =============================================  ================================================
uniform       ``uniform:1,2``                                ``low``, ``high``
exponential   ``exponential:0.5``                            ``scale``
lognormal     ``lognormal:0,1``                              ``mean_log``, ``sd_log``
gamma         ``gamma:2,0.5``                                ``shape``, ``scale``
beta          ``beta:2,3,0,1`` or ``beta:2,3``               ``a``, ``b``, ``low``, ``high``
truncnormal   ``truncnormal:1,0.5,0,3`` (high may be inf)    ``mean``, ``sd``, ``low``, ``high``
mixture       ``mixture:0.3*uniform:0,1+0.7*gamma:2,0.5``    ``components`` (dicts), ``weights``
empirical     ``empirical:1,2,4`` or ``empirical:3*1,2*4``   ``values``, ``weights``
scipy         ``scipy:weibull_min,2,loc=0,scale=3``          ``name``, ``shapes``, ``loc``, ``scale``
histogram     ``histogram:0,2*1,5*4`` (edge, weight*edge)    ``edges``, ``weights``
kde           ``kde:0.5,1,2,4`` or ``kde:0.5,3*1,2*4``       ``bandwidth``, ``values``, ``weights``
truncated     ``truncated:0.1,10,lognormal:0,1``             ``prior`` (dict), ``low``, ``high``
grouped       none                                           ``priors`` (name: dict), ``labels``
============  =============================================  ================================================

A family that is registered (`register`) is written as the parametric ones are. Reading a text or a dict
never imports anything: to make such a family known, import the module that registers it.

In a text a star stands between a weight and what it weighs, a plus sign between the components of a mixture. A mixture
or a truncated prior within a mixture, up to four deep, goes in parentheses.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from hushbid.common.numbers import four_digits
from hushbid.errors import PriorError, UnknownFamily
from hushbid.priors.base import Prior
from hushbid.priors.beta import Beta
from hushbid.priors.continuous import ParametricPrior
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, Gamma, LogNormal, Uniform
from hushbid.priors.grouped import Grouped
from hushbid.priors.histogram import Histogram
from hushbid.priors.inputs import to_positive
from hushbid.priors.kernel_density import KernelDensity
from hushbid.priors.mixture import Mixture
from hushbid.priors.own_prior import REGISTERED, OwnPrior
from hushbid.priors.scipy_prior import ScipyPrior, scipy_prior
from hushbid.priors.truncated import Truncated
from hushbid.priors.truncated_normal import TruncatedNormal

_PARAMETRIC: dict[str, type[ParametricPrior]] = {
    family.family: family for family in (Uniform, Exponential, LogNormal, Gamma, Beta, TruncatedNormal)
}
_COMPOSED = (
    *(Mixture.family, Empirical.family, ScipyPrior.family, Histogram.family),
    *(KernelDensity.family, Truncated.family),
)
_EXAMPLE = "uniform:1,2"
_DEEPEST = 4
"""Of mixtures and truncated priors within each other, whose cost doubles with each."""

_LONGEST_WORDS = 60
_MOST_GROUPS = 8


_UNKNOWN = "another family is known once the module that registers it is imported (hushbid --import MODULE)"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
Own = TypeVar("Own", bound=type[OwnPrior])


def register(family: Own) -> Own:
    """Give an own family its name in texts, files and records: a decorator above the class.

    The name is the class's ``family``. It must not be one of ours or another class's; a class that is defined again, as
    in a notebook, takes the place of its former self.
    """
    if not (isinstance(family, type) and issubclass(family, OwnPrior)):
        raise PriorError(f"register needs a subclass of hushbid.priors.OwnPrior, got {family!r}")
    name, called = getattr(family, "family", None), family.__name__
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise PriorError(f"family of {called} must be a name of small letters, digits and _, got {name!r}")
    if not (is_dataclass(family) and "__dataclass_fields__" in vars(family) and family.__dataclass_params__.frozen):
        raise PriorError(f"{called} must be a frozen dataclass: put @dataclass(frozen=True) below @register")
    missing = sorted(family.__abstractmethods__)
    if missing:
        raise PriorError(f"{called} must define {', '.join(missing)}")
    if name in _PARAMETRIC or name in (*_COMPOSED, Grouped.family):
        raise PriorError(f"family of {called} must not be that of a prior of Hushbid, got {name!r}")
    other = REGISTERED.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (family.__module__, family.__qualname__):
        taken = f"{other.__module__}.{other.__qualname__}"
        raise PriorError(f"family of {called} must not be taken, but {name!r} is registered by {taken}")
    REGISTERED[name] = family
    return family


def _family_of(name: object) -> type[ParametricPrior] | None:
    """Return the family of that name that a few numbers describe, ours or registered."""
    return (_PARAMETRIC.get(name) or REGISTERED.get(name)) if isinstance(name, str) else None


def parse_prior(text: str) -> Prior:
    """Return the prior that a text describes.

    >>> parse_prior("uniform:1,2")
    Uniform(low=1.0, high=2.0)
    >>> parse_prior("mixture:0.3*uniform:0,1+0.7*exponential:2")
    Mixture([Uniform(low=0.0, high=1.0), Exponential(scale=2.0)], weights=[0.3, 0.7])
    """
    return _parsed(text, 0)


def _parsed(text: str, depth: int) -> Prior:
    if not isinstance(text, str):
        raise PriorError(f"a prior's text must be text such as {_EXAMPLE!r}, got {type(text).__name__}")
    family, colon, rest = (part.strip() for part in text.partition(":"))
    if colon and (found := _family_of(family)) is not None:
        return _parse_parametric(found, rest, text)
    if colon and family == Mixture.family:
        return _parse_mixture(rest, text, depth + 1)
    if colon and family == Truncated.family:
        return _parse_truncated(rest, text, depth + 1)
    if colon and family == Empirical.family:
        weights, values = zip(*_parse_sample(rest.split(","), family), strict=True)
        return Empirical(values, weights)
    if colon and family == ScipyPrior.family:
        return _parse_scipy(rest, text)
    if colon and family == Histogram.family:
        low, *bins = rest.split(",")
        weighted = [_parse_weighted(part, text, needed="weight*edge after the first edge") for part in bins]
        edges = [_parse_number(low, text), *(edge for _, edge in weighted)]
        return Histogram(edges, [weight for weight, _ in weighted])
    if colon and family == KernelDensity.family:
        bandwidth, *parts = rest.split(",")
        pairs = _parse_sample(parts, family)
        width = _parse_number(bandwidth, text)
        return KernelDensity([value for _, value in pairs], width, [weight for weight, _ in pairs])
    known = ", ".join([*_PARAMETRIC, *_COMPOSED, *REGISTERED])
    raise UnknownFamily(
        f"a prior's text must be a family and its numbers, as in {_EXAMPLE!r}, the family one of {known}, got"
        f" {family + colon!r};"
        f" {_UNKNOWN}"
    )


def prior_from_dict(form: Mapping[str, Any]) -> Prior | Grouped:
    """Return the prior that a plain dict describes: a `Prior`, or a `Grouped` for the family ``grouped``.

    >>> prior_from_dict({"family": "exponential", "scale": 0.5})
    Exponential(scale=0.5)
    """
    if not isinstance(form, Mapping):
        raise PriorError(f"a prior's dict must be a dict, got {type(form).__name__}")
    if form.get("family") != Grouped.family:
        return _single(form)
    _check_keys(form, Grouped.family, "priors", "labels")
    if not isinstance(form["priors"], Mapping):
        raise PriorError(f"priors must be a dict of names and dicts, got {form['priors']!r}", field="priors")
    priors = {name: _single(prior) for name, prior in form["priors"].items()}
    return Grouped(priors, _list(form["labels"], "labels", "names"))


def _single(form: Mapping[str, Any], depth: int = 0) -> Prior:
    """Return the prior of one person, this deep within mixtures."""
    family = form.get("family") if isinstance(form, Mapping) else form
    if (found := _family_of(family)) is not None:
        names = found.parameter_names()
        _check_keys(form, found.family, *names)
        return found(*(_number(form[name]) for name in names))
    if family == Empirical.family:
        _check_keys(form, family, "values", "weights")
        return Empirical(form["values"], form["weights"])
    if family == Mixture.family:
        _check_keys(form, family, "components", "weights")
        _check_depth(depth + 1)
        components = _list(form["components"], "components", "dicts")
        return Mixture([_single(component, depth + 1) for component in components], form["weights"])
    if family == Truncated.family:
        _check_keys(form, family, "prior", "low", "high")
        _check_depth(depth + 1)
        return Truncated(_single(form["prior"], depth + 1), _number(form["low"]), _number(form["high"]))
    if family == ScipyPrior.family:
        _check_keys(form, family, "name", "shapes", "loc", "scale")
        shapes = [_number(shape) for shape in _list(form["shapes"], "shapes", "numbers")]
        return scipy_prior(form["name"], shapes, form["loc"], form["scale"])
    if family == Histogram.family:
        _check_keys(form, family, "edges", "weights")
        return Histogram(form["edges"], form["weights"])
    if family == KernelDensity.family:
        _check_keys(form, family, "bandwidth", "values", "weights")
        return KernelDensity(form["values"], to_positive(form["bandwidth"], "bandwidth"), form["weights"])
    known = ", ".join([*_PARAMETRIC, *_COMPOSED, *REGISTERED, Grouped.family])
    shown = family if not isinstance(family, str) else family[:_LONGEST_WORDS]
    raise UnknownFamily(f"a prior's family must be one of {known}, got family={shown!r}; {_UNKNOWN}")


def _check_keys(form: Mapping[str, Any], family: str, *names: str) -> None:
    if set(form) != {"family", *names}:
        given = ", ".join(sorted(str(name) for name in form if name != "family")) or "nothing"
        raise PriorError(f"the dict of a prior of family {family!r} must hold {', '.join(names)}, got {given}")


def _list(value: Any, name: str, of: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise PriorError(f"{name} must be a list of {of}, got {value!r}", field=name)
    return list(value)


def _number(value: Any) -> Any:
    """Return the value of a dict; only infinity is written as text, and the family checks everything else."""
    return float("inf") if value == "inf" else value


def _parse_parametric(family: type[ParametricPrior], rest: str, text: str) -> Prior:
    names = family.parameter_names()
    needed = sum(field.default is MISSING for field in fields(family))  # type: ignore[arg-type]
    parts = rest.split(",") if rest else []
    if not needed <= len(parts) <= len(names):
        raise PriorError(
            f"the text of a prior of family {family.family!r} must read {family.family}:{','.join(names)}, got {text!r}"
        )
    return family(*(_parse_number(part, text) for part in parts))


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise PriorError(
            f"priors must not be nested more than {_DEEPEST} deep: write one mixture with all components side by side"
        )


def _parse_mixture(rest: str, text: str, depth: int) -> Prior:
    _check_depth(depth)
    weights, components = [], []
    for term in _split_outside_parentheses(rest, text):
        weight, star, component = (part.strip() for part in term.partition("*"))
        if not star:
            found = text_shown(term.strip())
            raise PriorError(f"a mixture's component must read weight*prior, got {found!r} in {text_shown(text)!r}")
        if component.startswith("(") and component.endswith(")"):
            component = component[1:-1]
        weights.append(_parse_number(weight, text))
        components.append(_parsed(component, depth))
    return Mixture(components, weights)


def _parse_truncated(rest: str, text: str, depth: int) -> Prior:
    _check_depth(depth)
    low, first, others = rest.partition(",")
    high, second, inner = others.partition(",")
    if not (first and second):
        raise PriorError(f"a truncated prior must read truncated:low,high,prior, got {text_shown(text)!r}")
    ends = [_parse_number(part, text) for part in (low, high)]
    return Truncated(_parsed(inner.strip(), depth), *ends)


def _split_outside_parentheses(rest: str, text: str) -> list[str]:
    """Return the terms between plus signs, except those of an exponent (1e+5) or within parentheses."""
    terms, depth, start = [], 0, 0
    for match in re.finditer(r"[()]|(?<![0-9.][eE])\+", rest):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth < 0:
            break
        if depth == 0 and match.group() == "+":
            terms.append(rest[start : match.start()])
            start = match.end()
    if depth != 0:
        raise PriorError(f"parentheses must be balanced in a prior's text, got {text_shown(text)!r}")
    return [*terms, rest[start:]]


def _parse_scipy(rest: str, text: str) -> Prior:
    name, *parts = (part.strip() for part in rest.split(","))
    named = {key.strip(): _parse_number(value, text) for key, sign, value in (p.partition("=") for p in parts) if sign}
    if not set(named) <= {"loc", "scale"}:
        raise PriorError(f"a SciPy prior's text takes shapes, then loc= and scale=, got {text!r}")
    shapes = [_parse_number(part, text) for part in parts if "=" not in part]
    return scipy_prior(name, shapes, named.get("loc", 0.0), named.get("scale", 1.0))


def _parse_sample(parts: list[str], family: str) -> list[tuple[float, float]]:
    """Return weights and values of a sample. They are people's: a message names the place, not the value."""
    pairs = []
    for place, part in enumerate(parts):
        try:
            pairs.append(_parse_weighted(part, ""))
        except PriorError:
            problem = (
                f"samples of a prior of family {family!r} must be numbers, or weight*number, but row {place} is not"
            )
            raise PriorError(problem, field="samples", row=place) from None
    return pairs


def text_shown(text: str) -> str:
    """Return a prior's text as a message may show it: without the values of a sample."""
    head, colon, _ = text.partition(":")
    made_of_people = any(f"{family}:" in text for family in (Empirical.family, KernelDensity.family))
    return f"{head}{colon}..." if made_of_people else text


def _parse_weighted(part: str, text: str, *, needed: str = "") -> tuple[float, float]:
    weight, star, value = part.partition("*")
    if not star and needed:
        raise PriorError(f"a histogram must read {needed}, got {part.strip()!r} in {text!r}")
    if not star:
        return 1.0, _parse_number(part, text)
    return _parse_number(weight, text), _parse_number(value, text)


def _parse_number(part: str, text: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise PriorError(
            f"a number was expected in place of {part.strip()!r} in the prior {text_shown(text)!r}"
        ) from None


def prior_words(prior: Prior | Grouped, *, say: Callable[..., str] = str.format) -> str:
    """Return a prior as a reader can see it. One made of a sample is described: its values are people's.

    ``say`` fills in a sentence, where another language is spoken.
    """
    if isinstance(prior, Grouped):
        parts = [f"{name}: {prior_words(one, say=say)}" for name, one, _ in prior.groups[:_MOST_GROUPS]]
        more = len(prior.groups) - _MOST_GROUPS
        listed = "; ".join(parts) + (say("; and {more} more", more=more) if more > 0 else "")
        return say("one per group ({listed})", listed=listed)
    if isinstance(prior, Empirical | KernelDensity):
        if isinstance(prior, Empirical):
            return say("the distribution of a sample with {count:,} distinct values", count=prior.values.size)
        return say("the smoothed distribution of a sample with {count:,} distinct values", count=prior.values.size)
    if isinstance(prior, OwnPrior) and REGISTERED.get(getattr(prior, "family", "")) is not type(prior):
        return say("a {name} distribution, which is not registered", name=type(prior).__name__)
    text = four_digits(prior.to_text())
    made_of_people = any(f"{family}:" in text for family in (Empirical.family, KernelDensity.family))
    short = len(text) <= _LONGEST_WORDS and not made_of_people
    return text if short else say("a {name} distribution, stated in full in the record", name=prior.family)
