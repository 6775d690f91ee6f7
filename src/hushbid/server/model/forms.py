"""What an analyst has typed into a draft's form: kept for her as it is, whether it could be a campaign or not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

MOST_FORMS = 100
"""So many unfinished drafts are kept for each analyst; of more, the oldest is forgotten."""

_ID = re.compile(r"f[0-9a-f]{20}", flags=re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptForm:
    """A form as it was typed."""

    id: str
    campaign: str | None
    """The draft that it is about, or has become; None while it is none."""

    language: str
    """In which it was typed: numbers are to be read in it."""

    fields: Mapping[str, str] | None
    """What was typed, by the names of the form's fields; None if nothing was typed since it was saved."""

    changed_at: datetime
    sent_at: datetime | None
    """When a button of it was pressed last."""


def is_form_id(text: str) -> bool:
    """Whether a text may name a form; a page makes the name up before anything is kept."""
    return _ID.fullmatch(text) is not None
