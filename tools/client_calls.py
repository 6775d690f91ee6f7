"""Write the requests of `hushbid.client` from the server's registry: ``python -m tools.client_calls``."""

from pathlib import Path

from hushbid.server.http.app import all_routes
from hushbid.server.http.auth import PREFIX
from hushbid.server.service.registry import reached

TABLE = Path(__file__).resolve().parents[1] / "src" / "hushbid" / "client" / "calls.py"
_HEAD = '''"""The requests of the HTTP interface, by their names, so that a client needs none of the server's packages.

``python -m tools.client_calls`` writes this module from the server's registry.
"""

from typing import NamedTuple


class Call(NamedTuple):
    """One kind of request."""

    method: str
    """GET, PUT, POST or DELETE."""

    path: str
    """Below the interface's prefix; names in braces are identifiers."""

    once: bool = False
    """Whether it carries a key, by which the server recognises a repetition."""


CALLS = {
'''


def table() -> str:
    """Return the module's text."""
    use_cases = reached()
    lines = []
    for route in sorted(all_routes(), key=lambda route: route.name):
        [method] = route.methods or ()
        once = ", once=True" if route.name in use_cases and use_cases[route.name][0].takes_key else ""
        lines.append(f'    "{route.name}": Call("{method}", "{route.path.removeprefix(PREFIX)}"{once}),\n')
    return f"{_HEAD}{''.join(lines)}}}\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
