"""A release: what it says, to whom, who is counted, and that it happens once."""

import json
import math
import threading
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from hushbid.disclosure import (
    Message,
    Release,
    ReleasePlan,
    noise,
    privatize,
    release_plan,
    simulate_plan,
)
from hushbid.disclosure.delivery import planned_error
from hushbid.disclosure.error import published_errors
from hushbid.disclosure.ledger import files, once
from hushbid.errors import (
    AlreadyReleased,
    DataError,
    InfiniteLoss,
    InputError,
    NothingDelivered,
    RecordError,
    ReleaseError,
    Unwritable,
)
from hushbid.estimation import Setting, best_weights
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from tests.disclosure.support import error_model

_labels = count()


def plan_of(
    promised: object, *, setting: str = "central", bounds: tuple[float, float] = (0.0, 1.0), **more: object
) -> ReleasePlan:
    """A plan that no other test has released."""
    more.setdefault("label", f"{__name__} {next(_labels)}")
    return ReleasePlan.of(promised, setting=setting, bounds=bounds, **more)  # type: ignore[arg-type]


def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that arithmetic can be compared."""
    monkeypatch.setattr(noise, "draw_many", lambda totals, *, scale: list(totals))


def test_without_noise_the_estimate_is_the_weighted_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)
    losses, data = np.array([0.5, 1.0, 2.5]), np.array([3.0, -1.0, 7.25])
    release = release_plan(plan_of(losses, bounds=(-5.0, 10.0)), data)
    assert release.estimate == pytest.approx(losses @ data / losses.sum(), abs=1e-10)


def test_everybody_loses_at_most_what_was_promised_and_nearly_all_of_it() -> None:
    losses = np.random.default_rng(0).exponential(size=500)
    release = release_plan(plan_of(losses), np.zeros(500))
    assert (release.privacy_loss <= losses).all()
    assert release.privacy_loss == pytest.approx(losses, rel=1e-12)
    assert release.check.people == release.check.people_in_fractions == 500


def test_planned_losses_below_the_promised_ones_are_what_is_delivered() -> None:
    promised = np.array([1.0, 1.0, 50.0])
    best = best_weights(promised, setting="central", variance=0.25)
    release = release_plan(plan_of(promised, delivered=best.delivered), np.zeros(3))
    assert release.privacy_loss.tolist() == [1.0, 1.0, 5.0]
    assert release.check.largest_share == 1.0
    assert release.standard_error**2 == pytest.approx(best.mse)


def test_the_standard_error_is_the_formula_in_data_units() -> None:
    losses = np.array([0.5, 1.0, 2.0])
    release = release_plan(plan_of(losses, bounds=(0.0, 8.0), variance=3.0), [1.0, 2.0, 3.0])
    weights, total = losses / 3.5, 3.5
    assert release.standard_error**2 == pytest.approx(2 * (8 / total) ** 2 + 3.0 * np.sum(weights**2))
    assert release.error.half_width(0.9) < release.error.half_width(0.99)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_an_impossible_level_is_refused(level: float) -> None:
    release = release_plan(plan_of([1.0]), [0.5])
    with pytest.raises(InputError, match="level"):
        release.interval(level)


def test_unequal_variances_enter_the_error() -> None:
    release = release_plan(plan_of([1.0, 1.0], variance=[0.1, 0.2]), [0.5, 0.5])
    assert release.standard_error**2 == pytest.approx(2 / 4 + (0.1 + 0.2) / 4)


def test_drop_outs_are_renormalised_and_no_promise_suffers(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)
    losses = np.array([0.5, 1.0, 2.0, 0.25])
    plan = plan_of(losses)
    release = release_plan(plan, [0.25, None, 0.75, math.nan])
    assert release.estimate == pytest.approx((0.5 * 0.25 + 2.0 * 0.75) / 2.5, abs=1e-11)
    assert release.privacy_loss.tolist() == [0.5, 0.0, 2.0, 0.0]
    assert release.dropped_out == (1, 3)
    assert release.grid.noise_scale is not None
    assert release.grid.total_weight is not None
    assert release.grid.total_weight / release.grid.noise_scale == pytest.approx(2.5)
    assert release.standard_error > math.sqrt(release.planned_error.mse)


def test_from_an_optimum_every_drop_out_raises_the_error() -> None:
    promised = np.random.default_rng(4).exponential(size=12)
    delivered = best_weights(promised, setting="central", variance=0.25).delivered
    for missing in range(12):
        data = [None if row == missing else 0.5 for row in range(12)]
        release = release_plan(plan_of(promised, delivered=delivered), data)
        assert release.error.mse > release.planned_error.mse


def test_people_with_zero_loss_have_nothing_to_deliver_and_are_not_read() -> None:
    release = release_plan(plan_of([1.0, 0.0, -0.0]), [0.5, "anything", None])
    assert release.privacy_loss.tolist() == [1.0, 0.0, 0.0]
    assert release.dropped_out == ()


@pytest.mark.parametrize(
    ("losses", "data"), [([1.0, 1.0], [None, math.nan]), ([0.0, 1.0], [0.5, None]), ([0.0], [0.5])]
)
def test_nobody_delivered_is_a_clear_error_that_counts_those_who_should_have(
    losses: list[float], data: list[object]
) -> None:
    told = f"None of the {sum(loss > 0 for loss in losses)} people with a positive privacy loss delivered"
    with pytest.raises(NothingDelivered, match=told):
        release_plan(plan_of(losses), data)
    with pytest.raises(NothingDelivered, match=told):
        release_plan(plan_of(losses, setting="local"), [None] * len(losses))


def test_losses_too_small_for_the_grid_are_a_clear_error() -> None:
    with pytest.raises(ReleaseError, match=r"at least 2\*\*-54"):
        release_plan(plan_of([1e-300, 5e-324]), [0.5, 0.5])


def test_clamped_values_are_counted_whatever_their_size() -> None:
    data = [math.nextafter(0.0, -1.0), -0.0, 1.0, math.nextafter(1.0, 2.0), math.inf, -math.inf, 1e300]
    release = release_plan(plan_of(np.ones(7)), data)
    assert release.clamped == 5


def test_an_infinite_loss_is_refused_unless_accepted_by_name() -> None:
    for setting in ("central", "local"):
        with pytest.raises(InfiniteLoss, match=r"row 1: pass accept_infinite_loss=True"):
            release_plan(plan_of([1.0, math.inf], setting=setting), [0.5, 0.5])


def test_with_an_accepted_infinite_loss_the_mean_of_those_people_is_released_without_noise() -> None:
    plan = plan_of([1.0, math.inf, math.inf, 0.0], bounds=(0.0, 100.0))
    release = release_plan(plan, [90.0, 10.0, 20.0, 5.0], accept_infinite_loss=True)
    assert release.estimate == pytest.approx(15.0, abs=1e-9)
    assert release.privacy_loss.tolist() == [0.0, math.inf, math.inf, 0.0]
    assert release.grid.noise_scale == 0.0
    assert release.standard_error == pytest.approx(50 / math.sqrt(2))
    again = Release.from_dict(json.loads(json.dumps(release.to_dict(), allow_nan=False)))
    assert again.to_dict() == release.to_dict()


def test_if_those_with_infinite_loss_drop_out_the_others_are_protected_as_promised() -> None:
    release = release_plan(plan_of([1.0, math.inf]), [0.5, None], accept_infinite_loss=True)
    assert release.privacy_loss.tolist() == [1.0, 0.0]
    assert release.grid.noise_scale == 2.0**54


def test_a_hand_made_plan_cannot_deliver_more_than_it_promises() -> None:
    honest = plan_of([1.0, 1.0])
    for delivered in ([1.0, math.nextafter(1.0, 2.0)], [1.0, math.inf]):
        forged = replace(honest, delivered=np.array(delivered))
        with pytest.raises(ReleaseError):
            release_plan(forged, [0.5, 0.5], accept_infinite_loss=True)


def test_wrong_data_are_refused_before_anything_is_drawn_or_claimed(tmp_path: Path) -> None:
    plan = plan_of([1.0, 1.0])
    for data in ([0.5], [0.5, "x"], 3):
        with pytest.raises(DataError):
            release_plan(plan, data, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert release_plan(plan, [0.5, 0.5], folder=tmp_path).key == plan.key


def test_public_depends_on_the_data_only_through_the_noisy_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "draw_many", lambda totals, *, scale: [12345] * len(totals))
    losses = [0.5, 1.0, 2.0, 1.0, 1.0]
    several = [[0.0] * 5, [5.0, -3.0, 1e9, 0.0, 1.0], [0.1, None, 0.3, None, None], [None, None, 1.0, None, None]]
    shown = [
        release_plan(plan_of(losses, label=f"public {number}"), data).public() for number, data in enumerate(several)
    ]
    estimates = [public.pop("estimate") for public in shown]
    assert all(public == shown[0] for public in shown)
    assert len(estimates) == 4
    assert set(shown[0]) == {"format", "version", "setting", "bounds", "planned_standard_error", "planned_half_width"}


@pytest.mark.parametrize("setting", ["central", "local"])
def test_public_figures_do_not_single_out_a_bid_even_for_somebody_who_knows_all_others(setting: Setting) -> None:
    """Try every bid that she could have made: with all digits of the planned error only hers would fit."""
    market = Market(prior=Uniform(1, 2), setting=setting, bounds=(0, 10), buyer_weight=50.0, user_weight=0.0)
    others = [1.02, 1.1, 1.17, 1.25, 1.31, 1.42, 1.5, 1.63, 1.74]
    exact, told = [], []
    for bid in np.linspace(1.0, 2.0, 101).tolist():
        outcome = market.acquire([bid, *others])
        plan = ReleasePlan.of(outcome.privacy_loss, setting=setting, bounds=market.bounds, variance=25.0, key="attack")
        planned = planned_error(plan)
        exact.append(planned.mse)
        told.append(json.dumps(published_errors(planned, people=outcome.active)))
    assert len(set(exact)) == 101
    fitting = [told.count(one) for one in told]
    assert min(fitting) > 1
    assert np.median(fitting) > 40


def test_public_errors_are_never_below_the_planned_ones_not_even_by_a_last_digit() -> None:
    for variance in (9.610000000001, 0.49, 0.090000000000001):
        spread, noise_scale = np.array([variance]), np.zeros(1)
        planned = error_model(weights=np.ones(1), variance=spread, noise=noise_scale)
        public = published_errors(planned, people=10)
        assert public["planned_standard_error"] >= math.sqrt(variance)


@pytest.mark.parametrize("people", [1, 2, 4, 5])
def test_public_errors_are_withheld_where_fewer_than_five_are_behind_them(people: int) -> None:
    losses = [0.37 + 0.01 * row for row in range(people)]
    public = release_plan(plan_of([*losses, 0.0], label=f"few {people}"), [5.0] * people + [None]).public()
    shown = public["planned_standard_error"], public["planned_half_width"]["value"]
    if people < 5:
        assert shown == (None, None)
    else:
        assert all(float(f"{value:.2g}") == value for value in shown)


def test_public_names_nobody_and_no_losses() -> None:
    release = release_plan(plan_of([0.123456, 1.0]), [7.0, None])
    text = json.dumps(release.public())
    for secret in ("0.123456", release.key, "clamped", "dropped", "privacy_loss", "noise_scale", "weight"):
        assert secret not in text


def test_the_estimate_lies_on_a_public_grid_that_does_not_tell_who_dropped_out() -> None:
    losses = [0.3, 0.5, 0.7]
    for missing in (None, 1):
        data = [None if row == missing else 0.4 for row in range(3)]
        central = release_plan(plan_of(losses), data)
        sent = [None if row == missing else privatize(0.4, losses[row], (0, 1)) for row in range(3)]
        local = release_plan(plan_of(losses, setting="local"), sent)
        assert (central.estimate * 2**40).is_integer()
        assert (local.estimate * 2**40).is_integer()


def test_what_is_printed_shows_no_person() -> None:
    release = release_plan(plan_of([0.5, 1.0]), [0.5, None])
    assert "privacy_loss" not in repr(release)
    assert repr(release).startswith("Release(estimate=")


def test_a_release_survives_its_dict_and_json() -> None:
    release = release_plan(plan_of([0.1, 1 / 3, 2.0]), [0.5, None, 9.0])
    plain = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    again = Release.from_dict(plain)
    assert again.to_dict() == release.to_dict()
    assert again.interval(0.8) == release.interval(0.8)
    assert again.privacy_loss.tolist() == release.privacy_loss.tolist()
    assert list(release.to_dict())[-1] == "estimate"
    assert set(release.versions) == {"hushbid", "opendp"}


def test_an_unknown_or_incomplete_dict_is_refused() -> None:
    good = release_plan(plan_of([1.0]), [0.5]).to_dict()
    for change in ({"version": 2}, {"format": "other"}, {"grid": {}}, {"bounds": [1]}, {"privacy_loss": ["x"]}):
        with pytest.raises(RecordError):
            Release.from_dict({**good, **change})
    del good["estimate"]
    with pytest.raises(RecordError, match="estimate"):
        Release.from_dict(good)


def test_anybody_can_verify_the_promises_from_the_dict_alone() -> None:
    losses = [0.1, 0.7, 1.9]
    plain = release_plan(plan_of(losses), [0.5, 0.5, 0.5]).to_dict()
    for delivered, promised in zip(plain["privacy_loss"], losses, strict=True):
        weight = delivered * 2.0 ** plain["grid"]["weight_exponent"]
        assert weight.is_integer()
        assert delivered <= promised
    assert plain["grid"]["noise_scale"] == 2.0 ** plain["grid"]["weight_exponent"]


# Once


def test_without_a_folder_the_users_ledger_keeps_it_and_nothing_is_drawn_twice() -> None:
    plan = plan_of([1.0, 2.0])
    first = release_plan(plan, [0.1, 0.2])
    twin = ReleasePlan.of([1.0, 2.0], setting="central", bounds=(0, 1), key=plan.key)
    once._drawn.clear()  # as a new process would start
    assert release_plan(twin, [0.9, 0.9]).to_dict() == first.to_dict()


def test_asking_again_with_a_folder_returns_the_stored_one_whatever_the_data(tmp_path: Path) -> None:
    plan = plan_of([1.0, 2.0])
    first = release_plan(plan, [0.1, 0.2], folder=tmp_path)
    second = release_plan(plan, [0.9, None], folder=str(tmp_path))
    third = release_plan(plan, "not even data", folder=tmp_path)
    assert first.to_dict() == second.to_dict() == third.to_dict()


def test_no_way_round_the_memory_through_another_folder_or_none(tmp_path: Path) -> None:
    plan = plan_of([1.0])
    release_plan(plan, [0.1], folder=tmp_path / "one")
    for elsewhere in (None, tmp_path / "two"):
        with pytest.raises(AlreadyReleased):
            release_plan(plan, [0.1], folder=elsewhere)
    plan = plan_of([1.0])
    release_plan(plan, [0.1])
    with pytest.raises(AlreadyReleased):
        release_plan(plan, [0.1], folder=tmp_path / "one")
    assert not (tmp_path / "one" / f"{plan.key}.json").exists()


def test_a_lost_folder_is_not_drawn_anew_by_the_process_that_remembers(tmp_path: Path) -> None:
    plan = plan_of([1.0])
    release_plan(plan, [0.1], folder=tmp_path)
    (tmp_path / f"{plan.key}.json").unlink()
    with pytest.raises(AlreadyReleased):
        release_plan(plan, [0.1], folder=tmp_path)


def test_a_stored_release_counts_as_shown_in_the_process_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    plan = plan_of([1.0])
    release_plan(plan, [0.1], folder=tmp_path)
    monkeypatch.setattr(once, "_drawn", {})  # as a new process would start
    release_plan(plan, [0.1], folder=tmp_path)
    with pytest.raises(AlreadyReleased):
        release_plan(plan, [0.1])


def test_a_drawing_that_fails_was_shown_to_nobody_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> list[int]:
        raise RuntimeError("no entropy")

    plan = plan_of([1.0])
    for folder in (None, tmp_path):
        with monkeypatch.context() as broken:
            broken.setattr(noise, "draw_many", fail)
            with pytest.raises(RuntimeError, match="no entropy"):
                release_plan(plan, [0.1], folder=folder)
    assert release_plan(plan, [0.1], folder=tmp_path).key == plan.key


def test_a_drawing_that_could_not_be_stored_may_only_be_completed_where_its_draft_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    plan = plan_of([1.0])
    for step in ("create", "sync"):  # before and after the draft is complete
        with monkeypatch.context() as broken:
            broken.setattr(files, step, full)
            with pytest.raises(Unwritable, match="No space left"):
                release_plan(plan, [0.1], folder=tmp_path)
        for elsewhere in (None, tmp_path / "other"):
            with pytest.raises(AlreadyReleased):
                release_plan(plan, [0.1], folder=elsewhere)
    [draft] = tmp_path.glob("*.draft")
    drawn = json.loads(draft.read_text())["drawing"]["estimate"]
    assert release_plan(plan, [0.1], folder=tmp_path).estimate == drawn


def test_many_threads_see_one_release(tmp_path: Path) -> None:
    plan = plan_of([1.0, 1.0])
    seen: list[float] = []
    refused: list[AlreadyReleased] = []

    def ask(folder: Path | None) -> None:
        try:
            seen.append(release_plan(plan, [0.5, 0.5], folder=folder).estimate)
        except AlreadyReleased as refusal:
            refused.append(refusal)

    for folder in (tmp_path, None):
        plan = plan_of([1.0, 1.0])
        seen.clear()
        refused.clear()
        threads = [threading.Thread(target=ask, args=(folder,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == 1
        assert (len(seen), len(refused)) == (8, 0)


# Local


def messages(losses: list[float], data: list[float], bounds: tuple[float, float] = (0.0, 1.0)) -> list[Message]:
    return [privatize(value, loss, bounds) for value, loss in zip(data, losses, strict=True)]


def test_a_local_release_is_the_precision_weighted_mean_of_the_messages() -> None:
    losses, bounds = [0.5, 2.0, 4.0], (-10.0, 10.0)
    sent = messages(losses, [1.0, 2.0, 3.0], bounds)
    plan = plan_of(losses, setting="local", bounds=bounds, variance=20.0)
    release = release_plan(plan, sent)
    weights = best_weights(losses, setting="local", variance=20.0 / 400)
    assert release.estimate == pytest.approx(
        sum(w * m.decode(bounds) for w, m in zip(weights.weights, sent, strict=True))
    )
    assert release.standard_error**2 == pytest.approx(weights.mse * 400)
    assert release.privacy_loss.tolist() == losses
    assert release.versions.keys() == {"hushbid"}


def test_messages_may_come_as_dicts_or_text_and_may_be_missing() -> None:
    losses = [1.0, 1.0, 1.0, 1.0, 0.0]
    first, second, third = messages(losses[:3], [0.1, 0.2, 0.3])
    release = release_plan(
        plan_of(losses, setting="local"), [first, second.to_dict(), third.to_json().encode(), None, "not read"]
    )
    mean = np.mean([message.decode((0.0, 1.0)) for message in (first, second, third)])
    assert release.estimate == pytest.approx(mean)
    assert release.dropped_out == (3,)
    assert release.privacy_loss.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_raw_data_are_refused_in_the_local_setting_without_showing_them() -> None:
    plan = plan_of([1.0, 1.0], setting="local")
    for data in ([0.123456, 0.5], np.array([0.123456, 0.5]), [privatize(0.5, 1.0, (0, 1)), 0.123456], "text", 5):
        with pytest.raises(DataError) as refusal:
            release_plan(plan, data)
        assert "0.123456" not in str(refusal.value)


def test_a_message_made_with_another_loss_than_planned_is_refused() -> None:
    plan = plan_of([1.0, 1.0], setting="local")
    with pytest.raises(DataError, match="row 1"):
        release_plan(plan, messages([1.0, math.nextafter(1.0, 2.0)], [0.5, 0.5]))
    with pytest.raises(DataError, match=r"row 0 cannot be read: .*exactly the fields"):
        release_plan(plan, [{"value": 3}, None])


def test_local_infinite_losses_take_all_the_weight_when_accepted() -> None:
    plan = plan_of([1.0, math.inf], setting="local")
    sent = [privatize(0.9, 1.0, (0, 1)), privatize(0.25, math.inf, (0, 1), accept_infinite_loss=True)]
    release = release_plan(plan, sent, accept_infinite_loss=True)
    alone = sent[1].decode((0.0, 1.0))
    assert alone == 0.25
    weights = best_weights([1.0, math.inf], setting="local", variance=0.25).weights
    assert release.estimate == pytest.approx(weights[0] * sent[0].decode((0.0, 1.0)) + weights[1] * 0.25)


# Simulation


@pytest.mark.parametrize("setting", ["central", "local"])
def test_simulation_neither_remembers_nor_needs_a_claim(setting: str) -> None:
    plan = plan_of([1.0, 2.0, 0.0], setting=setting)
    first, second = simulate_plan(plan, [0.1, 0.9, None], 50), simulate_plan(plan, [0.1, 0.9, None], 50)
    assert first.shape == (50,)
    assert not np.array_equal(first, second)
    assert simulate_plan(plan, [0.1, 0.9, 0.0], 0).shape == (0,)
    with pytest.raises(InputError, match="repetitions"):
        simulate_plan(plan, [0.1, 0.9, 0.0], -1)


def test_simulation_and_release_share_one_noise_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "draw_many", lambda totals, *, scale: [total + 10**15 for total in totals])
    plan = plan_of([1.0, 2.0])
    assert simulate_plan(plan, [0.3, 0.4], 3).tolist() == [release_plan(plan, [0.3, 0.4]).estimate] * 3
