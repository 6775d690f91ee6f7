"""One person's device: exact noise, one message ever, and the wire format with its test vectors."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hushbid.disclosure import Message, ReleasePlan, noise, privatize, release_plan
from hushbid.disclosure.grid import to_grid
from hushbid.disclosure.local import SMALLEST_LOSS, grid_bits, noise_scale
from hushbid.disclosure.messages import as_ratio, cut_off
from hushbid.errors import DataError, InfiniteLoss, InputError, ReleaseError
from hushbid.questions import PARTS

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "wire-v1.json").read_text())


@pytest.mark.parametrize("case", VECTORS["encode"], ids=lambda case: case["name"])
def test_the_grid_value_and_metadata_match_the_vectors(
    case: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[float] = []

    def no_noise(totals: list[int], *, scale: float) -> list[int]:
        scales.append(scale)
        return list(totals)

    monkeypatch.setattr(noise, "draw_many", no_noise)
    loss = float(case["privacy_loss"])  # type: ignore[arg-type]
    message = privatize(
        float(case["value"]),  # type: ignore[arg-type]
        loss,
        tuple(case["bounds"]),  # type: ignore[arg-type]
        accept_infinite_loss=loss == math.inf,
    )
    assert message.to_dict() == case["message_without_noise"]
    if loss < math.inf:
        numerator, denominator = (int(part) for part in case["least_noise_scale"])  # type: ignore[attr-defined]
        assert Fraction(scales[0]) >= Fraction(numerator, denominator)
        assert Fraction(scales[0]) <= Fraction(numerator, denominator) * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("case", VECTORS["decode"], ids=lambda case: case["name"])
def test_messages_decode_as_the_vectors_say(case: dict[str, object]) -> None:
    message = Message.from_json(json.dumps(case["message"]), "value")
    assert message.decode(tuple(case["bounds"])) == float(case["value"])  # type: ignore[arg-type]
    assert json.loads(message.to_json()) == case["message"]


@pytest.mark.parametrize("case", VECTORS["refuse"], ids=lambda case: case["name"])
def test_malformed_messages_are_refused_without_being_shown(case: dict[str, object]) -> None:
    with pytest.raises(InputError) as refusal:
        Message.from_json(str(case["text"]), "value")
    assert "271828" not in str(refusal.value)


def test_a_message_that_says_something_twice_is_refused() -> None:
    text = privatize(0.3, 0.1, (0.0, 1.0)).to_json()
    with pytest.raises(InputError, match="no key occurs twice"):
        Message.from_json(text.replace("{", '{"value": "0", ', 1), "value")


def test_a_message_survives_the_wire() -> None:
    message = privatize(0.3, 0.1, (0.0, 1.0))
    assert Message.from_json(message.to_json(), "value") == message
    assert message.privacy_loss == Fraction(0.1)


@pytest.mark.parametrize("loss", [SMALLEST_LOSS, 1e-9, 0.1, 1 / 3, 1.0, 7.3, 1e10, 1e300, 1.7e308])
def test_the_noise_keeps_the_promise_exactly_and_is_no_larger_than_needed(loss: float) -> None:
    bits = grid_bits(loss)
    scale = noise_scale(loss, bits)
    assert 1 <= bits <= 32
    assert Fraction(2**bits) / Fraction(scale) <= Fraction(loss)
    assert Fraction(2**bits) / Fraction(math.nextafter(scale, 0.0)) > Fraction(loss)
    assert noise.loss_bounds([2**bits], scale=scale)[0] <= loss
    assert isinstance(privatize(0.5, loss, (0, 1)).value, int)


@pytest.mark.parametrize("loss", [0.0, -0.0, -1.0, math.nan, 5e-324, math.nextafter(SMALLEST_LOSS, 0.0), "much"])
def test_losses_that_allow_no_message_are_refused(loss: float) -> None:
    with pytest.raises(InputError, match="privacy_loss must be"):
        privatize(0.5, loss, (0, 1))


def test_an_infinite_loss_needs_to_be_accepted_by_name() -> None:
    with pytest.raises(InfiniteLoss, match="accept_infinite_loss"):
        privatize(0.5, math.inf, (0, 1))
    assert privatize(0.5, math.inf, (0, 1), accept_infinite_loss=True).decode((0.0, 1.0)) == 0.5


@pytest.mark.parametrize("value", [None, math.nan, "0.271828", [0.271828], 0.271828j])
def test_a_value_that_is_no_number_is_refused_without_being_shown(value: object) -> None:
    with pytest.raises(DataError) as refusal:
        privatize(value, 1.0, (0, 1))  # type: ignore[arg-type]
    assert "271828" not in str(refusal.value)


def test_values_outside_the_range_are_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "draw_many", lambda totals, *, scale: list(totals))
    for value, expected in (
        (-1e300, 0),
        (math.inf, 2**32),
        (10**400, 2**32),
        (math.nextafter(1.0, 2.0), 2**32),
        (-0.0, 0),
    ):
        assert privatize(value, 1.0, (0, 1)).value == expected


def test_every_call_without_a_store_draws_anew() -> None:
    assert len({privatize(0.5, 1.0, (0, 1)).value for _ in range(20)}) == 20


# The store


def test_the_first_noisy_value_is_what_every_retry_sends(tmp_path: Path) -> None:
    store = tmp_path / "campaign" / "my value"
    first = privatize(0.3, 0.5, (0, 1), store=store)
    assert all(privatize(0.3, 0.5, (0, 1), store=str(store)) == first for _ in range(5))


def test_the_stored_file_is_private_and_says_no_more_than_the_message(tmp_path: Path) -> None:
    first = privatize(0.271828, 0.5, (0, 1), store=tmp_path / "mine")
    [path] = tmp_path.glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    drawing = json.loads(path.read_text())["drawing"]
    assert set(drawing) == {"format", "version", "bounds", "epsilon", "message"}
    assert drawing["message"] == first.to_dict()
    # Another value brings the first message back, so the store is no oracle for the value either.
    assert privatize(0.9, 0.5, (0, 1), store=tmp_path / "mine") == first


def test_other_terms_for_the_same_store_are_refused(tmp_path: Path) -> None:
    privatize(0.3, 0.5, (0, 1), store=tmp_path / "mine")
    for loss, bounds in ((0.25, (0, 1)), (0.5, (0, 2)), (math.nextafter(0.5, 1.0), (0, 1))):
        with pytest.raises(ReleaseError, match="another privacy loss or other bounds"):
            privatize(0.3, loss, bounds, store=tmp_path / "mine")


def test_a_damaged_store_is_neither_sent_nor_drawn_again(tmp_path: Path) -> None:
    privatize(0.3, 0.5, (0, 1), store=tmp_path / "mine")
    path = tmp_path / "mine.json"
    path.chmod(0o600)
    path.write_text(path.read_text().replace('"value":"', '"value":"1'))
    with pytest.raises(ReleaseError, match="damaged"):
        privatize(0.3, 0.5, (0, 1), store=tmp_path / "mine")


def test_a_missing_value_leaves_no_claim_that_blocks_the_person(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        privatize(math.nan, 0.5, (0, 1), store=tmp_path / "new" / "mine")
    assert not (tmp_path / "new").exists()
    assert privatize(0.4, 0.5, (0, 1), store=tmp_path / "mine").epsilon == (1, 2)


def test_the_grid_is_a_pure_function_of_one_value() -> None:
    values = np.random.default_rng(0).uniform(-2, 2, size=100)
    together = to_grid(values, (-1.0, 1.0))
    assert together.tolist() == [int(to_grid(np.array([value]), (-1.0, 1.0))[0]) for value in values]


def test_one_synthetic_message_moves_the_estimate_by_no_more_than_fifty_times_its_noise() -> None:
    honest = [privatize(0.5, 1.0, (0, 1)) for _ in range(9)]
    plan = ReleasePlan.of([1.0] * 10, setting="local", bounds=(0, 1), variance=None, key="made-up")
    lie = {**honest[0].to_dict(), "value": str(2**63 - 1)}
    with pytest.raises(DataError, match="row 9 cannot be read: value must lie within 50 noise scales"):
        release_plan(plan, [*honest, lie])
    farthest = {**lie, "value": str(51 * 2**32)}
    told = release_plan(plan, [*honest, farthest])
    without = sum(message.decode((0, 1)) for message in honest) / 10
    assert told.estimate == pytest.approx(without + 5.1)


@pytest.mark.parametrize("loss", [2.0**-53, 1e-9, 2.0**-22, 0.1, 1.0, 3.7, 1e6])
def test_what_noise_may_reach_is_farther_than_it_gets_and_fits_in_64_bits(loss: float) -> None:
    bits, ratio = grid_bits(loss), as_ratio(loss)

    def within_reach(step: int) -> int:
        return cut_off((step,), bits, ratio, PARTS)[0]

    farthest = within_reach(2**200) - 2**bits
    assert -within_reach(-(2**200)) == farthest
    assert math.exp(-farthest / noise_scale(loss, bits)) <= math.exp(-50.0) * 1.0001
    assert 2**bits + farthest < 2**63
    assert all(within_reach(k) == k for k in (-farthest, 0, 2**bits, 2**bits + farthest))
