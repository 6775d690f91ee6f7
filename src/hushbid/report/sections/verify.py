"""How a reader checks a report without trusting us."""

from dataclasses import dataclass

from hushbid import __version__
from hushbid.languages import noted
from hushbid.priors.forms import prior_words
from hushbid.report.language import say
from hushbid.report.material import Material
from hushbid.report.rendering import plain

ANCHOR, TITLE = "verify", noted("How to verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyFacts:
    """What is needed to compute everything again."""

    record_name: str
    """The file to ask for."""

    record_hash: str | None
    """Its fingerprint."""

    prior: str
    """The prior in words of `Prior.to_text`, shortened; a prior made of a sample is described, not shown."""

    version: str
    """Of the Hushbid that made the page."""

    versions: tuple[tuple[str, str], ...]
    """Of the software the release was made with."""


def facts_of(material: Material) -> VerifyFacts:
    """Where the record is and how it is recognised."""
    release = material.release
    return VerifyFacts(
        record_name=plain(material.record_name),
        record_hash=None if material.record_hash is None else plain(material.record_hash),
        prior=prior_words(material.outcome.market.prior, say=say),
        version=__version__,
        versions=tuple(sorted((release.versions if release is not None else {"hushbid": __version__}).items())),
    )
