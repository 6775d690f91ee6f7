"""The noise that a browser adds, in a real one: Python's grid and messages, the right distribution, drawn once.

There is no seed, so the tests of the noise are statistical: right noise fails one of them with probability below 1e-6.
"""

import itertools
import json
import math
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from scipy import stats

from hushbid.common.arrays import as_bounds
from hushbid.disclosure import (
    Message,
    ReleasePlan,
    noise,
    release_plan,
)
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.grid import to_grid
from hushbid.disclosure.local import SMALLEST_LOSS, grid_bits, steps_of
from hushbid.disclosure.messages import as_ratio, cut_off
from hushbid.questions import PARTS, Choice, Number, YesNo, layout_of
from hushbid.server.service.bodies import Delivery
from tests.disclosure.test_vector_noise import p_value as vector_p_value

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "src" / "hushbid" / "server" / "pages" / "static" / "privatize.js"
VECTORS = json.loads((ROOT / "tests" / "vectors" / "wire-v1.json").read_text())
FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE = b"""<!doctype html><html lang="en"><title>Noise</title>
<script>window.inlineRan = true</script><script type="module" src="/static/privatize.js"></script></html>"""
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
DELIVERY = "/api/v1/participation/delivery"
ALARM = 1e-7
SAMPLES = 6_000


class Site:
    """A server on the loopback address: one page under a strict policy, the script, and an end that takes deliveries.

    The first delivery is lost: the server reads it and closes the connection, as if it had died before answering.
    """

    def __init__(self) -> None:
        self.deliveries: list[bytes] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path in ("/static/privatize.js", "/static/survey.js"):
                    script = SCRIPT.with_name(self.path.rpartition("/")[2])
                    self._answer(script.read_bytes(), "text/javascript; charset=utf-8")
                else:
                    self._answer(PAGE, "text/html; charset=utf-8")

            def do_PUT(self) -> None:
                site.deliveries.append(self.rfile.read(int(self.headers["Content-Length"])))
                if len(site.deliveries) > 1:
                    self._answer(b"{}", "application/json")

            def _answer(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                headers = {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    running = Site()
    yield running
    running.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has never been here."""
    with browser.new_context() as new:
        yield new


@pytest.fixture(scope="module")
def calculator(browser: Browser, site: Site) -> Iterator[Page]:
    """A page that many tests share, since they leave nothing behind."""
    with browser.new_context() as context:
        yield visit(context, site)


@pytest.fixture
def page(calculator: Page, site: Site) -> Page:
    """The shared page in a browser that has forgotten everything."""
    calculator.goto(site.url)
    calculator.evaluate("() => new Promise((done) => { indexedDB.deleteDatabase('hushbid').onsuccess = done; })")
    return calculator


def visit(context: BrowserContext, site: Site) -> Page:
    page = context.new_page()
    page.goto(site.url)
    return page


def run(page: Page, code: str, given: object = None) -> Any:
    """Run a function's body in the page, with the module as ``hushbid``; refusals come back as their code and text."""
    return page.evaluate(
        f"""async (given) => {{
            const real = await import("/static/privatize.js");
            // somebody who agreed to anything, unless a test says otherwise
            const hushbid = {{ ...real, prepare: (offer) => real.prepare({{ atMost: 1e301, ...offer }}) }};
            const survey = given?.survey === undefined ? null : await import("/static/survey.js");
            const refused = async (work) => {{
                try {{ await work(); return null; }} catch (error) {{
                    if (!(error instanceof hushbid.PrivatizeError)) throw error;
                    return [error.code, error.message];
                }}
            }};
            {code}
        }}""",
        given,
    )


# The grid and the message


def hostile_numbers(low: float, high: float) -> list[float]:
    """Doubles that have broken somebody's arithmetic, around a range and everywhere else."""
    ends = [low, high, (low + high) / 2, low + (high - low) / 3]
    near = [math.nextafter(end, side) for end in ends for side in (-math.inf, math.inf)]
    steps = [low + (high - low) * k / 2**32 for k in (1, 2, 3, 2**31, 2**32 - 1)]
    beside = [math.nextafter(step, side) for step in steps for side in (-math.inf, math.inf)]
    tiny = [5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308, 1e-300, 2.0**-53, 1e-17]
    huge = [1e300, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 1e16, 0.1, 0.3, 1 / 3]
    return [*ends, *near, *steps, *beside, 0.0, *tiny, *huge, *(-number for number in (0.0, *tiny, *huge))]


RANGES = [(0.0, 1.0), (-10.0, 10.0), (35.5, 42.1), (0.0, 1e100), (-1e100, 1e100), (1e-100, 3e-100), (-0.0, 0.1)]
LOSSES = [SMALLEST_LOSS, math.nextafter(SMALLEST_LOSS, 1.0), 1e-12, 2.0**-22, math.nextafter(2.0**-22, 0.0), 1e-6]
LOSSES += [0.1, 0.25, 1 / 3, 0.5, math.nextafter(1.0, 0.0), 1.0, 2.5, 7.3, 100.0, 2.0**53 + 2, 1e300, 1.7e308]


def test_every_number_lands_on_the_step_where_python_puts_it(calculator: Page) -> None:
    rng = random.Random(5)
    ranges = [*RANGES, *((low, low + rng.expovariate(0.01)) for low in (rng.gauss(0, 50) for _ in range(20)))]
    cases = [
        ([*hostile_numbers(low, high), *(rng.uniform(low, high) for _ in range(40))], (low, high), bits)
        for low, high in ranges
        for bits in (32, rng.randint(1, 31))
    ]
    assert sum(len(values) for values, _, _ in cases) > 5000
    code = """return given.map(([values, bounds, bits]) =>
        values.map((text) => String(hushbid.gridStep(text, bounds, bits))))"""
    texts = [([repr(value) for value in values], [repr(end) for end in bounds], bits) for values, bounds, bits in cases]
    for (values, bounds, bits), found in zip(cases, run(calculator, code, texts), strict=True):
        expected = to_grid(np.array(values), as_bounds(bounds), bits=bits)
        assert [int(step) for step in found] == expected.tolist(), (bounds, bits)


def test_decimal_texts_are_the_double_that_python_reads(calculator: Page) -> None:
    halfway = "9007199254740993"  # between two doubles; digits far behind decide
    texts = [
        *("7.5", "7.", ".5", "+3", "-0", "1e3", "1E-3", " 4 ", "00012", "1e-400", "-1e-400", "0e999", "2.5e-324"),
        *(halfway, halfway + ".0", halfway + "." + "0" * 800 + "1", "9007199254740992." + "9" * 900),
        *("0." + "0" * 330 + "1", "1" * 309, "0.1000000000000000055511151231257827021181583404541015625"),
        *(repr(random.Random(seed).uniform(-10, 10) * 10.0 ** (seed % 600 - 300)) for seed in range(600)),
        *(f"{random.Random(seed).uniform(-10, 10):.40e}" for seed in range(100)),
    ]
    bounds = [-1e100, 1e100]
    expected = [min(max(float(text), -1e100), 1e100) for text in texts]
    found = run(calculator, "return given[0].map((text) => hushbid.clamp(text, given[1]))", [texts, bounds])
    assert [float(number).hex() for number in found] == [number.hex() for number in expected]


def test_the_loss_becomes_the_grid_fraction_and_scale_that_python_computes(calculator: Page) -> None:
    losses = [*LOSSES, *(math.exp(random.Random(seed).uniform(-36, 9)) for seed in range(300))]
    code = """return given.map((loss) => {
        const { gridBits, epsilon, scale } = hushbid.termsOf(loss);
        return [gridBits, epsilon, scale.map(String)];
    })"""
    for loss, (bits, epsilon, scale) in zip(
        losses, run(calculator, code, [repr(loss) for loss in losses]), strict=True
    ):
        assert bits == grid_bits(loss)
        assert epsilon == [str(part) for part in as_ratio(loss)]
        assert Fraction(*map(int, scale)) == Fraction(2**bits) / Fraction(loss)


def test_the_wire_vectors_hold_in_the_browser(calculator: Page) -> None:
    """Encoding without noise, and decoding; infinities, which the format allows, are refused by the browser."""
    encode = VECTORS["encode"]
    code = """return Promise.all(given.map(async ({ value, privacy_loss, bounds }) => {
        const problem = await refused(() => hushbid.privatize(value, privacy_loss, bounds));
        if (problem) return problem[0];
        const { gridBits, epsilon, scale } = hushbid.termsOf(privacy_loss);
        return [gridBits, epsilon, String(hushbid.gridStep(value, bounds, gridBits)), scale.map(String)];
    }))"""
    answers = {case["name"]: found for case, found in zip(encode, run(calculator, code, encode), strict=True)}
    assert answers.pop("negative infinity is clamped") == "value"
    assert answers.pop("no privacy at all") == "loss"
    for case, found in ((case, answers[case["name"]]) for case in encode if case["name"] in answers):
        message = case["message_without_noise"]
        assert found[:3] == [message["grid_bits"], message["epsilon"], message["value"]], case["name"]
        assert Fraction(*map(int, found[3])) == Fraction(*map(int, case["least_noise_scale"])), case["name"]
    decoded = run(calculator, "return given.map((c) => hushbid.decode(c.message, c.bounds))", VECTORS["decode"])
    assert decoded == [float(case["value"]) for case in VECTORS["decode"]]


def test_a_message_is_the_step_and_the_noise_with_pythons_metadata(calculator: Page) -> None:
    """With so large a loss there is practically no noise, so that the whole way to the message can be compared."""
    values = [repr(value) for value in hostile_numbers(-3.0, 7.0)]
    messages = run(calculator, "return given.map((x) => hushbid.privatize(x, 1e300, [-3, 7]))", values)
    for value, message in zip(values, messages, strict=True):
        expected = int(to_grid(np.array([float(value)]), (-3.0, 7.0), bits=32)[0])
        assert message == Message(kind="value", grid_bits=32, epsilon=as_ratio(1e300), values=((expected,),)).to_dict()


def test_what_is_no_finite_number_is_refused_without_being_shown(page: Page) -> None:
    words = ["", " ", "x271828", "inf", "-Infinity", "NaN", "0x271828", "271_828", "271828,5", "1e", ".", "1e999", "٣"]
    code = """
        const values = [...given, null, undefined, NaN, Infinity, -Infinity, [271828], {}, true, 271828n];
        return Promise.all(values.flatMap((value) => [
            refused(() => hushbid.privatize(value, 1, [0, 1])),
            refused(() => hushbid.prepare({ campaign: "c", participant: "p", value, privacyLoss: 1, bounds: [0, 1] })),
            refused(() => hushbid.clamp(value, [0, 1])),
        ]))"""
    refusals = run(page, code, words)
    assert len(refusals) == 3 * (len(words) + 9)
    assert {code for code, _ in refusals} == {"value"}
    assert not any("271828" in text for _, text in refusals)
    assert run(page, 'return hushbid.prepared({ campaign: "c", participant: "p" })') is None


def test_losses_ranges_and_places_that_allow_no_message_are_refused(page: Page) -> None:
    code = """
        const least = 2 ** -53;
        const losses = [0, -0, -1, NaN, Infinity, 5e-324, least * (1 - least), "much", null, "1e999"];
        const bounds = [[1, 1], [2, 1], [0], [0, 1, 2], null, "01", [0, NaN], [0, Infinity], [0, 1e101], [0, 1e-101]];
        const names = [["", "p"], ["c", ""], [1, "p"], ["c", null]];
        const of = (campaign, participant, privacyLoss, bounds) => refused(() =>
            hushbid.prepare({ campaign, participant, value: "1", privacyLoss, bounds }));
        return Promise.all([
            ...losses.map((loss) => of("c", "p", loss, [0, 1])),
            ...bounds.map((range) => of("c", "p", 1, range)),
            ...names.map(([c, p]) => of(c, p, 1, [0, 1])),
        ])"""
    codes = [code for code, _ in run(page, code)]
    assert codes == ["loss"] * 10 + ["bounds"] * 10 + ["place"] * 4


# The noise


def cumulative(steps: np.ndarray, scale: float) -> np.ndarray:
    """P(Z ≤ z) of discrete Laplace noise, exact but for floating point."""
    q = math.exp(-1.0 / scale)
    below = np.exp(np.minimum(steps, 0.0) / scale) / (1.0 + q)
    above = 1.0 - np.exp(-(np.maximum(steps, -1.0) + 1.0) / scale) / (1.0 + q)
    return np.asarray(np.where(steps < 0, below, above))


def p_value(drawn: np.ndarray, scale: float, edges: np.ndarray) -> float:
    """Of a chi-square test of the counts between the edges, each edge belonging to the cell below it."""
    counts = np.bincount(np.searchsorted(edges, drawn, side="left"), minlength=edges.size + 1)
    mass = np.diff(cumulative(edges, scale), prepend=0.0, append=1.0)
    return float(stats.chisquare(counts, mass / mass.sum() * drawn.size).pvalue)


def draw(page: Page, loss: float, samples: int = SAMPLES, value: str = "0") -> list[int]:
    """Noise of complete messages, made as a page makes them."""
    code = """
        const [value, loss, samples] = given;
        return Array.from({ length: samples }, () => hushbid.privatize(value, loss, [0, 1]).value).join()"""
    step = int(to_grid(np.array([float(value)]), (0.0, 1.0), bits=grid_bits(loss))[0])
    return [int(text) - step for text in run(page, code, [value, repr(loss), samples]).split(",")]


@pytest.mark.parametrize("scale", [0.5, 2.0, 3.7])
def test_on_a_coarse_scale_every_integer_has_its_exact_probability(calculator: Page, scale: float) -> None:
    loss = 2.0**32 / scale
    drawn = np.array(draw(calculator, loss))
    edges = np.arange(-math.ceil(3 * scale), math.ceil(3 * scale) + 1, dtype=np.float64)
    exact = float(Fraction(2**32) / Fraction(loss))
    assert p_value(drawn, exact, edges) > ALARM
    for wrong in (0.7, 1.3):
        assert p_value(drawn, exact * wrong, edges) < ALARM


@pytest.mark.parametrize("loss", [SMALLEST_LOSS, 3e-8, 0.1, 1.0, 2.5])
def test_at_every_loss_the_noise_has_the_scale_that_keeps_the_promise(calculator: Page, loss: float) -> None:
    drawn = np.array(draw(calculator, loss, value="0.7"), dtype=np.float64)
    scale = float(Fraction(2 ** grid_bits(loss)) / Fraction(loss))
    edges = np.floor(scale * stats.laplace.ppf(np.linspace(0, 1, 31)[1:-1]))
    assert p_value(drawn, scale, edges) > ALARM
    for wrong in (0.7, 1.3):
        assert p_value(drawn, scale * wrong, edges) < ALARM


def test_low_digits_are_even_and_draws_do_not_depend_on_each_other(calculator: Page) -> None:
    drawn = draw(calculator, 3e-8)
    low = np.bincount([step % 16 for step in drawn], minlength=16)
    assert stats.chisquare(low).pvalue > ALARM
    assert len(set(drawn)) == len(drawn)
    signs = np.sign(np.array(drawn, dtype=np.float64))
    for lag in (1, 2, 7):
        assert abs(np.sum(signs[lag:] * signs[:-lag])) < 6 * math.sqrt(SAMPLES)


def test_the_noise_uses_no_floating_point_and_no_randomness_but_the_cryptographic(page: Page) -> None:
    """BigInt does not mix with Number; what could convert one into the other is absent from the text, and set on fire
    while noise is drawn. Numbers that remain count bits and words."""
    text = SCRIPT.read_text(encoding="utf-8")
    section = text.partition("// -- the noise: integers only")[2].partition("// -- end of the noise")[0]
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", section, flags=re.DOTALL)
    assert all(name in code for name in ("discreteLaplace", "happensWithExpOf", "uniformBelow", "bitLength"))
    assert not re.search(r"Number|parseFloat|parseInt|Math|Float|\*\*|\d\.|\.\d|asIntN|asUintN|Date|performance", code)
    assert set(re.findall(r"(?<![\w.])(\d+)(?!\w)", code)) == {"0", "2", "5", "31"}
    assert "Math.random" not in text
    fire = """
        const { scale } = hushbid.termsOf(0.3);
        const kept = [Math, Number, parseFloat, Date, crypto.getRandomValues];
        const used = () => { throw new Error("used"); };
        const burn = new Proxy(function () {}, { get: used, apply: used, construct: used });
        let asked = 0;
        crypto.getRandomValues = function (words) { asked += 1; return kept[4].call(crypto, words); };
        globalThis.Math = globalThis.Number = globalThis.parseFloat = globalThis.Date = burn;
        try {
            return [String(hushbid.discreteLaplace(...scale)), asked > 0];
        } finally {
            [globalThis.Math, globalThis.Number, globalThis.parseFloat, globalThis.Date] = kept;
            delete crypto.getRandomValues;
        }"""
    drawn, asked = run(page, fire)
    assert asked
    assert abs(int(drawn)) < 100 * 2**32 / 0.3


# Once

PLACE = {"campaign": "c-sleep", "participant": "p-3f"}
OFFER = {**PLACE, "value": "7.271828", "privacyLoss": 0.7, "bounds": [0, 24]}


def test_a_retry_after_a_lost_answer_and_a_reload_sends_the_same_bytes(page: Page, site: Site) -> None:
    send = f"""
        const ready = (await hushbid.prepared(given)) ?? (await hushbid.prepare(given));
        const headers = {{ "Content-Type": "application/json" }};
        const sent = await fetch("{DELIVERY}", {{ method: "PUT", headers, body: ready.body }}).catch(() => null);
        return [sent?.status ?? null, ready]"""
    lost, shown = run(page, send, OFFER)
    page.reload()
    arrived, shown_again = run(page, send, {**OFFER, "value": "20"})
    first, second = site.deliveries
    assert (lost, arrived) == (None, 200)
    assert first == second
    assert shown == shown_again
    assert first == shown["body"].encode()
    assert b"271828" not in first
    message = Message.from_dict(Delivery.model_validate_json(first).given, "value")  # type: ignore[arg-type]
    assert message.to_dict() == shown["message"]
    assert message.decode((0.0, 24.0)) == shown["noisy"]


def test_every_new_place_draws_anew_and_every_old_one_never(page: Page) -> None:
    code = """
        const places = given.places.map(([campaign, participant]) => ({ ...given.offer, campaign, participant }));
        const rounds = [];
        for (let round = 0; round < 3; round += 1) {
            rounds.push(await Promise.all(places.map(async (place) => (await hushbid.prepare(place)).body)));
        }
        return rounds"""
    places = [
        ("a", "b"),
        ("b", "a"),
        ("a", "ab"),
        ("aa", "b"),
        ("__proto__", "constructor"),
        ("a/b", "c"),
        ("a", "b/c"),
    ]
    first, second, third = run(page, code, {"places": places, "offer": OFFER})
    assert first == second == third
    assert len(set(first)) == len(places)


def test_two_tabs_at_once_make_one_value(context: BrowserContext, site: Site) -> None:
    tabs = [visit(context, site), visit(context, site)]
    start = """
        const channel = new BroadcastChannel("start");
        const together = () => Promise.all(Array.from({ length: 40 }, async (_, at) =>
            (await hushbid.prepare({ ...given, participant: `p-${at}` })).body));
        window.bodies = new Promise((resolve) => { channel.onmessage = () => resolve(together()); });"""
    for number, tab in enumerate(tabs):
        run(tab, start, {**OFFER, "value": str(number)})
    tabs[0].evaluate("() => { new BroadcastChannel('start').postMessage(null); }")
    one, other = (tab.evaluate("() => window.bodies") for tab in tabs)
    assert one == other
    assert len(set(one)) == 40


def test_nothing_is_given_away_before_it_is_stored(page: Page) -> None:
    """Where the store fails, at whatever point, there is no body, and later on a body like any other."""
    code = """
        const faults = {
            "cannot be opened": [IDBFactory.prototype, "open", () => { throw new DOMException("no"); }],
            "refuses to open": [IDBFactory.prototype, "open", () => {
                const asked = new EventTarget();
                queueMicrotask(() => asked.onerror());
                return asked;
            }],
            "refuses transactions": [IDBDatabase.prototype, "transaction", () => { throw new Error("no"); }],
            "refuses to add": [IDBObjectStore.prototype, "add", () => { throw new Error("no"); }],
            "fails on commit": [IDBObjectStore.prototype, "add", function (record) {
                const asked = add.call(this, record);
                asked.addEventListener("success", () => this.transaction.abort());
                return asked;
            }],
        };
        const { add } = IDBObjectStore.prototype;
        const told = {};
        for (const [name, [owner, method, broken]] of Object.entries(faults)) {
            const whole = owner[method];
            owner[method] = broken;
            try { told[name] = (await refused(() => hushbid.prepare(given)))?.[0]; } finally { owner[method] = whole; }
        }
        const none = await hushbid.prepared(given);
        const { body } = await hushbid.prepare(given);
        return [told, none, body === (await hushbid.prepared(given)).body]"""
    aside: list[str] = []
    page.on("pageerror", lambda error: aside.append(str(error)))  # an exception in a handler is bid there too
    told, none, kept = run(page, code, OFFER)
    assert list(told.values()) == ["storage"] * 5
    assert (none, kept) == (None, True)
    assert len(aside) <= 1


def test_transactions_ask_for_the_disk(page: Page) -> None:
    code = """
        const whole = IDBDatabase.prototype.transaction;
        const asked = [];
        IDBDatabase.prototype.transaction = function (...all) {
            const made = whole.apply(this, all);
            asked.push([made.mode, made.durability]);
            return made;
        };
        try { await hushbid.prepare(given); } finally { IDBDatabase.prototype.transaction = whole; }
        return asked"""
    assert run(page, code, OFFER) == [["readwrite", "strict"]]


def test_other_terms_for_the_same_place_are_refused(page: Page) -> None:
    code = """
        const { body } = await hushbid.prepare(given);
        const losses = [0.35, "0.7000000000000001"].map((privacyLoss) => ({ privacyLoss }));
        const others = [...losses, { bounds: [0, 25] }, { bounds: [-1, 24] }];
        const codes = await Promise.all(others.map((other) => refused(() => hushbid.prepare({ ...given, ...other }))));
        const same = await hushbid.prepare({ ...given, privacyLoss: "0.70", bounds: ["-0", "2.4e1"] });
        return [codes.map(([code]) => code), body === same.body]"""
    assert run(page, code, OFFER) == [["terms"] * 4, True]


def test_a_page_cannot_lessen_the_noise_after_she_named_her_price(page: Page) -> None:
    code = """
        const shown = { ...given, setting: "local", largestLoss: 1 };
        const prepare = (more) => refused(() => real.prepare({ ...given, ...more }));
        const told = [await prepare({})];
        await hushbid.agree({ ...shown, price: 1.25 });
        await hushbid.agree({ ...shown, price: 2, currency: "EUR", decimals: 2, largestLoss: 50 });
        for (const other of [{ setting: "central" }, { bounds: [0, 12] }])
            told.push(await refused(() => hushbid.agree({ ...shown, ...other })));
        for (const lie of [{ privacyLoss: 1e9 }, { privacyLoss: 1.0001, atMost: 1e9 }, { bounds: [7, 8] }])
            told.push(await prepare(lie));
        const kept = await hushbid.agreed(given);
        const none = await hushbid.prepared(given);
        const { message } = await real.prepare(given);
        const other = { ...given, campaign: "another" };
        for (const atMost of [undefined, 0.5, "many", NaN])
            told.push(await refused(() => real.prepare({ ...other, atMost })));
        await hushbid.agree({ ...shown, participant: "p9", setting: "central" });
        told.push(await prepare({ participant: "p9" }));
        return [told.map(([code]) => code), kept, none, message.version]"""
    told, kept, none, version = run(page, code, OFFER)
    terms = {"setting": "local", "low": 0, "high": 24, "largestLoss": 1, "price": 2, "currency": "EUR", "decimals": 2}
    assert kept == {**PLACE, **terms}
    assert told == [
        *(
            "unknown",
            "changed",
            "changed",
            "more",
            "more",
            "changed",
            "unknown",
            "more",
            "unknown",
            "unknown",
            "changed",
        )
    ]
    assert (none, version) == (None, 1)


def test_messages_of_the_first_layout_are_found_in_the_second(page: Page) -> None:
    code = """
        const { body } = await hushbid.prepare(given);
        await new Promise((done) => { indexedDB.deleteDatabase("hushbid").onsuccess = done; });
        const old = await new Promise((done) => {
            const asked = indexedDB.open("hushbid", 1);
            asked.onupgradeneeded = () =>
                asked.result.createObjectStore("messages", { keyPath: ["campaign", "participant"] });
            asked.onsuccess = () => done(asked.result);
        });
        const { campaign, participant } = given;
        await new Promise((done) => {
            const transaction = old.transaction("messages", "readwrite");
            transaction.objectStore("messages").add({ campaign, participant, low: 0, high: 24, body });
            transaction.oncomplete = done;
        });
        old.close();
        return (await hushbid.prepared(given)).body === body"""
    assert run(page, code, OFFER)


def test_noise_is_cut_off_where_the_server_stops_believing_it(page: Page) -> None:
    losses = [2.0**-53, 1e-9, 2.0**-22, 0.1, 1 / 3, 3.7, 1e6]
    code = """
        const far = 2n ** 200n;
        return given.map((loss) => [far, -far].map((k) => String(hushbid.withinReach(k, hushbid.termsOf(loss)))))"""
    for loss, ends in zip(losses, run(page, code, losses), strict=True):
        assert [int(end) for end in ends] == [
            cut_off((sign * 2**200,), grid_bits(loss), as_ratio(loss), PARTS)[0] for sign in (1, -1)
        ]


def test_a_damaged_record_is_neither_sent_nor_drawn_again(page: Page) -> None:
    code = """
        await hushbid.prepare(given);
        const database = await new Promise((done) => {
            const asked = indexedDB.open("hushbid");
            asked.onsuccess = () => done(asked.result);
        });
        const change = (edit) => new Promise((done) => {
            const transaction = database.transaction("messages", "readwrite");
            const store = transaction.objectStore("messages");
            const asked = store.get([given.campaign, given.participant]);
            asked.onsuccess = () => store.put({ ...asked.result, ...edit(asked.result) });
            transaction.oncomplete = done;
        });
        let whole;
        await change((record) => { whole = record; return {}; });
        const told = [];
        for (const edit of [
            () => ({ body: whole.body.slice(1) }), () => ({ body: "null" }), () => ({ body: undefined }),
            () => ({ body: whole.body.replace('"value":"', '"value":"0') }),
            () => ({ body: whole.body.replace("hushbid-local", "x") }), () => ({ body: `${whole.body} ` }),
        ]) {
            await change(edit);
            for (const ask of [hushbid.prepare, hushbid.prepared]) told.push((await refused(() => ask(given)))?.[0]);
        }
        database.close();
        return [told, Object.keys(whole).sort()]"""
    told, fields = run(page, code, OFFER)
    assert told == ["damaged"] * 12
    assert fields == ["body", "campaign", "high", "low", "participant"]  # no more than the message says


def test_the_first_value_survives_a_browser_that_is_killed(
    browser: Browser, require: Callable[[str], Path], site: Site, tmp_path: Path
) -> None:
    def started() -> BrowserContext:
        return browser.browser_type.launch_persistent_context(
            tmp_path / "profile", executable_path=require("chromium"), chromium_sandbox=False, args=list(FLAGS)
        )

    context = started()
    ready = run(visit(context, site), "return hushbid.prepare(given)", OFFER)
    with context.expect_event("close"):
        for process in processes_of(tmp_path / "profile"):
            os.kill(process, signal.SIGKILL)
    context = started()
    again = visit(context, site)
    assert run(again, "return hushbid.prepared(given)", OFFER) == ready
    assert run(again, "return hushbid.prepare(given)", {**OFFER, "value": "1"}) == ready
    context.close()


def processes_of(profile: Path) -> list[int]:
    """The main processes of the browsers that were started with this profile."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:  # it has just ended
            continue
        if f"--user-data-dir={profile}".encode() in words and not any(word.startswith(b"--type=") for word in words):
            found.append(int(entry.name))
    assert found
    return found


# A survey

ASKED = (
    Number(name="hours", bounds=(0, 24)),
    YesNo(name="tired"),
    Choice(name="party", answers=("left", "right", "none")),
    Number(name="coffee", bounds=(0, 9), importance=1000),
)
LAYOUT = layout_of(ASKED)
SURVEY = {
    "questions": [one.to_dict() for one in ASKED],
    "groups": [{"rows": list(group.rows), "parts": group.parts} for group in LAYOUT.groups],
}
ANSWERED = ["7.25", True, "right", 3]
SURVEYED = {**PLACE, "survey": SURVEY, "answers": ANSWERED, "privacyLoss": 0.7, "atMost": 1}


def test_a_surveys_grid_and_scales_are_those_of_python(calculator: Page) -> None:
    losses = [2.0**-40, 1e-9, 0.1, 1 / 3, 1.0, 7.3, 2.0**24]
    code = """return given.losses.map((loss) => {
        const { gridBits, epsilon, scales } = survey.surveyTermsOf(loss, given.survey);
        const steps = survey.stepsOf(given.answers, given.survey, gridBits);
        return [gridBits, epsilon, scales.map((scale) => scale.map(String)), steps.map((cells) => cells.map(String))];
    })"""
    row = as_answers([[7.25, True, "right", 3]], ASKED, needed=np.array([True]))[0]
    found = run(calculator, code, {**SURVEYED, "losses": losses})
    for loss, (bits, epsilon, scales, steps) in zip(losses, found, strict=True):
        assert bits == grid_bits(loss, LAYOUT.groups)
        assert epsilon == [str(part) for part in as_ratio(loss)]
        for group, scale, cells in zip(LAYOUT.groups, scales, steps, strict=True):
            assert Fraction(*map(int, scale)) == Fraction(2**bits * 2**30, group.parts) / Fraction(loss)
            assert [int(cell) for cell in cells] == steps_of(row[np.newaxis], group, ASKED, bits)[0].tolist()


def test_a_surveys_noise_has_pythons_weights_and_the_right_distribution(calculator: Page) -> None:
    code = """
        const starts = [survey.boxStarts(6n), survey.choiceStarts(6n)].map((row) => row.map(String));
        const draw = (noise, cells) => Array.from({ length: 3000 }, () => noise(cells, 3n, 2n).map(String).join());
        const box = draw(survey.boxNoise, 2n);
        return [starts, box, draw(survey.choiceNoise, 3n), survey.boxNoise(200n, 2n ** 54n, 1n).length,
            survey.choiceNoise(100n, 2n ** 54n, 1n).reduce((sum, cell) => sum + cell, 0n) === 0n]"""
    starts, boxes, choices, cells, level = run(calculator, code, {"survey": True})
    for row, added in zip(starts, (noise._box_starts(6), noise._choice_starts(6)), strict=True):
        assert list(itertools.accumulate(map(int, row))) == list(added)
    assert (cells, level) == (200, True)
    for drawn, count, choice in ((boxes, 2, False), (choices, 3, True)):
        vectors = [[int(cell) for cell in one.split(",")] for one in drawn]
        assert vector_p_value(vectors, count, choice, 1.5, 2) > ALARM
        for wrong in (0.7, 1.4):
            assert vector_p_value(vectors, count, choice, 1.5 * wrong, 2) < ALARM


def test_a_surveys_message_is_made_once_and_read_and_weighed_by_the_server(page: Page) -> None:
    code = """
        const ready = await survey.prepareAnswers(given);
        const again = await survey.prepareAnswers({ ...given, answers: [1, false, "left", 0] });
        const others = [{ privacyLoss: 0.6 }, { survey: { ...given.survey, questions: given.other } }];
        const told = [];
        for (const other of others)
            told.push((await refused(() => survey.prepareAnswers({ ...given, ...other })))?.[0]);
        const kept = await survey.preparedAnswers(given);
        return [ready.body, again.body === ready.body, kept.body === ready.body, told]"""
    other = [{**SURVEY["questions"][0], "bounds": [0, 25]}, *SURVEY["questions"][1:]]
    body, again, kept, told = run(page, code, {**SURVEYED, "other": other})
    assert (again, kept, told) == (True, True, ["terms", "terms"])
    message = Message.from_dict(json.loads(body)["message"], "answers")
    assert json.dumps(json.loads(body)["message"]) == message.to_json()
    plan = ReleasePlan.of([0.7], setting="local", questions=ASKED, label="browser")
    release = release_plan(plan, [message])
    for answer, truth in zip(release.answers, ([7.25], [1], [0, 1, 0], [3]), strict=True):
        for value, right in zip(answer.values, truth, strict=True):
            assert abs(value - right) < 40 * answer.standard_error


# A single yes/no question

ONE = (YesNo(name="tired"),)
COIN = {
    **PLACE,
    "survey": {"questions": [ONE[0].to_dict()], "groups": [{"rows": [0], "parts": 2**30}]},
    "privacyLoss": 0.7,
    "atMost": 1,
}


def test_a_browsers_coin_lies_after_exactly_the_draws_that_ask_for_it(calculator: Page) -> None:
    """Which draws lead to a lie decides how likely it is, and Python enumerates them all; here some are told."""
    code = """
        const kept = crypto.getRandomValues;
        const played = (script) => {  // each call draws below a limit: the script says which integers come
            let at = 0, asked = 0;
            crypto.getRandomValues = (words) => {
                if (words.length === 0) return words;
                asked += 1;
                if (at === script.length) throw new Error("more");
                words.fill(0);
                words[0] = script[at++];  // the leading bits decide where limits are powers of two
                return words;
            };
            try {
                return [String(survey.flipped(0n, 1n, 1n)), asked];
            } catch (error) {
                if (error.message !== "more") throw error;
                return null;
            }
        };
        try {
            return given.scripts.map(played);
        } finally {
            delete crypto.getRandomValues;
            if (crypto.getRandomValues !== kept) throw new Error("not restored");
        }"""
    # ε = 1: a fair coin, then draws below 1 (no bits), 2, 3, …; below 3 and 4 two bits, of which 3 is drawn anew
    bit = {0: 0, 1: 2**31}
    pair = {value: value << 30 for value in range(4)}
    scripts = [
        [bit[0]],  # tails: the truth
        [bit[1], bit[1]],  # heads; below 2: 1 is not below 1, at round 2: even, so no lie; begin again
        [bit[1], bit[1], bit[0]],  # … and tails
        [bit[1], bit[0], pair[1]],  # below 2: 0; below 3: 1 is not below 1, at round 3: odd, a lie
        [bit[1], bit[0], pair[3], pair[2]],  # 3 is no integer below 3: drawn anew
        [bit[1], bit[0], pair[0], pair[1], bit[0]],  # round 4: no lie, then tails
        [bit[1], bit[0], pair[0], pair[0], pair[1] >> 1],  # round 5, of 5: three bits, 1: a lie
    ]
    found = run(calculator, code, {"survey": True, "scripts": scripts})
    assert found == [["0", 1], None, ["0", 3], ["1", 3], ["1", 4], ["0", 5], ["1", 5]]


@pytest.mark.parametrize("loss", [SMALLEST_LOSS, 0.1, 1.0, 2.75, 1000.0])
def test_a_browsers_coin_lies_as_often_as_promised(calculator: Page, loss: float) -> None:
    code = """
        const lies = (truth) => Array.from({ length: given.samples }, () =>
            survey.privatizeAnswers([truth], given.loss, given.survey).answer).filter((one) => one !== Number(truth));
        return [lies(false).length, lies(true).length]"""
    lies = run(calculator, code, {**COIN, "loss": repr(loss), "samples": SAMPLES})
    chance = math.exp(-loss) / (1.0 + math.exp(-loss))
    for found in lies:
        assert stats.binomtest(found, SAMPLES, chance).pvalue > ALARM
    if 1.0 <= loss < 10.0:  # the sample is large enough to see a coin that lies as for a larger loss
        wrong = 1.0 / (1.0 + math.exp(loss / 0.7))
        assert stats.binomtest(sum(lies), 2 * SAMPLES, wrong).pvalue < ALARM


def test_an_answer_by_coin_is_made_once_and_read_and_weighed_by_the_server(page: Page) -> None:
    code = """
        const ready = await survey.prepareAnswers({ ...given, answers: [true] });
        const again = await Promise.all([true, false, false].map(async (one) =>
            (await survey.prepareAnswers({ ...given, answers: [one] })).body === ready.body));
        const less = { ...given, answers: [true], privacyLoss: 0.6 };
        const told = [(await refused(() => survey.prepareAnswers(less)))?.[0]];
        for (const answers of [[], [1], ["yes"], null])
            told.push((await refused(() => survey.prepareAnswers({ ...given, participant: "q", answers })))?.[0]);
        for (const privacyLoss of [0, Infinity, 1e-300])
            told.push((await refused(() => survey.privatizeAnswers([true], privacyLoss, given.survey)))?.[0]);
        const kept = await survey.preparedAnswers(given);
        return [ready, again, kept.body === ready.body, told]"""
    ready, again, kept, told = run(page, code, COIN)
    assert (again, kept) == ([True] * 3, True)
    assert told == ["terms", "value", "value", "value", "value", "loss", "loss", "loss"]
    message = Message.from_dict(json.loads(ready["body"])["message"], "response")
    assert json.dumps(json.loads(ready["body"])["message"]) == message.to_json()
    assert ready["noisy"] == [[pytest.approx(message.decode(), rel=1e-14)]]
    plan = ReleasePlan.of([0.7], setting="local", questions=ONE, label="a coin in a browser")
    release = release_plan(plan, [message])
    assert release.answers[0].estimate == pytest.approx(message.decode(), abs=1e-11)


def test_a_browser_refuses_answers_surveys_and_losses_that_make_no_message(page: Page) -> None:
    code = """
        const ask = (more) => refused(() => survey.prepareAnswers({ ...given, ...more }));
        const groups = given.survey.groups;
        const told = [];
        const wrongs = [["x", true, "left", 1], [1, 1, "left", 1], [1, true, "up", 1], [1, true, 1, 1]];
        for (const answers of [[], null, ...wrongs]) told.push(await ask({ answers }));
        for (const wrong of [{ groups: groups.slice(1) }, { groups: [...groups, groups[0]] }, { questions: [] }])
            told.push(await ask({ survey: { ...given.survey, ...wrong } }));
        told.push(await ask({ survey: {} }));
        for (const privacyLoss of [0, NaN, 2 ** 25, 1e-300]) told.push(await ask({ privacyLoss }));
        told.push(await ask({ atMost: 0.5 }), await ask({ atMost: undefined }));
        await survey.agreeToSurvey({ ...given, setting: "local", largestLoss: 0.65 });
        told.push(await ask({}));
        return [told.map((one) => one?.[0]), await survey.preparedAnswers(given)]"""
    told, kept = run(page, code, SURVEYED)
    assert told == ["value"] * 6 + ["bounds"] * 4 + ["loss"] * 4 + ["more", "unknown", "more"]
    assert kept is None


def test_a_surveys_noise_uses_no_floating_point(calculator: Page) -> None:
    text = SCRIPT.with_name("survey.js").read_text(encoding="utf-8")
    section = text.partition("// -- the noise: integers only")[2].partition("// -- end of the noise")[0]
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", section, flags=re.DOTALL)
    assert all(name in code for name in ("boxNoise", "choiceNoise", "geometric", "uniformBelow", "flipped"))
    assert not re.search(r"Number|parseFloat|parseInt|Math|Float|\d\.|\.\d|asIntN|asUintN|Date|performance", code)
    assert set(re.findall(r"(?<![\w.])(\d+)(?!\w)", code)) == {"1"}  # how two cuts compare
    assert "Math.random" not in text


# The server's side, and the page's


def test_the_server_reads_and_weighs_what_browsers_make(page: Page) -> None:
    losses = [0.1, 0.7, 2.5, 1e-6, 100.0, 1 / 3]
    code = """return Promise.all(given.map(async (privacyLoss, at) => (await hushbid.prepare(
        { campaign: "c", participant: `p-${at}`, value: "7.25", privacyLoss, bounds: [0, 24] })).body))"""
    bodies = run(page, code, losses)
    messages = [Delivery.model_validate_json(body).given for body in bodies]
    plan = ReleasePlan.of(losses, setting="local", bounds=(0.0, 24.0), label="browsers")
    release = release_plan(plan, messages)
    assert release.privacy_loss.tolist() == losses
    assert abs(release.estimate - 7.25) < 20 * release.standard_error


def test_the_module_works_under_a_policy_that_allows_only_scripts_of_its_own_host(
    context: BrowserContext, site: Site
) -> None:
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url.removeprefix(site.url)))
    page.goto(site.url)
    assert page.evaluate("() => window.inlineRan") is None  # the policy is in force
    [complaint] = said
    assert "inline script" in complaint
    assert run(page, "return (await hushbid.prepare(given)).message.version", OFFER) == 1
    assert said == [complaint]
    assert asked == ["", "static/privatize.js"]  # and nothing was sent
    text = SCRIPT.read_text(encoding="utf-8")
    assert not re.search(r"\beval\(|new Function|innerHTML|^import |import\(|fetch\(|XMLHttp|localStorage", text, re.M)
