"""The picture of a pilot sample against fitted priors: complete, and without anybody's value."""

import math
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hushbid import Empirical, LogNormal, Mixture, TruncatedNormal, Uniform
from hushbid.errors import InputError
from hushbid.report import prior_picture
from tests.extent import each


def fitted(sample: np.ndarray) -> dict[str, Any]:
    return {
        "lognormal": LogNormal(float(np.log(sample).mean()), float(np.log(sample).std())),
        "mixture": Mixture([LogNormal(0, 0.3), TruncatedNormal(3, 0.3, 0, 6)], [0.7, 0.3]),
        "empirical": Empirical(sample),
    }


def test_the_picture_of_a_prior_is_a_document_without_anybodys_value() -> None:
    sample = np.random.default_rng(0).lognormal(size=200)
    picture = prior_picture(sample, fitted(sample), chosen="mixture", currency="EUR")
    root = ET.fromstring(picture.encode())
    assert root.tag.endswith("svg")
    text = " ".join("".join(root.itertext()).split())
    for needed in ("pilot sample, 200 people", "mixture, chosen, ironed", "virtual cost after ironing", "person, EUR"):
        assert needed in text
    assert not [value for value in sample.tolist() if f"{value:.5g}" in picture]
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_a_small_pilot_is_not_drawn() -> None:
    sample = np.random.default_rng(0).lognormal(size=19)
    picture = prior_picture(sample, fitted(sample))
    assert "not shown: fewer than 20 people" in picture
    assert "<circle" not in picture


@each(
    ("sample", "priors", "settings"),
    [
        ([], {"a": Uniform(1, 2)}, {}),
        ([math.nan], {"a": Uniform(1, 2)}, {}),
        ([-1.0], {"a": Uniform(1, 2)}, {}),
        ([1.0], {}, {}),
        ([1.0], {"a": Uniform(1, 2)}, {"chosen": "b"}),
        ([1.0], {str(k): Uniform(1, 2 + k) for k in range(8)}, {}),
    ],
)
def test_a_picture_of_nothing_or_too_much_is_refused(sample: list[float], priors: Any, settings: Any) -> None:
    with pytest.raises(InputError):
        prior_picture(sample, priors, **settings)
