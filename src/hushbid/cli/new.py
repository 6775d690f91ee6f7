"""``hushbid new``: a campaign file with comments, from options or from questions asked on a terminal."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hushbid.campaign.stated import value_of
from hushbid.cli import BY_FILES
from hushbid.cli.common import OneFile, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import COLUMNS, MARKET, USUAL_BIDS, Options, campaign_options, prior_form
from hushbid.errors import InputError

_CENTRAL_ONLY = ("budget", "hard_budget")
_ASKED = {
    "title": "What is the campaign called?",
    "question": "What is estimated, as it stands in a sentence?",
    "market.bounds": "Between which numbers do the data lie?",
    "unit": "In which unit? (nothing for none)",
    "market.setting": "Who adds the noise: a trusted platform (central) or each person's own device (local)?",
    "market.prior": "What do you believe about prices for privacy? (uniform:1,2, lognormal:0,0.5, ... or a file of"
    " fit-prior)",
    "money.currency": "In which currency, by its code? (nothing for none)",
    "bids.file": "Which file holds people's bids? (it may come later)",
    "data.file": "Which file holds the data? (nothing until they are collected)",
}
"""What is asked on a terminal, by field."""


@make_command("new")
@campaign_options(
    *("title", "question", "unit", *MARKET, "strata.column", "strata.shares", "bids.file", *COLUMNS, "data.file")
)
@click.option(
    "--out", type=OneFile(), metavar="FILE.toml", default="campaign.toml", show_default=True, help="Where to write it."
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(options: Options, out: Path, force: bool, as_json: bool) -> None:
    """Write a campaign file with comments, by questions asked or by options.

    On a terminal, whatever no option states is asked for, unless --prior and a goal are given. What is written is read
    as "hushbid run" would read it before it is written. The files of bids and data may come later; if they are
    there, they must have the columns.
    """
    refuse_output(out, force=force)
    if sys.stdin.isatty() and not ("market.prior" in options.given and _states_goal(options)):
        options = _asked(options, out)
    from hushbid.campaign.terms import campaign_of

    stated = options.stated()
    campaign_of(stated, bids={})  # what is wrong is said of options first
    values: dict[str, Any] = {"title": out.stem, "question": _usual_question(options), **stated.values}
    values["bids"] = {"file": USUAL_BIDS, **values.get("bids", {})}
    prior = values["market"].get("prior", "")
    files = [one["file"] for one in (prior, *_values(prior)) if isinstance(one, Mapping) and "file" in one]
    files += [values[table]["file"] for table in ("bids", "data") if "file" in values.get(table, {})]
    refuse_output(out, *files, *options.tables.values(), force=force)
    write_draft(values, stated.home, out, force=force)
    bids = values["bids"]["file"]
    tell({"file": str(out), "bids_there": Path(bids).exists()}, next_steps(out, bids), as_json=as_json)


def _values(form: Any) -> list[Any]:
    return list(form.values()) if isinstance(form, Mapping) else []


def refuse_output(out: Path, *read: str | Path, option: str = "--out", force: bool) -> None:
    """Refuse a place where no campaign file can be, or should not: over another file, or over one that is read."""
    from hushbid.common.staging import refuse_clashes, refuse_existing

    if out.suffix != ".toml":
        raise click.UsageError(f"{option} must end in .toml, got {out}.")
    if not force:
        refuse_existing([out])
    refuse_clashes([out], read)


def write_draft(values: Mapping[str, Any], home: Path, out: Path, *, force: bool, planned: str = "") -> None:
    """Write a campaign file that can be read, or nothing; paths in ``values`` are relative to ``home``."""
    from hushbid.campaign.drafting import checked_text, moved
    from hushbid.common.staging import write_file

    try:
        content = checked_text(moved(values, home, out.parent), out, planned).encode()
    except InputError as problem:
        click.get_current_context().meta[BY_FILES] = True  # it speaks of the file's lines and fields
        raise InputError(f"No file is written, as it could not be run. {problem}", field=problem.field) from None
    write_file(out, lambda file: file.write(content), force=force, private=False)


def next_steps(out: Path, bids: str) -> str:
    """Return what was written, and what comes next."""
    run = f"hushbid run {out}"
    if Path(bids).exists():
        return f"Written: {out}. Next: {run}"
    return f"Written: {out}. Next: collect people's bids in {bids}, one row per person, then {run}"


# -- on a terminal -----------------------------------------------------------------------------------------------------


def _usual_question(options: Options) -> str:
    return "the answers" if "questions" in options.tables else "the mean"


def _states_goal(options: Options) -> bool:
    """Return whether the options say what the buyer has."""
    from hushbid.campaign.spec import GOALS
    from hushbid.campaign.terms import survey_in

    survey = options.tables.get("questions")
    stated = any(f"market.{goal}" in options.given for goal in GOALS)
    return stated or (survey is not None and bool(survey_in(survey)[1]))


def _asked(options: Options, out: Path) -> Options:
    """Return the options with what was answered on the terminal; what was given as an option is not asked for."""
    from hushbid.campaign.reading import field_problem

    usual = {"title": out.stem, "question": _usual_question(options), "market.bounds": "0,1", "bids.file": USUAL_BIDS}
    usual |= {"market.setting": "central", "unit": "", "money.currency": "", "data.file": ""}
    of_questions = ("market.bounds", "unit") if "questions" in options.tables else ()
    for name, question in _ASKED.items():
        if name == "money.currency" and not _states_goal(options):
            options = _ask_goal(options)
        if name in options.given or name in of_questions:
            continue

        def answer(text: str, name: str = name) -> Any:
            value = value_of(name, text.strip()) if text.strip() else None
            form = prior_form((text.strip(),), Path()) if name == "market.prior" else value
            if value is not None and (problem := field_problem(name, form)):
                raise click.UsageError(problem)
            return (value,) if name == "market.prior" else value

        found = _ask(question, answer, usual.get(name))
        if found is not None:
            options = options.but({name: found})
    return options


def _ask_goal(options: Options) -> Options:
    from hushbid.campaign.reading import field_problem
    from hushbid.campaign.spec import GOALS

    survey, local = "questions" in options.tables, options.given.get("market.setting") == "local"
    allowed = [
        goal for goal in GOALS if not ((local and goal in _CENTRAL_ONLY) or (survey and goal == "standard_error"))
    ]
    words = {goal.replace("_", "-"): goal for goal in allowed}
    word = click.prompt("What do you have?", default=next(iter(words)), type=click.Choice(list(words)), err=True)
    name = f"market.{words[word]}"

    def amount(text: str) -> Any:
        value = value_of(name, text)
        if problem := field_problem(name, value):
            raise click.UsageError(problem)
        return value

    return options.but({name: _ask(f"How much is the {name.rpartition('.')[2].replace('_', ' ')}?", amount)})


def _ask(question: str, answer: Any, default: str | None = None) -> Any:
    """Return an answer from the keyboard, asked for again until it is allowed."""
    return click.prompt(question, default=default, value_proc=answer, err=True, show_default=bool(default))
