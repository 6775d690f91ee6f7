"""Templates and text that nobody can inject into: everything is escaped, and nothing that somebody typed can reorder
what stands around it. The server's pages are filled in the same way.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from hushbid.wording import showable

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str, folder: str = "templates") -> "Environment":
    """Where the templates of a package are found, in which of its folders, and how they are filled in."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, folder),
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
    return showable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def plain(text: object) -> str:
    """Text as it may be shown, on one line."""
    return " ".join(showable(str(text)).split())


def stylesheet(*names: str) -> Markup:
    """Our own style sheets, one after the other. CSS is not escaped in HTML: nothing of anybody else's may be in it."""
    return Markup("\n").join(Markup(files("hushbid.report").joinpath(name).read_text("utf-8")) for name in names)
