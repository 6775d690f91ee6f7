"""Write the tables of docs/reference/campaign-file.md again: ``python -m tools.campaign_fields``, from the root.

They are printed from the schema, `hushbid.campaign.spec`; a test compares both.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic.fields import FieldInfo

from hushbid.campaign.drafting import toml_value
from hushbid.campaign.spec import CampaignSpec, Consent, Table, about, table_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "campaign-file.md"
_MARKED = re.compile(r"(<!-- fields of (\w+) -->\n\n)(?:\|.*\n)*")
TOP = "top"


def filled(text: str) -> str:
    """Return the page with the present tables after their marks."""
    tables: dict[str, type[Table]] = {TOP: CampaignSpec}
    tables |= {name: inner for name, info in CampaignSpec.model_fields.items() if (inner := table_of(info))}
    tables |= {"consent": Consent}
    marked = [name for _, name in _MARKED.findall(text)]
    if marked != list(tables):
        raise ValueError(f"the page must have a mark for each of {', '.join(tables)}, in this order")
    return _MARKED.sub(lambda found: found[1] + "".join(f"{row}\n" for row in rows(tables[found[2]])), text)


def rows(table: type[Table]) -> Iterator[str]:
    """Yield the rows of the table of one table's fields."""
    yield "| field | default | allowed | meaning |"
    yield "|---|---|---|---|"
    for name, info in table.model_fields.items():
        if table_of(info) is None:
            meaning = " ".join((info.description or "").split())
            yield f"| `{name}` | {_default(info)} | {_code(about(info).allowed)} | {meaning} |"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    return about(info).absent or ("none" if default in (None, "", {}) else f"`{toml_value(default)}`")


def _code(allowed: str) -> str:
    """Quoted words, tables and lists as code."""
    return re.sub(r'("[^"]*"|\{[^}]*\}|\[\[?[^\]]*\]\]?)', r"`\1`", allowed)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
