"""``hushbid`` and ``python -m hushbid``: where the command line begins.

Nothing is imported before the ``try``: loading takes longer than many commands, and whoever interrupts while that goes
on is told so in a line, as later.
"""


def main() -> None:
    """Load the command line and run it."""
    try:
        from hushbid.cli import main as command_line
    except KeyboardInterrupt:
        import os

        os.write(2, b"\nInterrupted: nothing is left half written.\n")
        os._exit(130)  # nothing has been opened yet
    command_line(prog_name="hushbid")


if __name__ == "__main__":
    main()
