"""The one door to OpenDP: guarded against everything it would accept in silence."""

import inspect
import math
import os
import subprocess
import sys

import pytest

from hushbid import disclosure
from hushbid.disclosure import noise
from hushbid.errors import MissingExtra, ReleaseError
from tests.extent import each


@each("scale", [0.0, -1.0, math.nan, math.inf, 2.0**55, 1, "1"])
def test_scales_that_add_no_noise_or_too_much_are_refused(scale: float) -> None:
    with pytest.raises(ReleaseError, match="noise scale"):
        noise.draw_many([0], scale=scale)


@pytest.mark.parametrize("total", [2**60 + 1, -(2**60) - 1, 0.5, math.nan])
def test_totals_that_could_saturate_or_are_no_integers_are_refused(total: float) -> None:
    with pytest.raises(ReleaseError, match="integers of size at most"):
        noise.draw_many([0, total], scale=1.0)  # type: ignore[list-item]


def test_the_largest_total_and_scale_leave_room_for_the_tails() -> None:
    assert (2**63 - noise.LARGEST_TOTAL) / noise.LARGEST_SCALE >= 400
    drawn = noise.draw_many([noise.LARGEST_TOTAL] * 200, scale=noise.LARGEST_SCALE)
    assert max(drawn) < 2**63 - 1
    assert len(set(drawn)) == 200


def test_opendp_prices_a_power_of_two_exactly() -> None:
    assert noise.loss_bounds([3, 4], scale=2.0) == [1.5, 2.0]
    assert noise.loss_bounds([2**53], scale=2.0**54) == [0.5]
    assert noise.loss_bounds([1], scale=3.0)[0] >= 1 / 3


def test_nothing_to_draw_is_an_empty_list() -> None:
    assert noise.draw_many([], scale=1.0) == []


def test_forked_processes_draw_different_noise() -> None:
    noise.draw_many([0], scale=2.0**50)
    read, write = os.pipe()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                os.write(write, f"{noise.draw_many([0], scale=2.0**50)[0]}\n".encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as lines:
        drawn = [int(line) for line in lines]
    drawn += noise.draw_many([0], scale=2.0**50)
    assert len(set(drawn)) == 3


def test_no_seed_reaches_a_release() -> None:
    for function in (disclosure.release_plan, disclosure.privatize, noise.draw_many):
        names = set(inspect.signature(function).parameters)
        assert not names & {"rng", "seed", "random_state", "generator"}


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(MissingExtra, match=r"\.\[release\]"):
        noise.draw_many([0], scale=1.0)


def test_importing_the_package_loads_neither_opendp_nor_scipy() -> None:
    for script in (
        "import sys, hushbid.disclosure; print(sorted({'opendp', 'scipy'} & set(sys.modules)))",
        "import sys, hushbid.audit; print(sorted({'opendp', 'scipy.stats'} & set(sys.modules)))",
    ):
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
        assert done.stdout == "[]\n"


def test_drawing_does_not_load_the_packages_that_opendp_can_do_without() -> None:
    script = """
import sys
from hushbid.disclosure import privatize
privatize(0.5, 1.0, (0, 1))
print(sorted({"polars", "sklearn", "pandas", "pyarrow"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "[]\n"
