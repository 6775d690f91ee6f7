"""What the documentation's builder does beyond Markdown: the API page, written from the docstrings, and formulas.

MkDocs calls the functions whose names begin with ``on_``. The page docs/reference/api.md holds a line ``<!-- api -->``,
which is replaced by every public name of the package: its signature, what it says about itself, and its fields. On all
pages ``n^{5/6}`` and ``ε_i`` outside code are set as they are meant, raised and lowered.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from importlib import import_module
from typing import Any

PAGE, MARK = "reference/api.md", "<!-- api -->"

MODULES = (
    "hushbid.campaign",
    "hushbid.mechanism",
    "hushbid.questions",
    "hushbid.priors",
    "hushbid.allocation",
    "hushbid.payments",
    "hushbid.estimation",
    "hushbid.disclosure",
    "hushbid.common.money",
    "hushbid.record",
    "hushbid.receipts",
    "hushbid.verification",
    "hushbid.audit",
    "hushbid.baselines",
    "hushbid.engine",
    "hushbid.report",
    "hushbid.report.charts",
    "hushbid.display",
    "hushbid.client",
    "hushbid.errors",
)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill the API page."""
    if page.file.src_uri != PAGE:
        return markdown
    assert markdown.count(MARK) == 1, f"{PAGE} must hold {MARK} once"
    return markdown.replace(MARK, api())


def on_page_content(html: str, **_: Any) -> str:
    """Raise exponents and lower indices, everywhere but in code."""
    parts = re.split(r"(<pre\b.*?</pre>|<code\b.*?</code>|<[^>]*>)", html, flags=re.DOTALL)
    return "".join(part if part.startswith("<") else raised_and_lowered(part) for part in parts)


def raised_and_lowered(text: str) -> str:
    """``x^{2/3}`` and ``x_{k+1}``, also ``x^2``, ``x_i`` and ``ψ_min`` after a single letter or a bracket, as HTML."""
    text = re.sub(r"\^\{([^}]+)\}|\^(\([^)\s]+\))", lambda found: f"<sup>{found[1] or found[2]}</sup>", text)
    lowered = r"(?<![A-Za-z0-9_])([^\W\d_]\u0304?'{0,2})_(?:\{([^}]+)\}|([A-Za-z]{1,3}|\d+)(?!\.?[A-Za-z0-9_]))"
    return re.sub(lowered, lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", text)


def api() -> str:
    """All modules as Markdown."""
    return "\n\n".join(section(name) for name in MODULES)


def section(name: str) -> str:
    """One module: its first paragraph, then its public names."""
    module = import_module(name)
    names = public_names(module)
    parts = [f"## {name}", first_paragraph(module.__doc__)]
    parts += [entry(getattr(module, public), public, name) for public in names]
    return "\n\n".join(part for part in parts if part)


def public_names(module: Any) -> list[str]:
    """``__all__``, or what is defined in the module itself."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__ and callable(value)
    )


def entry(thing: Any, name: str, module: str) -> str:
    """One class or function."""
    lines = [f"### {name} {{ #{module}.{name} }}", f"```python\n{signature(thing, name)}\n```", prose(thing.__doc__)]
    if inspect.isclass(thing):
        fields = field_docs(thing)
        if fields:
            lines.append("\n".join(f"- `{field}`: {words}" for field, words in fields.items()))
        lines += [
            f"`.{method}` {first_paragraph(value.__doc__)}"
            for kind in described(thing)
            for method, value in vars(kind).items()
            if not method.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, property | classmethod))
            and value.__doc__
        ]
    return "\n\n".join(line for line in lines if line)


def signature(thing: Any, name: str) -> str:
    """How it is called, one argument a line if it is long."""
    try:
        call = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    if inspect.isclass(thing):
        call = call.replace(return_annotation=inspect.Signature.empty)
    short = f"{name}{without_modules(str(call))}"
    if len(short) <= 100:
        return short
    inner, _, result = short.removeprefix(f"{name}(").rpartition(")")
    lines, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        lines[-1] += character
        if character == "," and depth == 0:
            lines.append("")
    return "\n".join([f"{name}(", *(f"    {line.strip()}" for line in lines), f"){result}"])


def without_modules(text: str) -> str:
    """Types by their last name, NumPy's without their parameters."""
    text = re.sub(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+", lambda path: path[0].rpartition(".")[2], text)
    text = re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]", "ndarray", text)
    text = re.sub(r"Union\[_Buffer, .*?\[complex \| bytes \| str\], NoneType\]", "ArrayLike | None", text)
    text = re.sub(r"Union\[_Buffer, .*?\[complex \| bytes \| str\]\]", "ArrayLike", text)
    return re.sub(r"<class '(\w+)'>", r"\1", text)


def described(thing: type) -> list[type]:
    """The classes that a class is described by: itself, and for a dataclass also the dataclasses it builds on."""
    if not dataclasses.is_dataclass(thing):
        return [thing]
    return [kind for kind in reversed(thing.__mro__) if dataclasses.is_dataclass(kind)]


def field_docs(thing: type) -> dict[str, str]:
    """The string under each field of a dataclass."""
    if not dataclasses.is_dataclass(thing):
        return {}
    found = {}
    for kind in described(thing):
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for here, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name) and isinstance(below, ast.Expr):
                name, value = here.target.id, below.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and not name.startswith("_"):
                    found[name] = " ".join(value.value.split())
    return found


def prose(doc: str | None) -> str:
    """A docstring as Markdown: examples become code, single backquoted names stay."""
    text = inspect.cleandoc(doc or "").replace("``", "`")
    blocks, example = [], []
    for line in [*text.splitlines(), ""]:
        if line.lstrip().startswith((">>>", "...")) or (example and line.strip()):
            example.append(line.strip())
            continue
        if example:
            blocks.append("```python\n" + "\n".join(example) + "\n```")
            example = []
        blocks.append(line)
    return "\n".join(blocks).strip()


def first_paragraph(doc: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    text = inspect.cleandoc(doc or "").split("\n\n")[0]
    return " ".join(text.replace("``", "`").split())
