"""Write the table of docs/reference/combinations.md again: ``python -m tools.combinations``, from the root.

It is printed from the table of refusals in `hushbid.mechanism.combinations`; a test compares both.
"""

from pathlib import Path

from hushbid.mechanism.combinations import page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "combinations.md"
BEGIN, END = "<!-- begin: printed by tools/combinations.py -->\n", "<!-- end -->\n"


def filled(text: str) -> str:
    """Return the page with the present table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{page()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
