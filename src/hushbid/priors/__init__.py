"""Distributions of privacy costs, their virtual costs and ironing.

In reading order:

- `base`: `Prior`, what every prior can do: distribution, virtual cost and its inverse, samples
- `continuous`: `ContinuousPrior`, what follows from a distribution function and a density alone
- `families`, `beta`, `truncated_normal`: parametric families (uniform, exponential, log-normal and gamma in `families`)
- `mixture`, `empirical`, `scipy_prior`: made of other priors, of a sample, of a SciPy distribution
- `truncated`: any prior, cut to an interval
- `histogram`, `kernel_density`: a density that is constant between edges; a sample, smoothed
- `own_prior`: `OwnPrior`, the class from which you make a family that Hushbid does not have
- `grouped`: a prior for each group of people
- `ironing`: makes a virtual cost nondecreasing where it is not
- `tables`, `curves`, `special_functions`: the numerical methods beneath
- `inputs`: what may be given to a prior, and a sentence for what may not
- `forms`: priors as texts and as plain values (``"uniform:1,3"``), and back
- `fitting`: from a sample to the family that fits it best
- `pilot`: a fitted prior in a file, with where its sample came from
"""

from hushbid.priors.base import Prior
from hushbid.priors.beta import Beta
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, Gamma, LogNormal, Uniform
from hushbid.priors.forms import parse_prior, prior_from_dict, register
from hushbid.priors.grouped import Grouped
from hushbid.priors.histogram import Histogram
from hushbid.priors.kernel_density import KernelDensity
from hushbid.priors.mixture import Mixture
from hushbid.priors.own_prior import OwnPrior
from hushbid.priors.scipy_prior import from_scipy
from hushbid.priors.truncated import Truncated
from hushbid.priors.truncated_normal import TruncatedNormal

__all__ = [
    "Beta",
    "Empirical",
    "Exponential",
    "Gamma",
    "Grouped",
    "Histogram",
    "KernelDensity",
    "LogNormal",
    "Mixture",
    "OwnPrior",
    "Prior",
    "Truncated",
    "TruncatedNormal",
    "Uniform",
    "from_scipy",
    "parse_prior",
    "prior_from_dict",
    "register",
]
