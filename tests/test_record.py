"""The record as a file: what is written is read again, byte for byte, and what is not a record is refused in words.

The golden records in tests/vectors, made by make_records.py there, stay readable until the format's version changes.
"""

import copy
import dataclasses
import gzip
import hashlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy
from hushbid.common.documents import canonical, content_hash
from hushbid.common.money import Money, rounded_up
from hushbid.disclosure import privatize
from hushbid.errors import InputError, OutputExists, RecordError, Unwritable
from hushbid.mechanism import Market, Outcome, release
from hushbid.priors import Uniform
from hushbid.record import Record, read
from hushbid.verification.verifying import findings, verify

VECTORS = Path(__file__).parents[0] / "vectors"
KINDS = ("price", "accuracy", "budget", "local")
"""The golden records."""


@pytest.fixture(scope="session")  # a module's would be made anew, and released twice, where files are run in turns
def outcome() -> Outcome:
    return Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(
        [1.1, 1.2, 1.9037]
    )  # no other test releases this one


EUROS = Money.of(np.array([0.5, 0.25, 0.1]), 1e-9, currency="EUR", decimals=2)


@pytest.fixture(scope="session")
def record(outcome: Outcome) -> Record:
    return Record.of(
        outcome,
        release(outcome, [0.2, 0.7, 0.4], question="record"),
        ids=["ann", "bob", "Zoë"],
        currency="EUR",
        stamps=["a stamp"],
    )


def nodes(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands: every field and every entry of a list."""
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for name, value in inner:
        yield (*path, name)
        yield from nodes(value, (*path, name))


def changed(values: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of the values with one changed, and a hash that fits."""
    content: Any = {name: kept for name, kept in values.items() if name != "hash"}
    place = content
    for name in path[:-1]:
        place[name] = copy.copy(place[name])  # only what leads to the changed place: there are thousands of them
        place = place[name]
    place[path[-1]] = value
    return {**content, "hash": content_hash(content)}


# -- what is written is read again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["record.json", "record.json.gz"])
def test_a_record_is_read_as_it_was_written(record: Record, tmp_path: Path, name: str) -> None:
    path = record.write(tmp_path / name)
    found = read(path)
    assert found.to_dict() == record.to_dict()
    assert found.hash == record.hash
    assert found.ids == ("ann", "bob", "Zoë")
    assert found.stamps == ("a stamp",)
    for column, other in zip(found.outcome.columns().values(), record.outcome.columns().values(), strict=True):
        assert column.tolist() == other.tolist()
    assert found.release is not None
    assert record.release is not None
    assert found.release.estimate == record.release.estimate
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_equal_contents_have_equal_bytes_whatever_the_order_of_keys(record: Record, tmp_path: Path) -> None:
    turned = dict(reversed(record.to_dict().items()))
    turned["outcome"] = dict(reversed(turned["outcome"].items()))
    first, second = record.write(tmp_path / "one"), Record.from_dict(turned).write(tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    assert read(first).write(tmp_path / "three").read_bytes() == first.read_bytes()


def test_compressed_records_have_equal_bytes_too(record: Record, tmp_path: Path) -> None:
    first, second = record.write(tmp_path / "one.gz"), record.write(tmp_path / "two.gz")
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == canonical(record.to_dict()) + b"\n"


def test_the_hash_is_that_of_the_file_without_it(record: Record, tmp_path: Path) -> None:
    text = record.write(tmp_path / "record.json").read_bytes()
    without = re.sub(rb'"hash":"[0-9a-f]{64}",', b"", text, count=1).rstrip(b"\n")
    assert hashlib.sha256(without).hexdigest() == record.hash
    assert text.isascii()
    assert text.count(b"\n") == 1


def test_an_existing_file_is_replaced_only_on_demand(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text("something else")
    with pytest.raises(OutputExists, match="exists already; pass overwrite=True"):
        record.write(path)
    assert path.read_text() == "something else"
    record.write(path, overwrite=True)
    assert read(path).hash == record.hash
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_folder_that_is_not_there_is_a_clear_error(record: Record, tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match=r"cannot be written: No such file or directory\.$"):
        record.write(tmp_path / "nowhere" / "record.json")
    with pytest.raises(RecordError, match=r"cannot be read: No such file or directory\.$"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(RecordError, match=r"record\.json cannot be read: No such file or directory\.$"):
        read(tmp_path)
    (tmp_path / "torn.json.gz").write_bytes(b"{}")
    with pytest.raises(RecordError, match=r"not a complete gzip file\.$"):
        read(tmp_path / "torn.json.gz")


def test_what_is_written_is_the_canonical_form_whether_the_record_was_made_or_read(record: Record) -> None:
    expected = canonical(record.to_dict()) + b"\n"
    assert record.to_bytes() == expected
    assert Record.from_dict(record.to_dict()).to_bytes() == expected
    assert Record.from_dict(record.to_dict()).content == record.content


def test_a_release_is_added_once(outcome: Outcome, record: Record) -> None:
    assert record.release is not None
    later = Record.of(outcome, ids=["ann", "bob", "Zoë"], currency="EUR", stamps=["a stamp"])
    assert later.release is None
    assert later.with_release(record.release).hash == record.hash
    with pytest.raises(RecordError, match="one release"):
        record.with_release(record.release)


def test_a_record_does_not_show_numbers_of_people_in_a_log(record: Record) -> None:
    assert repr(record) == f"Record(people=3, released, hash={record.hash[:12]!r})"


# -- what is put in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ids": ["a", "b"]}, "ids must have one entry per person"),
        ({"ids": ["a", "b", "a"]}, "ids must all be different"),
        ({"ids": [1, 2, 3]}, "ids must be texts"),
        ({"groups": ["a"]}, "groups must have one entry per person"),
        ({"currency": "EUR", "money": EUROS}, "give either currency or money"),
        ({"currency": "euro"}, "currency must be three capital letters"),
        ({"currency": "E1R"}, "currency must be three capital letters"),
        ({"currency": "EUR", "decimals": 7}, "decimals must be an integer from 0 to 6"),
        ({"currency": "EUR", "decimals": 2.0}, "decimals must be an integer from 0 to 6"),
    ],
)
def test_what_does_not_fit_the_people_is_refused(outcome: Outcome, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Record.of(outcome, **given)


def test_money_is_rounded_up_in_exact_arithmetic() -> None:
    amounts = np.array([1.234, -1.234, 0.25, 0.07, 0.0, -0.0, 1e9 + 0.01, 0.29, 5e-324, -5e-324])
    assert rounded_up(amounts, 2).tolist() == [124, -123, 25, 8, 0, 0, 100000000001, 29, 1, 0]
    assert rounded_up(np.array([1.0, 1.5]), 0).tolist() == [1, 2]
    money = Money.of(np.array([0.5, 0.111]), 1e-9, currency="EUR", decimals=2)
    assert (money.payments.tolist(), money.total) == ([50, 12], 62)
    assert money.incentive_error == pytest.approx(0.01 + 1e-9)
    with pytest.raises(InputError, match="row 1"):
        rounded_up(np.array([1.0, 1e15]), 2)


# -- golden records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_golden_record_stays_readable_and_verifies(kind: str) -> None:
    found = read(VECTORS / f"record-{kind}.json")
    assert found.content["version"] == 3
    assert found.outcome.market.stated_goal.kind == ("price" if kind == "local" else kind)
    assert verify(found).ok, verify(found).summary()


def test_the_golden_accuracy_says_what_was_promised_for_its_roster() -> None:
    found = read(VECTORS / "record-accuracy.json")
    market = found.outcome.market
    assert (market.goal, market.max_correlation, market.population) == (Accuracy(2.5), 0.3, 40)
    assert found.outcome.worst_mse == 2.5**2 > found.outcome.mse
    assert found.release is not None
    assert found.release.dropped_out == (2,)


def test_the_golden_local_record_has_some_at_their_cap_and_one_who_sent_nothing() -> None:
    found = read(VECTORS / "record-local.json")
    losses = found.outcome.privacy_loss
    assert losses.max() == found.outcome.market.max_privacy_loss == 3.9
    assert 0.0 < losses[2] < 3.9
    assert found.money is not None
    assert (found.money.currency, found.money.decimals) == ("JPY", 0)
    assert found.release is not None
    assert (found.release.setting, found.release.dropped_out) == ("local", (1,))


@pytest.mark.parametrize("kind", KINDS)
def test_a_golden_record_is_written_again_byte_for_byte(kind: str, tmp_path: Path) -> None:
    path = VECTORS / f"record-{kind}.json"
    assert read(path).write(tmp_path / "again.json").read_bytes() == path.read_bytes()


# -- what is not a record ----------------------------------------------------------------------------------------------


def test_a_torn_file_is_refused_wherever_it_is_torn(tmp_path: Path) -> None:
    whole, path = (VECTORS / "record-price.json").read_bytes(), tmp_path / "torn.json"
    for length in [*range(0, len(whole) - 2, 97), len(whole) - 2]:
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=r"must be (JSON|a JSON object)"):
            read(path)


def test_a_torn_or_false_compressed_file_is_refused(record: Record, tmp_path: Path) -> None:
    path = record.write(tmp_path / "record.json.gz")
    whole = path.read_bytes()
    for content in (whole[:-10], whole[:40], whole[:30] + b"\x00\x01" + whole[32:], b"", b"{}"):
        path.write_bytes(content)
        with pytest.raises(RecordError):
            read(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be JSON"),
        ("not JSON", "must be JSON"),
        ("[1, 2]", "must be a JSON object, got list"),
        ("null", "must be a JSON object, got NoneType"),
        ('{"version": NaN}', "must be JSON in which no key occurs twice and no number is NaN or infinite"),
        ('{"version": -Infinity}', "must be JSON in which"),
        ('{"version": 1, "version": 1}', "must be JSON in which no key occurs twice"),
        ("[" * 100_000, "must be JSON"),
        ("{}", r"format 'hushbid record' and version 3, got \(None, None\)"),
        ('{"format": "hushbid record", "version": 4}', r"version 3, got \('hushbid record', 4\)"),
        ('{"format": "hushbid record", "version": "1"}', r"version 3, got \('hushbid record', '1'\)"),
        ('{"format": "hushbid record", "version": [1]}', r"version 3, got \('hushbid record', \[1\]\)"),
        ('{"format": "hushbid record", "version": true}', r"version 3, got \('hushbid record', True\)"),
        ('{"format": "hushbid release", "version": 1}', r"got \('hushbid release', 1\)"),
        ('{"format": "hushbid record", "version": 1}', r"version 3, got \('hushbid record', 1\)"),
        ('{"format": "hushbid record", "version": 3}', "must have a hash"),
    ],
)
def test_what_is_no_record_of_this_version_is_refused_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=words) as refused:
        read(path)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordError, match="must be JSON"):
        read(path)


def test_an_altered_byte_is_refused_unless_it_changes_no_value(tmp_path: Path) -> None:
    """Digits for digits, letters for letters, so that the file stays JSON wherever it can."""
    golden = VECTORS / "record-local.json"
    whole, path = golden.read_bytes(), tmp_path / "altered.json"
    original = read(golden).to_dict()
    places = np.random.default_rng(5).choice(len(whole) - 1, 150, replace=False)
    for place in places.tolist():
        old = whole[place : place + 1]
        new = b"7" if old.isdigit() and old != b"7" else b"3" if old.isdigit() else b"q" if old != b"q" else b"p"
        path.write_bytes(whole[:place] + new + whole[place + 1 :])
        try:
            found = read(path)
        except RecordError:
            continue
        assert found.to_dict() == original, place  # the last of many digits: still the same double


def test_a_missing_or_further_field_is_refused_by_name(record: Record) -> None:
    values = record.to_dict()
    for path in nodes({name: value for name, value in values.items() if name != "hash"}):
        if isinstance(path[-1], str) and path[-2:-1] not in (("versions",), ("totals",)):
            content = changed(values, path, None)
            place = content
            for name in path[:-1]:
                place = place[name]
            del place[path[-1]]
            del content["hash"]
            with pytest.raises(RecordError):
                Record.from_dict({**content, "hash": content_hash(content)})
    further = changed(values, ("further",), 1)
    with pytest.raises(RecordError, match="differs in: further"):
        Record.from_dict(further)


WRONG = (None, "x", "0.5", True, [], {}, [["a"]], {"a": None}, 10**400, -1, 1e308, "inf", "nan")
"""In the place of anything."""

MAY_BE_MISSING = {("people", "ids"), ("people", "groups"), ("money",), ("release",)}


def means_something(path: tuple[Any, ...], old: Any, new: Any) -> bool:
    """Whether that value may stand there: the old one, a text for a text, and nothing where there may be nothing."""
    if type(old) is type(new) and (old == new or isinstance(old, str)):
        return True
    empty = {"notes": [], "stamps": [], "versions": {}}.get(path[-1])
    return (new is None and path in MAY_BE_MISSING) or (empty is not None and new == empty)


def noticed(values: dict[str, Any], path: tuple[Any, ...], new: Any) -> str:
    """Why a record with another value is refused, or which check fails first; only errors of ours are caught."""
    try:
        found = Record.from_dict(changed(values, path, new))
    except RecordError as refused:
        return str(refused)
    return next((check.name for check in findings(found) if check.status == "fails"), "")


def test_a_value_of_another_type_is_refused_or_found_and_never_crashes(record: Record) -> None:
    values = record.to_dict()
    for path in nodes({name: value for name, value in values.items() if name != "hash"}):
        old: Any = values
        for name in path:
            old = old[name]
        for new in WRONG:
            if not means_something(path, old, new):
                assert re.fullmatch("[^\n]+", noticed(values, path, new)), (path, new)


def test_the_local_setting_is_recorded_with_its_messages_losses(tmp_path: Path) -> None:
    market = Market(prior=Uniform(1, 2), setting="local", user_weight=0.0, buyer_weight=100.0)
    outcome = market.acquire([1.1, 1.2, 1.4])
    data = [privatize(0.5, float(loss), market.bounds) if loss > 0 else None for loss in outcome.privacy_loss]
    found = read(Record.of(outcome, release(outcome, data, question="read back")).write(tmp_path / "record.json"))
    assert found.release is not None
    assert found.release.privacy_loss.tolist() == outcome.privacy_loss.tolist()
    assert found.money is None
    assert found.incentive_error == outcome.incentive_error


def test_payments_that_are_rounded_already_are_recorded_as_they_are(outcome: Outcome) -> None:
    money = Money.of(outcome.payments, outcome.incentive_error, currency="EUR", decimals=2)
    assert Record.of(outcome, money=money).hash == Record.of(outcome, currency="EUR", decimals=2).hash
    with pytest.raises(RecordError, match="one per person"):
        Record.of(outcome, money=dataclasses.replace(money, payments=money.payments[:2]))
