"""The Merkle tree agrees with RFC 6962, and a proof shows what it claims and nothing else."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.errors import InputError
from hushbid.receipts.merkle import Tree, proves
from tests.extent import each

# The entries and roots with which implementations of Certificate Transparency are tested.
PUBLISHED_ENTRIES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
PUBLISHED_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def entries_of(n: int) -> list[bytes]:
    return [f"entry {k}".encode() for k in range(n)]


def root_by_definition(entries: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    n = len(entries)
    if n == 0:
        return hashlib.sha256().digest()
    if n == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    k = 1 << (n - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + root_by_definition(entries[:k]) + root_by_definition(entries[k:])).digest()


def path_by_definition(index: int, entries: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1, word for word."""
    n = len(entries)
    if n == 1:
        return []
    k = 1 << (n - 1).bit_length() - 1
    if index < k:
        return [*path_by_definition(index, entries[:k]), root_by_definition(entries[k:])]
    return [*path_by_definition(index - k, entries[k:]), root_by_definition(entries[:k])]


@each("n", range(len(PUBLISHED_ROOTS)))
def test_roots_are_the_published_ones(n: int) -> None:
    assert Tree.of(bytes.fromhex(entry) for entry in PUBLISHED_ENTRIES[:n]).root.hex() == PUBLISHED_ROOTS[n]


@each("n", range(1, 71))
def test_every_entry_of_every_size_is_proved_at_its_place_only(n: int) -> None:
    entries = entries_of(n)
    tree = Tree.of(entries)
    assert tree.root == root_by_definition(entries)
    for index, entry in enumerate(entries):
        proof = tree.proof(index)
        assert list(proof) == path_by_definition(index, entries)
        assert [k for k in range(n) if proves(proof, entry=entry, index=k, size=n, root=tree.root)] == [index]
        assert not proves(proof, entry=entry + b" ", index=index, size=n, root=tree.root)
        assert not proves((*proof, bytes(32)), entry=entry, index=index, size=n, root=tree.root)
        assert n == 1 or not proves(proof[:-1], entry=entry, index=index, size=n, root=tree.root)


@pytest.mark.parametrize("n", [2**14 - 1, 2**14, 2**14 + 1, 100_003])
def test_large_trees_have_short_proofs_that_hold(n: int) -> None:
    entries = entries_of(n)
    tree = Tree.of(entries)
    for index in {0, 1, n // 3, n // 2, n - 2, n - 1}:
        proof = tree.proof(index)
        assert len(proof) <= (n - 1).bit_length()
        assert proves(proof, entry=entries[index], index=index, size=n, root=tree.root)


@given(n=st.integers(1, 200), data=st.data())
def test_a_flipped_bit_anywhere_in_a_proof_is_found(n: int, data: st.DataObject) -> None:
    tree = Tree.of(entries_of(n))
    index = data.draw(st.integers(0, n - 1))
    proof = list(tree.proof(index))
    entry = entries_of(n)[index]
    if proof:
        place, bit = data.draw(st.integers(0, len(proof) - 1)), data.draw(st.integers(0, 255))
        changed = int.from_bytes(proof[place], "big") ^ (1 << bit)
        proof[place] = changed.to_bytes(32, "big")
        assert not proves(proof, entry=entry, index=index, size=n, root=tree.root)


def test_an_inner_node_does_not_pass_for_an_entry() -> None:
    entries = entries_of(4)
    tree = Tree.of(entries)
    left = tree.levels[1]
    assert not proves([left[1]], entry=tree.levels[0][0] + tree.levels[0][1], index=0, size=2, root=tree.root)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_places_outside_the_tree_are_never_proved(index: int, size: int) -> None:
    assert not proves([], entry=b"", index=index, size=size, root=Tree.of([b""]).root)


@pytest.mark.parametrize("index", [-1, 3, 1.0, True])
def test_a_proof_for_a_place_outside_the_tree_is_refused(index: int) -> None:
    with pytest.raises(InputError, match="index must be an integer from 0 to 2"):
        Tree.of(entries_of(3)).proof(index)
