"""Distributions of privacy sensitivities, their virtual costs and ironing."""

from hushbid.priors.base import Prior
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, LogNormal, Uniform
from hushbid.priors.forms import parse_prior, prior_from_dict

__all__ = [
    "Empirical",
    "Exponential",
    "LogNormal",
    "Prior",
    "Uniform",
    "parse_prior",
    "prior_from_dict",
]
