"""Distributions of privacy sensitivities, their virtual costs and ironing."""

from hushbid.priors.base import Prior
from hushbid.priors.beta import Beta
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, Gamma, LogNormal, Uniform
from hushbid.priors.forms import parse_prior, prior_from_dict
from hushbid.priors.grouped import Grouped
from hushbid.priors.mixture import Mixture
from hushbid.priors.scipy_prior import from_scipy
from hushbid.priors.truncated_normal import TruncatedNormal

__all__ = [
    "Beta",
    "Empirical",
    "Exponential",
    "Gamma",
    "Grouped",
    "LogNormal",
    "Mixture",
    "Prior",
    "TruncatedNormal",
    "Uniform",
    "from_scipy",
    "parse_prior",
    "prior_from_dict",
]
