"""One hash for many entries, and short proofs that an entry is among them: the tree of RFC 6962, section 2.1.

A leaf is ``SHA-256(0x00 ‖ entry)``, an inner node ``SHA-256(0x01 ‖ left ‖ right)``: the first byte keeps an inner node
from passing for an entry. A tree of n > 1 leaves has the largest power of two below n of them on its left. The tree of
no entries has the root ``SHA-256()``.

A proof is the list of the hashes beside the path from a leaf to the root, from the bottom; it is read as in RFC 9162,
section 2.1.3.2. A proof shows nothing of the other entries if these cannot be guessed: put salt into them.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hushbid.errors import InputError

HASH_BYTES = 32
_LEAF, _NODE = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """The tree over some entries, in their order.

    >>> tree = Tree.of([b"ann", b"bob", b"cy"])
    >>> tree.size, proves(tree.proof(1), entry=b"bob", index=1, size=3, root=tree.root)
    (3, True)
    """

    levels: tuple[tuple[bytes, ...], ...]
    """Hashes from the leaves to the root; a hash without a neighbour on its right is passed on unchanged."""

    @classmethod
    def of(cls, entries: Iterable[bytes]) -> "Tree":
        """Build the tree."""
        level = tuple(_hash(_LEAF + entry) for entry in entries)
        levels = [level]
        while len(level) > 1:
            pairs = [_hash(_NODE + level[k] + level[k + 1]) for k in range(0, len(level) - 1, 2)]
            # passed on unchanged: the same tree as RFC 6962's split at a power of two
            level = (*pairs, level[-1]) if len(level) % 2 else tuple(pairs)
            levels.append(level)
        return cls(tuple(levels))

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.levels[0])

    @property
    def root(self) -> bytes:
        """The hash of all entries."""
        return self.levels[-1][0] if self.size else _hash(b"")

    def proof(self, index: int) -> tuple[bytes, ...]:
        """The proof that an entry is at its place."""
        if type(index) is not int or not 0 <= index < self.size:
            raise InputError(f"index must be an integer from 0 to {self.size - 1}, got {index!r}.", field="index")
        path = []
        for level in self.levels[:-1]:
            beside = index ^ 1  # the sibling's place, on either side
            if beside < len(level):
                path.append(level[beside])
            index >>= 1
        return tuple(path)


def proves(proof: Sequence[bytes], *, entry: bytes, index: int, size: int, root: bytes) -> bool:
    """Whether a proof shows that a tree of that size and root has the entry at that place."""
    if not 0 <= index < size or any(len(beside) != HASH_BYTES for beside in proof):
        return False
    place, last, found = index, size - 1, _hash(_LEAF + entry)
    for beside in proof:
        if last == 0:
            return False
        # a right child, or the last one, whose sibling is on the left
        if place & 1 or place == last:
            found = _hash(_NODE + beside + found)
            # levels at which the last node had no sibling: nothing was hashed there
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = _hash(_NODE + found + beside)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
