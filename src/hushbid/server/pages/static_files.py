"""The files that pages load: one style sheet and a few scripts, read once, from the package and nowhere else.

The style sheet is the theme and the charts of the report with the pages' own rules behind them: both look alike. An
address with the hash of its content may be kept for ever; one without is asked for again each time.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

_STYLES = (
    ("hushbid.report", "theme.css"),
    ("hushbid.report", "results.css"),
    ("hushbid.report", "chart.css"),
    ("hushbid.server.pages.static", "pages.css"),
)
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """One file as it is sent."""

    content: bytes
    kind: str
    hash: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Everything that may be loaded, by name."""
    contents = {"pages.css": "".join((files(package) / name).read_text(encoding="utf-8") for package, name in _STYLES)}
    for file in files("hushbid.server.pages.static").iterdir():
        if file.name.rpartition(".")[2] in ("js", "svg"):
            contents[file.name] = file.read_text(encoding="utf-8")
    return {name: _file(name, text.encode()) for name, text in contents.items()}


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{name}?v={static_files()[name].hash}"


async def static_file(request: Request, name: str) -> Response:
    """One of the files, if there is such a one; no path is ever looked up."""
    found = static_files().get(name)
    if found is None:
        raise HTTPException(404)
    known = request.query_params.get("v") == found.hash
    headers = {"Cache-Control": _FOR_EVER if known else "no-cache", "ETag": f'"{found.hash}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers={**headers, "Content-Type": found.kind})


ROUTE = APIRoute("/static/{name}", static_file, methods=["GET"], include_in_schema=False)


def _file(name: str, content: bytes) -> StaticFile:
    kind = _KINDS[name.rpartition(".")[2]]
    return StaticFile(content=content, kind=kind, hash=hashlib.sha256(content).hexdigest()[:16])
