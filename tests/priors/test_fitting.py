"""Priors fitted to a pilot: by maximum likelihood, judged on unseen data, and never for the pilot's own people."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from hushbid.cli import main
from hushbid.errors import InputError, PriorError
from hushbid.priors import (
    Beta,
    Exponential,
    Gamma,
    LogNormal,
    Mixture,
    Prior,
    TruncatedNormal,
    Uniform,
    fitting,
)
from hushbid.priors.fitting import Fit, fit_priors
from hushbid.priors.pilot import Pilot, PriorSource, prior_source, read_prior
from tests.extent import each

PRIORS: dict[str, Prior] = {
    "uniform": Uniform(1, 2),
    "exponential": Exponential(0.5),
    "lognormal": LogNormal(0, 0.5),
    "gamma": Gamma(2, 0.5),
    "truncnormal": TruncatedNormal(1.0, 0.5, 0.0, np.inf),
    "beta": Beta(2, 3, 0, 5),
}


def fitted(family: str, values: np.ndarray) -> Fit:
    bounds = (0.0, 5.0) if family == "beta" else None
    return next(fit for fit in fit_priors(values, bounds=bounds) if fit.family == family)


@each("family", PRIORS)
def test_no_nearby_parameters_are_likelier(family: str) -> None:
    values = PRIORS[family].sample(300, rng=np.random.default_rng(1))
    fit = fitted(family, values)
    form = fit.prior.to_dict()
    assert fit.log_likelihood == pytest.approx(float(np.sum(np.log(fit.prior.pdf(values)))))
    for name, value in form.items():
        if name in ("family", "low", "high"):
            continue  # ends of a support have no interior optimum
        for factor in (0.99, 1.01):
            near = prior_source({**form, name: value * factor}).priors[""]
            assert float(np.sum(np.log(near.pdf(values)))) <= fit.log_likelihood + 1e-6


@pytest.mark.parametrize("family", ["lognormal", "gamma"])
def test_the_fit_agrees_with_scipy(family: str) -> None:
    values = PRIORS[family].sample(300, rng=np.random.default_rng(2))
    prior = fitted(family, values).prior
    if isinstance(prior, Gamma):
        shape, _, scale = stats.gamma.fit(values, floc=0)
        assert (prior.shape, prior.scale) == (pytest.approx(shape, rel=1e-5), pytest.approx(scale, rel=1e-5))
    if isinstance(prior, LogNormal):
        spread, _, scale = stats.lognorm.fit(values, floc=0)
        assert (prior.sd_log, prior.mean_log) == (pytest.approx(spread), pytest.approx(np.log(scale)))


@pytest.mark.parametrize("family", ["uniform", "lognormal", "gamma", "truncnormal"])
def test_with_enough_people_the_right_family_comes_first(family: str) -> None:
    values = PRIORS[family].sample(3000, rng=np.random.default_rng(3))
    assert fit_priors(values)[0].family == family


def test_a_family_comes_before_the_empirical_prior_where_both_fit_equally() -> None:
    """Of 300 values a single split favours the empirical prior, whatever they are: it took 14 of these 60 samples."""
    for seed in (0, 3, 4, 12, 15, 27, 46):
        best = fit_priors(np.random.default_rng(seed).uniform(1, 2, 300))[0]
        assert best.family == "uniform", seed


def test_of_priors_that_fit_equally_the_most_parsimonious_comes_first() -> None:
    fits = fit_priors(PRIORS["exponential"].sample(300, rng=np.random.default_rng(8)))
    closest = min(fits, key=lambda fit: fit.held_out_distance)
    equal = [fit for fit in fits if fit.held_out_distance <= closest.held_out_distance + closest.held_out_error]
    assert {"exponential", "gamma"} <= {fit.family for fit in equal}
    assert fits[: len(equal)] == sorted(equal, key=lambda fit: np.inf if fit.aic is None else fit.aic)
    assert fits[0].family == "exponential"


@pytest.mark.parametrize("scale", [1e-9, 0.37, 1.0, 4.1e7])
def test_the_ends_of_a_fitted_prior_are_not_the_smallest_and_the_largest_answer(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of the prior could otherwise read two people's prices; the grid has few places for either end."""
    monkeypatch.setattr(fitting, "_SPLITS", 1)  # which family fits best is not asked here
    rng = np.random.default_rng(5)
    ends: dict[str, list[float]] = {"uniform": [], "histogram": []}
    for _ in range(50):
        values = scale * np.sort(1.0 + rng.random(40))
        fits = {fit.family: fit.prior for fit in fit_priors(values, also=["histogram"])}
        for family, found in ends.items():
            low, high = fits[family].support
            assert 0.0 <= low < values[0] < values[-1] < high, f"{family}: nobody of the pilot lies outside"
            assert high - low <= 1.1 * np.ptp(values), family
            found += [low, high]
    for family, found in ends.items():
        assert len(set(found)) < 15, f"{family}: few different ends for 100 different answers"


def test_where_no_family_fits_the_empirical_prior_comes_first() -> None:
    values = Mixture([Uniform(1, 1.2), Uniform(3, 4)], [0.5, 0.5]).sample(400, rng=np.random.default_rng(4))
    best = fit_priors(values)[0]
    assert best.family == "empirical"
    assert best.aic is None
    assert not best.is_regular


def test_a_pilot_may_contain_people_who_do_not_mind_at_all() -> None:
    values = np.append(np.random.default_rng(5).exponential(size=50), 0.0)
    assert "lognormal" not in {fit.family for fit in fit_priors(values)}


@pytest.mark.parametrize(("values", "told"), [([1.0] * 20, "must differ"), ([1.0, 2.0], "at least 10 people")])
def test_a_pilot_that_says_nothing_is_refused(values: list[float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        fit_priors(np.array(values))


# -- the file, and people who were in the pilot ----------------------------------------------------------------------


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    values = LogNormal(0, 0.5).sample(200, rng=np.random.default_rng(6))
    lines = "".join(f"p{row},{value}\n" for row, value in enumerate(values.tolist()))
    (tmp_path / "pilot.csv").write_text(f"id,bid\n{lines}")
    return tmp_path / "pilot.csv"


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_prior_file_is_private_and_holds_no_id(pilot: Path) -> None:
    out = pilot.with_name("prior.json")
    done = hushbid("fit-prior", pilot, "--out", out, "--picture", pilot.with_name("prior.svg"), "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["chosen"] == result["fits"][0]["family"]
    assert {row["family"] for row in result["fits"]} >= {"uniform", "gamma", "empirical"}
    assert all(row["ironed"] >= row["bid"] for row in result["virtual_cost"])
    assert out.stat().st_mode & 0o077 == 0
    assert '"p7"' not in out.read_text()
    assert pilot.with_name("prior.svg").read_text().startswith("<")
    assert read_prior(out).priors[""].to_dict() == result["prior"]


@pytest.mark.parametrize("family", ["histogram", "kde"])
def test_priors_that_follow_the_pilot_closely_are_fitted_where_they_are_named(pilot: Path, family: str) -> None:
    out = pilot.with_name("prior.json")
    few = pilot.with_name("few.csv")
    few.write_text("\n".join(pilot.read_text().splitlines()[:41]) + "\n")
    named = [
        "fit-prior",
        few,
        "--family",
        family,
        "--range",
        "0,50",
        "--out",
        out,
        "--picture",
        pilot.with_name("p.svg"),
    ]
    done = hushbid(*named, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["chosen"] == family
    [fit] = [one for one in result["fits"] if one["family"] == family]
    assert (fit["text"] is None, fit["aic"] is None) == ((True, True) if family == "kde" else (False, False))
    prior = read_prior(out).priors[""]
    assert prior.family == family
    values = np.loadtxt(few, delimiter=",", skiprows=1, usecols=1)
    assert abs(prior.cdf(np.median(values)) - 0.5) < 0.1
    if family == "histogram":
        assert fit["log_likelihood"] == pytest.approx(float(np.sum(np.log(prior.pdf(values)))))
    assert family not in {one.family for one in fit_priors(values)}


def test_whoever_was_in_the_pilot_is_recognised_when_bidding(pilot: Path) -> None:
    out, bids = pilot.with_name("prior.json"), pilot.with_name("bids.csv")
    hushbid("fit-prior", pilot, "--out", out)
    bids.write_text("id,bid\nq1,1.0\np7,1.1\nq2,1.2\n")
    refused = hushbid("price", bids, "--buyer-weight", 100, "--prior", out)
    assert refused.exit_code == 2
    assert "in which 1 of the people took part who now bid" in refused.stderr
    record = pilot.with_name("record.json")
    accepted = hushbid(
        "price", bids, "--buyer-weight", 100, "--prior", out, "--accept-pilot-overlap", "--record", record, "--json"
    )
    assert accepted.exit_code == 0, accepted.output
    assert json.loads(record.read_text())["stamps"] == [
        "prior fitted on participants: 1 of those who bid were in the pilot"
    ]


def test_other_people_are_priced_without_a_stamp(pilot: Path) -> None:
    out, bids = pilot.with_name("prior.json"), pilot.with_name("bids.csv")
    hushbid("fit-prior", pilot, "--out", out)
    bids.write_text("id,bid\nq1,1.0\nq2,1.2\n")
    record = pilot.with_name("record.json")
    assert hushbid("price", bids, "--buyer-weight", 100, "--prior", out, "--record", record, "--json").exit_code == 0
    content = json.loads(record.read_text())
    assert content["stamps"] == []
    assert '"overlap": 0' in content["notes"][0]


def test_without_ids_an_overlap_is_unknown_and_that_is_what_is_recorded() -> None:
    def origin(ids: list[str] | None, *pilots: Pilot) -> dict[str, object]:
        named = dict(zip("xy", pilots, strict=False))
        source = PriorSource(priors=dict.fromkeys(named, Uniform(1, 2)), pilots=named)
        return source.origin(ids, accepted=True)

    known = Pilot.of(["a", "b"], 2)
    assert origin(["b", "c"], known)["overlap"] == 1
    assert origin(None, known)["overlap"] is None
    assert origin(["b"], known, Pilot.of(None, 10))["overlap"] is None
    assert Pilot.of(["a"], 1).ids != Pilot.of(["a"], 1).ids  # a new key each time


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--family", "beta"], "needs --range"),
        (["--range", "0,0.5"], "--range must lie around all costs"),
        (["--range", "5"], "two numbers"),
        (["--out", "prior.toml"], "must end in .json"),
        (["--picture", "prior.png"], "--picture must end in .svg"),
        (["--id-column", "name"], "must have the column 'name'"),
        (["--bid-column", "price"], "must have the column 'price'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(arguments: list[str], told: str, pilot: Path) -> None:
    done = hushbid("fit-prior", pilot, *arguments)
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_negative_bid_is_named_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "pilot.csv"
    path.write_text("id,bid\n" + "".join(f"{row},{row - 3}\n" for row in range(12)))
    done = hushbid("fit-prior", path)
    assert done.exit_code == 4
    assert "rows 0, 1, 2 do not" in done.stderr
    assert "-3" not in done.stderr.replace(str(path), "")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("no json", "not JSON"),
        ("[]", "must be an object"),
        ('{"format": "hushbid prior", "format": "hushbid prior", "version": 1}', "holds a key twice"),
        ('{"format": "hushbid prior", "version": 2}', r"version 1, got \('hushbid prior', 2\)"),
        ('{"format": "hushbid prior", "version": 1}', "differs in: fit, pilot, prior"),
        (
            '{"format": "hushbid prior", "version": 1, "prior": {"family": "x"}, "fit": {}, "pilot":'
            ' {"people": "2", "key": "00", "ids": null}}',
            r"pilot\.people must be an integer, got str.*pilot\.key must be 32 lower-case hexadecimal digits",
        ),
        (
            '{"format": "hushbid prior", "version": 1, "prior": {"family": "x"}, "fit": {}, "pilot":'
            f' {{"people": 2, "key": "{"0" * 32}", "ids": null}}}}',
            "cannot be read as a prior file: a prior's family must be one of",
        ),
    ],
)
def test_a_file_that_is_no_prior_is_refused(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "prior.json").write_text(content)
    with pytest.raises(PriorError, match=told):
        read_prior(tmp_path / "prior.json")


def test_who_was_in_two_pilots_counts_once_and_everybody_in_one_of_them_counts() -> None:
    pilots = {"north": Pilot.of(["a", "b", "c"], 3), "south": Pilot.of(["c", "d", "e"], 3)}
    source = PriorSource(priors=dict.fromkeys(pilots, Uniform(1, 2)), pilots=pilots)
    with pytest.raises(InputError, match="in which 4 of the people took part"):
        source.origin(["a", "b", "c", "d", "x"], accepted=False)
    assert source.origin(["a", "b", "c", "d", "x"], accepted=True)["overlap"] == 4


def test_each_group_gets_a_prior_of_its_own_and_one_file_holds_them(tmp_path: Path) -> None:
    rng, pilot, out = np.random.default_rng(6), tmp_path / "pilot.csv", tmp_path / "priors.json"
    drawn = {"young": Uniform(1, 2).sample(40, rng=rng), "old": Uniform(3, 4).sample(40, rng=rng)}
    rows = [f"{label}{row},{value},{label}" for label, values in drawn.items() for row, value in enumerate(values)]
    pilot.write_text("\n".join(["id,bid,age", *rows]))
    done = hushbid("fit-prior", pilot, "--group-column", "age", "--family", "uniform", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    groups = json.loads(done.stdout)["groups"]
    alone = {
        label: next(fit for fit in fit_priors(values) if fit.family == "uniform") for label, values in drawn.items()
    }
    assert {label: one["prior"] for label, one in groups.items()} == {
        label: fit.prior.to_dict() for label, fit in alone.items()
    }
    bids = tmp_path / "bids.csv"
    bids.write_text("id,bid,age\na,1.5,young\nb,3.5,old\nold7,3.6,old\n")
    known = ["--group-column", "age", "--prior", out, "--buyer-weight", 100]
    refused = hushbid("price", bids, *known)
    assert (refused.exit_code, "in which 1 of the people took part" in refused.stderr) == (2, True)
    assert hushbid("price", bids, *known, "--accept-pilot-overlap", "--json").exit_code == 0
    nested = hushbid("price", bids, "--prior", f"old={out}", "--prior", "young=uniform:1,2", "--buyer-weight", 1)
    assert (nested.exit_code, "must be one prior" in nested.stderr) == (2, True)
    drawing = hushbid("fit-prior", pilot, "--group-column", "age", "--picture", tmp_path / "x.svg")
    assert (drawing.exit_code, "--picture draws one prior" in drawing.stderr) == (2, True)
