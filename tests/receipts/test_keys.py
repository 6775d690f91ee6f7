"""Signing keys: made once, replaced without losing trust, withdrawn when they leak."""

import json
import os
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hushbid.errors import OutputExists, RecordError
from hushbid.receipts.key_folder import KeyFolder
from hushbid.receipts.keys import KeyList, PublicKey, SigningKey, first_list, rotated

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fingerprints(keys: KeyList) -> list[str]:
    return [key.fingerprint for key in keys.keys]


def test_a_signature_holds_for_its_content_purpose_and_key_only() -> None:
    key = SigningKey.create()
    signature = key.sign("one", {"a": 1})
    assert key.public.signed("one", {"a": 1}, signature)
    assert not key.public.signed("two", {"a": 1}, signature)
    assert not key.public.signed("one", {"a": 2}, signature)
    assert not SigningKey.create().public.signed("one", {"a": 1}, signature)
    assert not key.public.signed("one", {"a": 1}, signature[:-1])
    assert not PublicKey(b"short").signed("one", {"a": 1}, signature)


def test_signatures_are_those_of_rfc_8032() -> None:
    """Test 1 of RFC 8032, section 7.1: the public key of a known secret."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert SigningKey(seed).public.hex == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def test_a_key_comes_back_from_its_file_and_never_shows() -> None:
    key = SigningKey.create()
    assert SigningKey.from_pem(key.to_pem()) == key
    assert key.seed.hex() not in repr(key)
    assert repr(key.seed) not in repr(key)


@pytest.mark.parametrize("text", [b"", b"nonsense", SigningKey(bytes(32)).to_pem()[:-40]])
def test_a_file_that_holds_no_key_is_refused(text: bytes) -> None:
    with pytest.raises(RecordError, match="PEM"):
        SigningKey.from_pem(text)


def test_a_key_of_another_kind_is_refused() -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(RecordError, match="Ed25519"):
        SigningKey.from_pem(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_trust_runs_both_ways_along_endorsed_keys() -> None:
    secrets = [SigningKey.create() for _ in range(4)]
    keys = first_list(secrets[0], at=NOON)
    for old, new in pairwise(secrets):
        keys = rotated(keys, old, new, at=NOON)
    for one in fingerprints(keys):
        assert keys.trusted_from(one) == set(fingerprints(keys))
    assert keys.trusted_from("0" * 64) == frozenset()


def test_trust_stops_at_a_key_that_leaked() -> None:
    first, leaked, new = (SigningKey.create() for _ in range(3))
    keys = rotated(rotated(first_list(first, at=NOON), first, leaked, at=NOON), None, new, at=NOON, leaked=True)
    assert keys.trusted_from(first.public.fingerprint) == {first.public.fingerprint}
    assert keys.trusted_from(leaked.public.fingerprint) == frozenset()
    assert keys.trusted_from(new.public.fingerprint) == {first.public.fingerprint, new.public.fingerprint}


def test_somebody_elses_list_earns_no_trust_from_a_known_key() -> None:
    """An attacker can list our key and sign the list with his own, but not endorse his key with ours."""
    ours, his = SigningKey.create(), SigningKey.create()
    forged = rotated(
        rotated(first_list(ours, at=NOON), None, his, at=NOON, leaked=True), his, SigningKey.create(), at=NOON
    )
    content = forged.to_dict()
    content["keys"][0]["withdrawn"] = False
    content["keys"][1]["endorsement"] = content["keys"][2]["endorsement"]
    with pytest.raises(RecordError, match="not signed"):
        KeyList.from_dict(content)
    assert forged.trusted_from(ours.public.fingerprint) == frozenset()
    honest = replace(forged, keys=(replace(forged.keys[0], withdrawn=False), *forged.keys[1:]))
    assert honest.trusted_from(ours.public.fingerprint) == {ours.public.fingerprint}


def test_a_change_of_any_byte_of_the_list_is_found() -> None:
    old, new = SigningKey(bytes(32)), SigningKey(bytes(range(32)))
    text = json.dumps(rotated(first_list(old, at=NOON), old, new, at=NOON).to_dict(), separators=(",", ":")).encode()
    for place in range(len(text)):
        changed = text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
        try:
            values = json.loads(changed)
        except ValueError:
            continue
        with pytest.raises(RecordError):
            KeyList.from_dict(values)


def test_only_the_key_in_use_can_endorse() -> None:
    keys = first_list(SigningKey.create(), at=NOON)
    with pytest.raises(RecordError, match="key in use"):
        rotated(keys, SigningKey.create(), SigningKey.create(), at=NOON)


def test_a_folder_keeps_one_secret_for_its_owner_only(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "signing")
    assert not folder.exists
    first = folder.create()
    assert folder.current().public == first.newest.public_key
    second = folder.rotate()
    assert fingerprints(second)[0] == first.newest.fingerprint
    assert folder.current().public == second.newest.public_key
    assert [path.name for path in folder.path.glob("*.pem")] == ["2.pem"]
    assert stat.S_IMODE(os.stat(folder.path / "2.pem").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700


def test_a_second_first_key_is_refused(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.create()
    with pytest.raises(OutputExists, match="rotate"):
        folder.create()


def test_a_folder_without_a_key_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="hushbid keys create"):
        KeyFolder(tmp_path).current()


def test_a_secret_left_by_a_crash_before_it_was_listed_does_no_harm(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.create()
    (tmp_path / "2.pem").write_bytes(SigningKey.create().to_pem())
    assert folder.current().public == folder.listed().newest.public_key
    assert folder.rotate().newest.number == 2
    assert folder.current().public == folder.listed().newest.public_key


def test_a_secret_that_is_not_the_listed_one_is_refused(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.create()
    (tmp_path / "1.pem").write_bytes(SigningKey.create().to_pem())
    with pytest.raises(RecordError, match="does not hold the key"):
        folder.current()


def test_a_lost_secret_can_be_replaced_as_if_it_had_leaked(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.create()
    (tmp_path / "1.pem").unlink()
    with pytest.raises(RecordError):
        folder.rotate()
    keys = folder.rotate(leaked=True)
    assert [key.withdrawn for key in keys.keys] == [True, False]
    assert folder.current().public == keys.newest.public_key


def test_rotations_at_the_same_moment_come_one_after_the_other(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    first = folder.create().newest.fingerprint
    threads = [threading.Thread(target=folder.rotate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = folder.listed()
    assert len(keys.keys) == 9
    assert len(keys.trusted_from(first)) == 9
    assert folder.current().public == keys.newest.public_key
