"""Templates and text that nobody can inject into: everything is escaped, and nothing that somebody typed can reorder
what stands around it. The server's pages are filled in the same way.
"""

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

# What neither HTML nor XML allows in a document, not even escaped; and invisible characters that reorder what stands
# around them: a name must not rewrite the sentence it is shown in.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@cache
def environment(package: str) -> "Environment":
    """Where the templates of a package are found and how they are filled in."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
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


def plain(text: object) -> str:
    """Text as it may be shown, on one line."""
    return " ".join(_INVISIBLE.sub("", str(text)).split())


def stylesheet(*names: str) -> Markup:
    """Our own style sheets, one after the other. CSS is not escaped in HTML: nothing of anybody else's may be in it."""
    return Markup("\n").join(Markup(files("hushbid.report").joinpath(name).read_text("utf-8")) for name in names)
