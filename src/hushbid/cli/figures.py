"""``hushbid figures``: the paper's figures, as pictures and numbers."""

from pathlib import Path

import click

from hushbid.cli.common import Steps, tell
from hushbid.cli.common import command as make_command


@make_command("figures")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/figures"),
    show_default=True,
    help="Folder for the files.",
)
@click.option("--format", "formats", multiple=True, help="png, svg or csv; repeat for several. [default: all]")
@click.option("--quick", is_flag=True, help="Coarser, for a first look.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--list", "listed", is_flag=True, help="Only say which figures there are.")
def command(
    names: tuple[str, ...], out: Path, formats: tuple[str, ...], quick: bool, force: bool, listed: bool, as_json: bool
) -> None:
    """Reproduce the paper's figures, as pictures and numbers.

    Without a NAME all of them are made, which takes some minutes; --quick takes one.
    """
    from hushbid.paper.figures import FIGURES, FORMATS, write_figures

    if listed:
        tell({"figures": list(FIGURES)}, "\n".join(FIGURES), as_json=as_json)
        return
    wanted = list(names or FIGURES)
    with Steps(len(wanted)) as step:
        paths = write_figures(
            wanted, out, formats=formats or FORMATS, quick=quick, force=force, begin=lambda name: step(name)
        )
    count = "One figure is" if len(wanted) == 1 else f"{len(wanted)} figures are"
    lines = [f"{count} in {out}:", *(f"  {path.name}" for path in paths)]
    tell({"files": paths}, "\n".join(lines), as_json=as_json)
