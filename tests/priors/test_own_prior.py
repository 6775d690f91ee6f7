"""A prior of one's own: F and f are enough, nothing is taken on trust, and a name makes it known everywhere."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from hushbid import verify
from hushbid.cli import main
from hushbid.errors import PriorError, RecordError
from hushbid.mechanism import Market
from hushbid.priors import Beta, Mixture, OwnPrior, Uniform, from_scipy, parse_prior, prior_from_dict, register
from hushbid.priors.forms import prior_words
from hushbid.priors.own_prior import REGISTERED
from hushbid.priors.pilot import prior_source
from hushbid.record import Record


@dataclass(frozen=True)
class Power(OwnPrior):
    """F(c) = 1 − (1 − c/high)^b: a beta prior with a = 1, which is irregular for b < 1."""

    b: float
    high: float = 1.0

    family: ClassVar[str] = "power"

    @property
    def support(self):
        return (0.0, self.high)

    def distribution(self, c):
        return 1.0 - (1.0 - c / self.high) ** self.b

    def density(self, c):
        return self.b / self.high * (1.0 - c / self.high) ** (self.b - 1.0)

    def check(self):
        if self.high <= 0 or self.b <= 0:
            raise PriorError(f"b and high must be positive, got b={self.b:g}, high={self.high:g}", field="high")


@dataclass(frozen=True)
class Pareto(OwnPrior):
    alpha: float

    family: ClassVar[str] = "pareto"
    regular: ClassVar[bool] = True

    @property
    def support(self):
        return (1.0, np.inf)

    def distribution(self, c):
        return 1.0 - c**-self.alpha

    def survival(self, c):
        return c**-self.alpha

    def density(self, c):
        return self.alpha * c ** (-self.alpha - 1.0)


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def test_everything_a_prior_offers_follows_from_distribution_and_density():
    own, known = Power(0.5, 2.0), Beta(1, 0.5, 0, 2)
    c = np.linspace(0, 1.999, 41)
    assert own.cdf(c) == pytest.approx(known.cdf(c), abs=1e-12)
    assert own.pdf(c) == pytest.approx(known.pdf(c), rel=1e-12)
    assert own.quantile([0, 0.2, 0.9, 1]) == pytest.approx(known.quantile([0, 0.2, 0.9, 1]), rel=1e-9)
    assert own.virtual_cost(c) == pytest.approx(known.virtual_cost(c), rel=1e-9)
    assert own.virtual_cost(2.5) == np.inf
    assert own.virtual_cost_inverse([0.5, 2.4, 2.6]) == pytest.approx(known.virtual_cost_inverse([0.5, 2.4, 2.6]))
    assert np.array(own.flat_parts) == pytest.approx(np.array(known.flat_parts), rel=1e-6)
    assert own.expectation == pytest.approx(known.expectation, rel=1e-6)
    assert stats.kstest(own.sample(2000, rng=np.random.default_rng(1)), known.cdf).pvalue > 1e-3


def test_it_is_ironed_unless_it_says_that_it_is_regular():
    assert not Power(0.5).is_regular
    assert Power(2.0).is_regular
    pareto, known = Pareto(3.0), from_scipy(stats.pareto(3))
    assert pareto.is_regular
    assert pareto.flat_parts == ()
    assert pareto.virtual_cost([1, 1.5, 2, 1e6]) == pytest.approx(known.virtual_cost([1, 1.5, 2, 1e6]), rel=1e-9)
    assert pareto.expectation == pytest.approx(1.5, rel=1e-6)


@pytest.mark.parametrize(("alpha", "mean"), [(0.5, np.inf), (1.0, np.inf), (1.1, 11.0), (1.5, 3.0), (8.0, 8 / 7)])
def test_an_expectation_counts_the_whole_tail_and_is_infinite_where_that_is(alpha, mean):
    @dataclass(frozen=True)
    class Rounded(Pareto):
        def survival(self, c):
            return 1.0 - self.distribution(c)

    assert Pareto(alpha).expectation == pytest.approx(mean, rel=1e-6)
    assert Rounded(alpha).expectation == pytest.approx(mean, rel=1e-5)


def test_functions_may_overwrite_their_points_and_may_return_lists():
    @dataclass(frozen=True)
    class Overwriting(Power):
        def distribution(self, c):
            c /= self.high
            np.subtract(1.0, c, out=c)
            c **= self.b
            return np.subtract(1.0, c, out=c)

    @dataclass(frozen=True)
    class Listing(Power):
        def distribution(self, c):
            return list(super().distribution(c))

    for kind in (Overwriting, Listing):
        assert kind(2.0, 3.0).virtual_cost([0.5, 2.0]) == pytest.approx(Power(2.0, 3.0).virtual_cost([0.5, 2.0]))


def test_costs_never_fall_between_neighbouring_floats():
    for prior in (Power(0.5), Pareto(3.0)):
        start = np.asarray(prior.quantile([0.1, 0.5, 0.9]))
        near = np.sort(np.concatenate([start, *(start * (1 + k * 2.3e-16) for k in range(1, 40))]))
        assert np.all(np.diff(prior.virtual_cost(near)) >= 0)


@dataclass(frozen=True)
class TooDense(Power):
    def density(self, c):
        return 1.01 * super().density(c)


@dataclass(frozen=True)
class Falling(Power):
    def distribution(self, c):
        return np.where(c < 0.5, c, 0.4 * c)


@dataclass(frozen=True)
class Short(Power):
    def distribution(self, c):
        return 0.9 * super().distribution(c)


@dataclass(frozen=True)
class Negative(Power):
    def density(self, c):
        return np.cos(9 * c)


@dataclass(frozen=True)
class Scalar(Power):
    def density(self, c):
        return 1.0


@dataclass(frozen=True)
class Nowhere(Power):
    @property
    def support(self):
        return (-1.0, 1.0)


@dataclass(frozen=True)
class Texts(Power):
    @property
    def support(self):
        return ("0", "1")


@dataclass(frozen=True)
class Overflowing(Power):
    def density(self, c):
        return c / self.high**2


class Bare(OwnPrior):
    support = (0.0, 1.0)

    def distribution(self, c):
        return c

    def density(self, c):
        return 2.0 + 0.0 * c


@dataclass
class Thawed(Bare):
    top: float = 1.0


@dataclass(frozen=True)
class Boasting(Power):
    regular: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: TooDense(2.0),
            r"distribution and density of TooDense.* must agree, but between c=.* the one rises by",
        ),
        (lambda: Falling(2.0), "distribution of Falling.* must not fall, but falls from"),
        (lambda: Short(2.0), r"must rise from 0 to 1 over its support \[0, 1\], got 0 and 0.9"),
        (lambda: Negative(2.0), "density of Negative.* must be at least 0 on its support, but at c="),
        (lambda: Scalar(2.0), "density of Scalar.* must return one number for each c, got float64 of shape"),
        (lambda: Nowhere(2.0), r"support of Nowhere.* must be \(low, high\) with 0 <= low < high, got \(-1.0, 1.0\)"),
        (lambda: Texts(2.0), r"support of Texts.* must be \(low, high\) with 0 <= low < high, got \('0', '1'\)"),
        (lambda: Overflowing(2.0, 1e308), "Overflowing.* must compute over its whole support, but it raises OverflowE"),
        (Bare, r"Bare must be a frozen dataclass: put @dataclass\(frozen=True\) above it"),
        (Thawed, "Thawed must be a frozen dataclass"),
        (lambda: Boasting(0.5), "Boasting.* says that it is regular, but its virtual cost falls from"),
        (lambda: Power("x"), "b must be a finite number, got b='x'"),
        (lambda: Power(1.0, -1.0), "b and high must be positive"),
        (lambda: Power(2.0).to_dict(), "a Power cannot be written down: its class must be registered"),
        (lambda: Power(2.0).to_text(), "a Power cannot be written down"),
    ],
)
def test_a_prior_that_does_not_keep_its_word_is_refused_in_a_sentence(make, told):
    with pytest.raises(PriorError, match=told) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_density_may_jump_and_may_be_infinite_at_an_end():
    @dataclass(frozen=True)
    class Steps(OwnPrior):
        family: ClassVar[str] = "steps"

        @property
        def support(self):
            return (0.0, 2.0)

        def distribution(self, c):
            return np.where(c <= 0.3, 2 * c, 0.6 + 0.4 * (c - 0.3) / 1.7)

        def density(self, c):
            return np.where(c <= 0.3, 2.0, 0.4 / 1.7)

    assert Steps().is_regular
    register(Steps)
    assert parse_prior("steps:") == Steps() == prior_from_dict({"family": "steps"})
    assert Power(0.3).pdf(1.0) == np.inf


def test_a_name_makes_it_known_to_texts_dicts_and_mixtures():
    register(Power)
    assert parse_prior("power:0.5") == Power(0.5)
    assert parse_prior(Power(0.5, 3).to_text()) == Power(0.5, 3) == prior_from_dict(Power(0.5, 3).to_dict())
    assert parse_prior("mixture:1*power:2,3+1*uniform:0,1") == Mixture([Power(2, 3), Uniform(0, 1)], [1, 1])
    assert prior_words(Power(0.5)) == "power:0.5,1"
    # campaign files and a server's settings read priors so
    assert prior_source({"family": "power", "b": 0.5, "high": 1}).priors[""] == Power(0.5)
    assert pickle.loads(pickle.dumps(Power(0.5))) == Power(0.5)
    for text, told in [("power:1,2,3", "must read power:b,high"), ("power:x", "a number was expected")]:
        with pytest.raises(PriorError, match=told):
            parse_prior(text)
    with pytest.raises(PriorError, match="must hold b, high, got b"):
        prior_from_dict({"family": "power", "b": 1})


def test_a_prior_whose_class_was_defined_again_is_not_written_down_as_the_new_one():
    def cell(factor):
        @register
        @dataclass(frozen=True)
        class Notebook(Power):
            family: ClassVar[str] = "notebook"

        return Notebook(factor)

    before, now = cell(1.0), cell(2.0)
    assert now.to_text() == "notebook:2,1"
    with pytest.raises(PriorError, match="its class has been defined again since it was made: make the prior again"):
        before.to_text()


def test_a_name_that_is_taken_or_impossible_is_refused():
    register(Power)
    assert register(Power) is Power  # a notebook's cell may run again

    @dataclass(frozen=True)
    class Other(Power):
        pass

    class Plain(Power):
        family: ClassVar[str] = "plain"

    for kind, told in [
        (Other, "'power' is registered by .*test_own_prior.Power"),
        (Plain, "Plain must be a frozen dataclass"),
        (type("A", (Other,), {"family": "kde", "__annotations__": {}}), "A must be a frozen dataclass"),
        (dataclass(frozen=True)(type("B", (Other,), {"family": "kde"})), "must not be that of a prior of Hushbid"),
        (dataclass(frozen=True)(type("C", (Other,), {"family": "grouped"})), "must not be that of a prior of Hushbid"),
        (dataclass(frozen=True)(type("D", (Other,), {"family": "a:b"})), "must be a name of small letters"),
        (dataclass(frozen=True)(type("E", (OwnPrior,), {"family": "e"})), "E must define density, distribution, supp"),
        (Uniform, "register needs a subclass of hushbid.priors.OwnPrior"),
    ]:
        with pytest.raises(PriorError, match=told):
            register(kind)
    with pytest.raises(PriorError, match=r"must check its parameters in check\(\), not in __post_init__"):
        type("F", (Power,), {"__post_init__": lambda self: None})


def test_a_record_under_it_verifies_where_it_is_registered_and_says_what_is_missing_elsewhere():
    register(Power)
    bids = Power(0.5, 2.0).sample(12, rng=np.random.default_rng(2))
    outcome = Market(prior=Power(0.5, 2.0), user_weight=0, buyer_weight=200).acquire(bids)
    record = Record.of(outcome)
    assert verify(record).ok
    written = record.to_dict()
    REGISTERED.clear()
    with pytest.raises(RecordError, match=r"got family='power'; .*\(hushbid --import MODULE\)"):
        Record.from_dict(written)
    assert prior_words(Power(0.5)) == "a Power distribution, which is not registered"


MODULE = """
from dataclasses import dataclass
from hushbid.priors import OwnPrior, register

@register
@dataclass(frozen=True)
class Triangle(OwnPrior):
    top: float
    family = "triangle"

    @property
    def support(self):
        return (0.0, self.top)

    def distribution(self, c):
        return (c / self.top) ** 2

    def density(self, c):
        return 2.0 * c / self.top**2
"""


def test_the_command_line_knows_it_by_an_import_that_the_user_names_and_by_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules})
    monkeypatch.chdir(tmp_path)
    Path("triangles.py").write_text(MODULE, encoding="utf-8")
    Path("bids.csv").write_text("id,bid\n" + "".join(f"p{k},{0.1 * k}\n" for k in range(1, 12)))
    price = ["price", "bids.csv", "--prior", "triangle:2", "--budget", "5", "--record", "record.json"]
    refused = CliRunner().invoke(main, price)
    assert refused.exit_code == 2
    assert "is known once the module that registers it is imported (hushbid --import MODULE)" in refused.output
    done = CliRunner().invoke(main, ["--import", "triangles.py", *price, "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(Path("record.json").read_text())
    assert record["outcome"]["market"]["prior"] == {"family": "triangle", "top": 2.0}
    # another process: nothing is known, and the record, which names a family, imports nothing
    REGISTERED.clear()
    __import__("sys").modules.pop("triangles")
    alone = CliRunner().invoke(main, ["verify", "record.json"])
    assert alone.exit_code == 2
    assert "family='triangle'" in alone.output
    verified = CliRunner().invoke(main, ["--import", "triangles.py", "verify", "record.json"])
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize(
    ("named", "content", "told"),
    [
        ("nosuch", None, "--import must name a module that is installed, or a file that ends in .py, got 'nosuch'."),
        ("gone.py", None, "--import: gone.py does not exist."),
        (
            "broken.py",
            "1/0",
            "--import broken.py: the module cannot be imported (ZeroDivisionError: division by zero).",
        ),
        ("lacking.py", "import nosuchmodule", "(ModuleNotFoundError: No module named 'nosuchmodule')."),
        ("json.py", "", "--import json.py: its name must be another: 'json' is a module already."),
        (
            "clash.py",
            MODULE.replace('"triangle"', '"uniform"'),
            "must not be that of a prior of Hushbid, got 'uniform'",
        ),
    ],
)
def test_an_import_that_fails_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, content: str | None, told: str
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(named).write_text(content, encoding="utf-8")
    found = CliRunner().invoke(main, ["--import", named, "verify", "none.json"])
    assert found.exit_code == 2
    assert told in found.output
