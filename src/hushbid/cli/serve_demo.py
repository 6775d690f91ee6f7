"""``hushbid serve --demo``: a server to look at, gone when it is stopped."""

import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hushbid.cli.installation import HOME
from hushbid.errors import InputError, MissingExtra


def serve_demo(host: str, port: int) -> None:
    """Serve campaigns with bots at work until somebody stops it, in a temporary folder."""
    try:
        from hushbid.server.demo import ANALYST, AUDITOR, Demo, Invited, demo_service
        from hushbid.server.http import create_app
        from hushbid.server.http.serve import is_loopback, listen, serve
        from hushbid.server.pages import add_pages
    except ImportError as missing:
        raise MissingExtra(
            f"The server needs the package {missing.name}: pip install '.[server,release]' in a checkout."
        ) from None
    if not is_loopback(host):
        raise InputError(f"--demo serves this machine only: --host must be a loopback address, got {host!r}.")
    with TemporaryDirectory(prefix="hushbid-demo-") as folder, listen(host, port) as listener:
        service, password = demo_service(Path(folder))
        with service:
            here = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"

            def message(invited: Invited) -> None:
                click.echo(
                    f"Ready.\n\n  Analyst      {here}/login\n               name {ANALYST} (or {AUDITOR}, who only"
                    f" reads), password {password}\n  Participant  {invited.naming}\n"
                    "               names a price and gives her value with it, in one visit\n"
                    f"  Participant  {invited.giving}\n               gives a value, to which the browser adds noise;"
                    " she agreed to 88.1 % at most\n"
                )

            demo = Demo(
                here,
                service.create_api_token(ANALYST, "demo"),
                ready=message,
                failed=lambda sentence: click.echo(f"The demo stopped: {sentence}", err=True),
            )

            def ready() -> None:
                click.echo(f"Hushbid serves a demo at {here} (Ctrl-C stops and removes it).")
                click.echo("Bots are playing some campaigns: a few seconds …")
                demo.start()

            log_to_stderr(quiet=True)
            serve(create_app(service, pages=add_pages, https=False, host=host), listener, ready=ready)
            demo.stop()
    click.echo("Stopped, and removed.")


def refuse_with_demo(home: Path, database: str | None, url: str | None, privacy_cap: float | None) -> None:
    """A demo is nobody's real server."""
    if home != Path(HOME) or database is not None or url is not None or privacy_cap is not None:
        raise InputError("--demo cannot be combined with --home, --database, --url or --privacy-cap.")


def log_to_stderr(quiet: bool) -> None:
    """Our own lines, and what uvicorn warns of; nothing of either holds anything of a request."""
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    for name, level in (("hushbid", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(shown)
        logger.setLevel(level)
        logger.propagate = False
    if quiet:
        logging.getLogger("hushbid.access").setLevel(logging.WARNING)
