"""Who comes first among equals: a hash of ids, the same wherever people are bought from."""

import hashlib
from collections.abc import Iterable

import numpy as np

from hushbid.arrays import HashArray, id_texts


def tie_keys(ids: Iterable[object], *, seed: bytes = b"") -> HashArray:
    """A number for each id, the same on every machine and engine; pass them as ``tie_key``.

    The order they give depends on nothing that anybody reports, nor on the order of rows, which may: in a file sorted
    by price. Without a ``seed`` of one's own, fixed before anybody reports, nobody has anything left to choose.

    >>> tie_keys(["ann", " ann "]).tolist()
    [10176691957563388837, 10176691957563388837]
    """
    digests = (
        hashlib.blake2b(id.encode(errors="surrogatepass"), digest_size=8, key=seed).digest() for id in id_texts(ids)
    )
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
