"""Campaign files, as they are sent to a server."""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hushbid.errors import InputError
from hushbid.priors.pilot import prior_source


def stated_in(path: Path) -> dict[str, Any]:
    """Return what a campaign file states, with the priors in the place of the files that it names."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as problem:
        raise InputError(f"{path} must be a campaign file, and cannot be read: {problem}.") from None
    market = values.get("market")
    if isinstance(market, dict) and isinstance(form := market.get("prior"), Mapping):
        source = prior_source(form, folder=path.parent)
        texts = {group: prior.to_text() for group, prior in source.priors.items()}
        market["prior"] = texts if source.is_grouped else texts[""]
    server = values.get("server")
    if isinstance(server, dict):
        values["server"] = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in server.items()}
    return values
