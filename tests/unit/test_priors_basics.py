"""What every prior promises, whatever its family."""

import numpy as np
import pytest

from hushbid.errors import ReportError
from hushbid.priors import Empirical, Exponential, LogNormal, Uniform, parse_prior, prior_from_dict

PRIORS = [Uniform(1, 2), Exponential(0.5), LogNormal(0, 1), Empirical([1, 2, 2, 4])]


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_dict_and_text_forms_read_back_as_the_same_prior(prior):
    assert prior_from_dict(prior.to_dict()) == prior
    assert parse_prior(prior.to_text()) == prior


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_a_report_that_is_not_a_nonnegative_number_is_refused_by_row(prior):
    for bad in (-1.0, np.nan):
        with pytest.raises(ReportError, match="row 1"):
            prior.virtual_cost([1.5, bad])
