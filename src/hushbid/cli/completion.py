"""``hushbid completion``: what a shell needs to complete commands and options."""

import click

from hushbid.cli import main
from hushbid.cli.common import command as make_command


@make_command("completion", results=False)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completions for a shell.

    For bash, add to ~/.bashrc:  eval "$(hushbid completion bash)"; for zsh, to ~/.zshrc:  eval "$(hushbid completion
    zsh)"; for fish:  hushbid completion fish > ~/.config/fish/completions/hushbid.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(main, {}, "hushbid", "_HUSHBID_COMPLETE")
    click.echo(script.source_template % script.source_vars())
