"""Templates: everything is escaped, and nothing that somebody typed can reorder what stands around it."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

HTML = "text/html"
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@cache
def environment() -> Environment:
    """Where templates are found and how they are filled in."""
    return Environment(
        loader=PackageLoader("hushbid.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )


def shown(value: object) -> object:
    """A value as it may be shown: without control characters and those that reorder text."""
    if value is None:
        return ""
    return _INVISIBLE.sub("", value) if isinstance(value, str) and not isinstance(value, Markup) else value
