"""``hushbid new``: a campaign file with comments, from options or from questions asked on a terminal."""

import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import Number, OneFile, is_stated, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.messages import BY_FILES
from hushbid.cli.options import GROUP, NO_PRIOR, MarketOptions, market_options, people_options, read_bounds

if TYPE_CHECKING:
    from hushbid.purchase.drafting import Draft
    from hushbid.purchase.strata_section import Stratification

_GOALS = ("budget", "hard-budget", "standard-error", "buyer-weight")
_CENTRAL_ONLY = ("budget", "hard-budget")
_COLUMNS = {"id": "id", "bid": "bid", "group": None}
"""What columns are called unless a campaign file says otherwise."""


@make_command("new")
@click.option("--title", metavar="TEXT", help="What people call the campaign.  [default: the file's name]")
@click.option("--question", metavar="TEXT", help="What is estimated, as it stands in a sentence.  [default: the mean]")
@click.option("--unit", metavar="TEXT", default="", help="The unit of the data.")
@market_options(required=False)
@click.option("--strata-column", metavar="NAME", help="Column of people's public strata, for --shares.")
@click.option("--shares", metavar="LABEL=SHARE,...", help="Share of the population that each stratum is.")
@click.option("--bids", metavar="FILE", default="bids.csv", show_default=True, help="Of bids; it may be there later.")
@people_options
@click.option("--data", metavar="FILE", help="Of data.  [default: none until they are collected]")
@click.option(
    "--out", type=OneFile(), metavar="FILE.toml", default="campaign.toml", show_default=True, help="Where to write it."
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(options: MarketOptions, out: Path, force: bool, as_json: bool, **given: Any) -> None:
    """Write a campaign file with comments, by questions asked or by options.

    On a terminal, whatever no option states is asked for, unless --prior and a goal are given. What is written is read
    as "hushbid run" would read it before it is written. The files of bids and data may come later; if they are
    there, they must have the columns.
    """
    refuse_output(out, force=force)
    if sys.stdin.isatty() and (not options.priors or not _states_goal(options)):
        options, given = _asked(options, given, out)
    if not options.priors:
        raise click.UsageError(NO_PRIOR)
    refuse_output(out, options, given["bids"], given["data"], force=force)
    draft = draft_of(options, out, strata=_strata(options, given), **given)
    write_draft(draft, out, force=force)
    shown = {"file": str(out), "bids_there": Path(given["bids"]).exists()}
    tell(shown, next_steps(out, given["bids"]), as_json=as_json)


def refuse_output(
    out: Path, options: MarketOptions | None = None, *read: str | None, option: str = "--out", force: bool
) -> None:
    """Refuse a place where no campaign file can be, or should not: over another file, or over one that is read."""
    from hushbid.common.staging import refuse_clashes, refuse_existing

    if out.suffix != ".toml":
        raise click.UsageError(f"{option} must end in .toml, got {out}.")
    if not force:
        refuse_existing([out])
    if options is not None:
        files = [*read, options.questions, options.strata, *options.prior_source().paths]
        refuse_clashes([out], [path for path in files if path is not None])


def draft_of(
    options: MarketOptions,
    out: Path,
    *,
    strata: "Stratification | None",
    bids: str = "bids.csv",
    data: str | None = None,
    title: str | None = None,
    question: str | None = None,
    unit: str = "",
    planned: str = "",
    **columns: Any,
) -> "Draft":
    """What a campaign file at ``out`` says for these options; files are named from its folder."""
    from hushbid.allocation.goals import STATED
    from hushbid.purchase.drafting import Draft

    survey, goal = options.survey(), options.goal()
    if survey is not None and unit:
        raise click.UsageError("--unit cannot be stated beside --questions, each of which has its own.")
    usual = {"user_weight": 0.0, "people_may_owe_money": False, "outside_option": "own_data", "max_correlation": 0.0}
    usual |= {"max_privacy_loss": None, "population": None}
    stated = {column: columns.get(f"{column}_column") for column in _COLUMNS}
    return Draft(
        title=title or out.stem,
        question=question or ("the mean" if survey is None else "the answers"),
        unit=unit,
        setting=options.setting or "central",
        prior=_prior(options, out),
        bounds=options.bounds,
        variance=options.variance,
        survey=survey,
        goal=next(((name, goal.number) for name in STATED if getattr(options, name) is not None), None),
        more={name: value for name in usual if (value := getattr(options, name)) != usual[name]},
        strata=strata,
        currency=None if options.currency_code is None else options.currency().code,
        bids=_from(out, bids),
        columns={
            column: called for column, called in stated.items() if called is not None and called != _COLUMNS[column]
        },
        data=None if data is None else _from(out, data),
        planned=planned,
    )


def write_draft(draft: "Draft", out: Path, *, force: bool) -> None:
    """Write a campaign file that can be read, or nothing."""
    from hushbid.common.staging import write_file
    from hushbid.errors import InputError
    from hushbid.purchase.drafting import checked_text

    try:
        content = checked_text(draft, out).encode()
    except InputError as problem:
        click.get_current_context().meta[BY_FILES] = True  # it speaks of the file's lines and fields
        raise InputError(f"No file is written, as it could not be run. {problem}", field=problem.field) from None
    write_file(out, lambda file: file.write(content), force=force, private=False)


def next_steps(out: Path, bids: str) -> str:
    """What was written, and what comes next."""
    run = f"hushbid run {out}"
    if Path(bids).exists():
        return f"Written: {out}. Next: {run}"
    return f"Written: {out}. Next: collect people's bids in {bids}, one row per person, then {run}"


def _prior(options: MarketOptions, out: Path) -> Any:
    """The prior as a campaign file states it: texts as they were given, and files named from its folder."""
    matches = [GROUP.match(text) for text in options.priors]
    if matches == [None]:
        return _prior_form(options.priors[0], out)
    return {match[1]: _prior_form(match[2], out) for match in matches if match is not None}


def _prior_form(text: str, out: Path) -> Any:
    is_file = ":" not in text and Path(text).suffix == ".json"
    return {"file": _from(out, text)} if is_file else text


def _from(out: Path, path: str) -> str:
    """A path as it is called from the folder of the campaign file; a stream has no folder."""
    return path if path == "-" or Path(path).is_absolute() else os.path.relpath(path, out.parent)


def _strata(options: MarketOptions, given: dict[str, Any]) -> "Stratification | None":
    from hushbid.purchase.strata_section import Stratification

    column, shares = given["strata_column"], given["shares"]
    if column is None and shares is None:
        return options.stratification()
    if options.strata is not None:
        raise click.UsageError("--strata-column and --shares must not be given beside --strata, which state both.")
    if column is None or shares is None:
        raise click.UsageError("--strata-column and --shares must be given together.")
    return Stratification(column=column, wanted={"shares": _shares(shares)}, population=None)


def _shares(text: str) -> dict[str, float]:
    """A share for each stratum, each label once."""
    found: dict[str, float] = {}
    for part in text.split(","):
        label, _, share = part.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            number = math.nan
        if not label.strip() or label.strip() in found or not math.isfinite(number):
            raise click.UsageError(f"--shares must read north=0.4,south=0.6, each stratum once, got {text!r}.")
        found[label.strip()] = number
    return found


# -- on a terminal -----------------------------------------------------------------------------------------------------


def _states_goal(options: MarketOptions) -> bool:
    """Whether the options say what the buyer has."""
    given = any(getattr(options, goal.replace("-", "_")) is not None for goal in _GOALS)
    return given or (options.questions is not None and getattr(options.survey(), "goal", None) is not None)


def _asked(options: MarketOptions, given: dict[str, Any], out: Path) -> tuple[MarketOptions, dict[str, Any]]:
    """The options with what was answered on the terminal; what was given as an option is not asked for."""
    given = dict(given)
    if not is_stated("title"):
        given["title"] = _ask("What is the campaign called?", default=out.stem)
    if not is_stated("question"):
        default = "the mean" if options.questions is None else "the answers"
        given["question"] = _ask("What is estimated, as it stands in a sentence?", default=default)
    if options.questions is None and not is_stated("bounds"):
        context = click.get_current_context()
        bounds = _ask("Between which numbers do the data lie?", lambda text: read_bounds(context, None, text), "0,1")
        options = replace(options, bounds=bounds)
    if options.questions is None and not is_stated("unit"):
        given["unit"] = _ask("In which unit? (nothing for none)", default="")
    if not is_stated("setting"):
        settings = click.Choice(["central", "local"])
        asked = "Who adds the noise: a trusted platform (central) or everybody's own device (local)?"
        options = replace(options, setting=_ask(asked, settings, "central"))
    if not options.priors:
        asked = (
            "What do you believe about prices for privacy? (uniform:1,2, lognormal:0,0.5, ... or a file of fit-prior)"
        )
        options = replace(options, priors=(_ask(asked, _prior_text),))
    if not _states_goal(options):
        options = _ask_goal(options)
    if not is_stated("currency"):
        code = _ask("In which currency, by its code? (nothing for none)", _currency_code, "")
        options = replace(options, currency_code=code or None)
    if not is_stated("bids"):
        given["bids"] = _ask("Which file holds people's bids? (it may come later)", default="bids.csv")
    if not is_stated("data"):
        given["data"] = _ask("Which file holds the data? (nothing until they are collected)", default="") or None
    return options, given


def _ask_goal(options: MarketOptions) -> MarketOptions:
    barred = _CENTRAL_ONLY if options.setting == "local" else ("standard-error",) if options.questions else ()
    allowed = [goal for goal in _GOALS if goal not in barred]
    goal = _ask("What do you have?", click.Choice(allowed), allowed[0])
    number = _ask(f"How much is the {goal.replace('-', ' ')}?", Number(min=0.0, min_open=True))
    return replace(options, **{goal.replace("-", "_"): number})


def _ask(question: str, kind: Any = str, default: str | None = None) -> Any:
    """An answer from the keyboard, asked for again until it is allowed."""
    of_ours = callable(kind) and kind is not str and not isinstance(kind, click.ParamType)
    proc: Callable[[str], Any] | None = kind if of_ours else None
    return click.prompt(
        question, default=default, type=None if of_ours else kind, value_proc=proc, err=True, show_default=bool(default)
    )


def _prior_text(text: str) -> str:
    from hushbid.errors import HushbidError
    from hushbid.priors.pilot import prior_option

    try:
        prior_option(text.strip())
    except HushbidError as problem:
        raise click.UsageError(str(problem)) from None
    return text.strip()


def _currency_code(text: str) -> str:
    from hushbid.common.money import Currency
    from hushbid.errors import HushbidError

    try:
        return Currency.of(text.strip()).code if text.strip() else ""
    except HushbidError as problem:
        raise click.UsageError(str(problem)) from None
