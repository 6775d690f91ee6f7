"""The sentence of every code, from the table in ``codes.toml``."""

import tomllib
from importlib.resources import files

from hushbid.languages import Forms, Within, Wording


def _worded(told: str | dict[str, str]) -> Wording:
    if isinstance(told, str):
        return told
    return Within(told["context"], told["text"]) if "context" in told else Forms(told["one"], told["many"])


_TABLE = tomllib.loads(files("hushbid.server.pages").joinpath("codes.toml").read_text(encoding="utf-8"))
CODES: dict[str, Wording] = {code: _worded(told) for code, told in _TABLE.items()}
"""What is said, with its context where one English text has several translations."""
