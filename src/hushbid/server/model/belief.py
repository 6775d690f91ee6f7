"""What an analyst believes about costs: one prior, or one for each group; read from a request, and checked."""

from collections.abc import Mapping

from hushbid.errors import HushbidError, InputError
from hushbid.priors import Prior, parse_prior, prior_from_dict
from hushbid.server.model.checks import checked_text

_MOST_GROUPS = 50
_LEAST_PRICE, _MOST_PRICE = 1e-9, 1e12
_NEARLY_ALL = 0.999
_NARROWEST = 1e-6


def checked_prior(prior: object) -> Prior | dict[str, Prior]:
    """One prior or one for each group, over prices that somebody could name."""
    if isinstance(prior, Prior):
        return _with_prices(prior)
    if not isinstance(prior, Mapping) or not 1 <= len(prior) <= _MOST_GROUPS:
        raise InputError(
            f"prior must be a prior such as Uniform(1, 2), or one for each of 1 to {_MOST_GROUPS} groups.",
            field="prior",
        )
    if not all(isinstance(one, Prior) for one in prior.values()):
        raise InputError("prior must map every group to a prior.", field="prior")
    return {checked_text(name, "group", needed=True): _with_prices(one) for name, one in prior.items()}


def _with_prices(prior: Prior) -> Prior:
    """A prior over prices that somebody could name and be paid; others overflow where payments are computed."""
    middle, high = (float(prior.quantile(share)) for share in (0.5, _NEARLY_ALL))
    if not (middle >= _LEAST_PRICE and high <= _MOST_PRICE):
        raise InputError(
            f"prior must have its median at {_LEAST_PRICE:g} or more and nearly all prices up to {_MOST_PRICE:g}, got"
            f" {middle:g} and {high:g}.",
            field="prior",
        )
    if middle < high < middle * (1.0 + _NARROWEST):
        raise InputError("prior must not be so narrow that doubles cannot tell its prices apart.", field="prior")
    return prior


def prior_of(form: object) -> Prior | dict[str, Prior]:
    """The priors in a request."""
    if isinstance(form, Mapping) and set(form) == {"groups"}:
        if not isinstance(form["groups"], Mapping):
            raise InputError("prior.groups must map names to priors.", field="prior")
        return {str(name): _one_prior(one) for name, one in form["groups"].items()}
    return _one_prior(form)


def _one_prior(form: object) -> Prior:
    try:
        if isinstance(form, str):
            return parse_prior(form)
        prior = prior_from_dict(form) if isinstance(form, Mapping) else None
    except HushbidError as problem:
        problem.field = "prior"  # whichever of its parameters
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"prior cannot be read: {type(problem).__name__}.", field="prior") from None
    if not isinstance(prior, Prior):
        raise InputError(
            'prior must be a text such as "uniform:1,2", a prior\'s fields, or {"groups": {...}}.', field="prior"
        )
    return prior
