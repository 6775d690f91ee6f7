"""Templates and text that nobody can inject into: everything is escaped, and nothing that somebody typed can reorder
what stands around it. The server's pages are filled in the same way.

Sentences of templates, in ``trans`` and ``_()``, are markup, in English and in catalogues; their values are escaped.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from hushbid.common.numbers import showable
from hushbid.languages import Language, language

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str, code: str) -> "Environment":
    """Where the templates of a package are found, and how they are filled in, in one language."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        auto_reload=False,  # an installed template does not change, and looking took a twentieth of a page's time
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
        extensions=["jinja2.ext.i18n"],
    )
    found.policies["ext.i18n.trimmed"] = True
    # values are handed over with a sentence, to be escaped
    found.newstyle_gettext = True  # type: ignore[attr-defined]  # the extension adds it
    found.globals.update(_translating(language(code)))
    return found


def _translating(spoken: Language) -> dict[str, Callable[..., Markup]]:
    """What Jinja calls for sentences of templates."""
    known = spoken.catalogue

    def gettext(message: str, /, **values: object) -> Markup:
        return _filled(known.gettext(message), values)

    def ngettext(one: str, many: str, n: int, /, **values: object) -> Markup:
        return _filled(known.ngettext(one, many, int(n)), values)

    def pgettext(context: str, message: str, /, **values: object) -> Markup:
        return _filled(known.pgettext(context, message), values)

    return {"gettext": gettext, "ngettext": ngettext, "pgettext": pgettext}


def _filled(message: str, values: Mapping[str, object]) -> Markup:
    """A sentence with its values, each escaped unless it is markup."""
    return Markup(message) % {name: shown(value) for name, value in values.items()}


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
