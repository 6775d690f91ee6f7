"""Where a prior comes from: a text, a table of a campaign file, or a file that ``hushbid fit-prior`` wrote.

A prior fitted to a pilot must not price the people of that pilot: their own bids would move their own prices, and
telling the truth would no longer be best. So a prior file keeps a keyed hash of every pilot id, and a campaign looks
its own ids up among them. The file is readable by its owner only: with it, one can tell whether a guessed id took part.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from hushbid.common.codec import Codec, hexadecimal
from hushbid.common.documents import unique_keys
from hushbid.errors import InputError, PriorError, RecordError
from hushbid.priors import Grouped, Prior, parse_prior, prior_from_dict

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pilot:
    """The people whose costs a prior was fitted to, as hashes."""

    people: int
    """How many there were."""

    key: Annotated[bytes, hexadecimal(_DIGEST_BYTES)]
    """Of the hashes."""

    ids: tuple[str, ...] | None
    """The hashes of their ids, sorted; None if the pilot had no ids, so that nobody can be looked up."""

    @classmethod
    def of(cls, ids: Iterable[str] | None, people: int) -> "Pilot":
        """Return a pilot with a new key."""
        key = secrets.token_bytes(_DIGEST_BYTES)
        return cls(people=people, key=key, ids=None if ids is None else tuple(sorted(set(_hashes(ids, key)))))

    def recognised(self, ids: Iterable[str]) -> list[bool]:
        """Return who of these people was in the pilot, as far as its hashes tell."""
        known = frozenset(self.ids or ())
        return [one in known for one in _hashes(ids, self.key)]


def overlap(pilots: Iterable[Pilot], ids: Iterable[str]) -> int:
    """Return how many of these people were in any of the pilots, as far as their hashes tell.

    >>> overlap([Pilot.of(["ann", "bob"], 2), Pilot.of(["bob", "cem"], 2)], ["ann", "bob", "cem", "dee"])
    3
    """
    known = list(ids)
    return sum(map(any, zip(*(pilot.recognised(known) for pilot in pilots), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorSource:
    """A prior and what is known about its origin. With groups, one of each per group."""

    priors: dict[str, Prior]
    """By group; a single one has the name ""."""

    pilots: dict[str, Pilot] = field(default_factory=dict)
    """Of those priors that were read from a file."""

    files: dict[str, str] = field(default_factory=dict)
    """Content hash of each prior file, by group."""

    paths: tuple[Path, ...] = ()
    """Where they were read."""

    @classmethod
    def by_group(cls, single: Mapping[str, "PriorSource"]) -> "PriorSource":
        """Join the one prior of each group."""
        return cls(
            priors={name: source.priors[""] for name, source in single.items()},
            pilots={name: source.pilots[""] for name, source in single.items() if source.pilots},
            files={name: source.files[""] for name, source in single.items() if source.files},
            paths=tuple(path for source in single.values() for path in source.paths),
        )

    @property
    def is_grouped(self) -> bool:
        """Whether people differ by group."""
        return set(self.priors) != {""}

    def prior_for(self, labels: list[str] | None) -> Prior | Grouped:
        """Return the prior of people with these group labels."""
        if not self.is_grouped:
            return self.priors[""]
        if labels is None:
            raise InputError("A prior by group needs a column of groups in the bids.")
        return Grouped(self.priors, labels)

    def origin(self, ids: list[str] | None, *, accepted: bool, counted: int | None = None) -> dict[str, Any]:
        """Return what the record says of where the prior comes from; refuse an overlap that was not accepted.

        ``counted`` is the `overlap` of its pilots, if ids were looked up elsewhere.
        """
        if not self.pilots:
            return {"kind": "stated"}
        found = overlap(self.pilots.values(), ids) if ids is not None else counted
        if found and not accepted:
            raise InputError(
                f"The prior was fitted to a pilot in which {found:,} of the people took part who now bid: their"
                " own answers would move their own prices, so the truth would no longer be their best bid. Fit it"
                " on other people, or accept it by name (accept_pilot_overlap); the record will say so."
            )
        return {
            "kind": "fitted",
            "prior_files": dict(self.files),
            "pilot_people": sum(pilot.people for pilot in self.pilots.values()),
            "overlap": None if any(pilot.ids is None for pilot in self.pilots.values()) else found,
            "overlap_accepted": accepted,
        }


def prior_source(form: object, *, folder: Path = Path()) -> PriorSource:
    """Return a prior from a text, a dict with ``family``, a dict with ``file``, or a dict of these by group."""
    if isinstance(form, Mapping) and "family" not in form and set(form) != {"file"}:
        if not form:
            raise PriorError("a prior by group needs at least one group.")
        single = {name: prior_source(one, folder=folder) for name, one in form.items()}
        if any(source.is_grouped for source in single.values()):
            raise PriorError("a group's prior must be one prior, not groups again.")
        return PriorSource.by_group(single)
    if isinstance(form, Mapping) and "family" not in form:
        return read_prior(folder / str(form["file"]))
    if isinstance(form, Mapping):
        prior = prior_from_dict(form)
        if not isinstance(prior, Prior):
            raise PriorError("a prior by group must be written as a table of groups.")
        return PriorSource(priors={"": prior})
    if isinstance(form, str):
        return PriorSource(priors={"": parse_prior(form)})
    raise PriorError(f'a prior must be a text such as "uniform:1,2" or a table, got {type(form).__name__}.')


def read_prior(path: Path) -> PriorSource:
    """Return a prior and its pilot from a file that ``hushbid fit-prior`` wrote."""
    try:
        content = path.read_bytes()
        form = json.loads(content, object_pairs_hook=unique_keys)
    except FileNotFoundError:
        raise PriorError(f"{path} does not exist.") from None
    except OSError as problem:
        raise PriorError(f"{path} cannot be read: {problem.strerror}.") from problem
    except (ValueError, RecursionError):
        raise PriorError(
            f"{path} is not a prior file: it is not JSON, holds a key twice, or is nested too deeply."
        ) from None
    if isinstance(form, Mapping) and form.get("format") == _BY_GROUP["format"]:
        return _read_groups(form, path, hashlib.sha256(content).hexdigest())
    return _read_form(form, path, hashlib.sha256(content).hexdigest())


def _read_groups(form: Mapping[str, Any], path: Path, digest: str) -> PriorSource:
    """Return the prior of every group in a file of them."""
    groups = form.get("groups")
    if {name: form[name] for name in form if name != "groups"} != _BY_GROUP or not isinstance(groups, Mapping):
        raise PriorError(f"{path} is no file of priors by group: it has other fields, or another version.")
    if not groups or "" in groups:
        raise PriorError(f"{path} is no file of priors by group: it has no groups, or one without a name.")
    source = PriorSource.by_group({label: _read_form(one, path, digest) for label, one in groups.items()})
    return replace(source, paths=(path,))


def _read_form(form: object, path: Path, digest: str) -> PriorSource:
    """Return one prior and its pilot."""
    try:
        found = _FILE.read(form)
        prior = prior_from_dict(found.prior)
    except (RecordError, PriorError) as problem:
        raise PriorError(f"{path} cannot be read as a prior file: {problem}", field=problem.field) from None
    if not isinstance(prior, Prior):
        raise PriorError(f"{path} cannot be read as a prior file: it holds a prior by group.")
    return PriorSource(
        priors={"": prior},
        pilots={"": found.pilot},
        files={"": digest},
        paths=(path,),
    )


def prior_file_text(prior: Prior, pilot: Pilot, fit: Mapping[str, Any]) -> str:
    """Return the content of a prior file."""
    return json.dumps(_written(prior, pilot, fit), indent=1)


def grouped_file_text(groups: Mapping[str, tuple[Prior, Pilot, Mapping[str, Any]]]) -> str:
    """Return the content of a file of priors by group: what the file of each group alone would hold."""
    return json.dumps({**_BY_GROUP, "groups": {label: _written(*one) for label, one in groups.items()}}, indent=1)


def _written(prior: Prior, pilot: Pilot, fit: Mapping[str, Any]) -> dict[str, Any]:
    return _FILE.write(_PriorFile(prior=prior.to_dict(), fit=fit, pilot=pilot))


@dataclass(frozen=True, slots=True, kw_only=True)
class _PriorFile:
    """What a prior file holds."""

    prior: Mapping[str, Any]
    fit: Mapping[str, Any]
    pilot: Pilot


_FILE = Codec(_PriorFile, "prior file", header={"format": "hushbid prior", "version": 1})
_BY_GROUP = {"format": "hushbid priors by group", "version": 1}


def _hashes(ids: Iterable[str], key: bytes) -> list[str]:
    keyed = hashlib.blake2b(key=key, digest_size=_DIGEST_BYTES)  # the key's block is hashed once
    hashes = []
    for one in ids:
        digest = keyed.copy()
        digest.update(one.encode())
        hashes.append(digest.hexdigest())
    return hashes
