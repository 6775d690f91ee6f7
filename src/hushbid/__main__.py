"""``python -m hushbid`` is the command line."""

from hushbid.cli import main

if __name__ == "__main__":
    main(prog_name="hushbid")
