"""``hushbid serve``: the campaign server."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from hushbid.cli.common import Whole
from hushbid.cli.common import command as make_command
from hushbid.cli.installation import installation, new_password
from hushbid.cli.serve_demo import log_to_stderr, refuse_with_demo, serve_demo
from hushbid.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from hushbid.server.service import Service

_FIRST_USER = "analyst"


def _cap(_: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """A limit; infinity stands for having none."""
    if value is None or value == "none":
        return None if value is None else math.inf
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor none.", param=parameter) from None


@make_command("serve", results=False)
@installation
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=Whole(0, 65535), default=8000, show_default=True, help="The port; 0 for any free one.")
@click.option(
    "--url", metavar="URL", help="How people reach the server, with TLS in front: https://campaign.example.org."
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="The address of a proxy in front, whose X-Forwarded-* headers count.  [default: 127.0.0.1 with --url]",
)
@click.option(
    "--privacy-cap",
    callback=_cap,
    metavar="LOSS",
    help="Nobody gives up more than this over all campaigns; none lifts the limit.  [default: as it was]",
)
@click.option("--quiet", is_flag=True, help="No line per request.")
@click.option(
    "--demo", is_flag=True, help="Campaigns to look at, with bots at work, in a folder that is removed at the end."
)
def command(
    home: Path,
    database: str | None,
    host: str,
    port: int,
    url: str | None,
    proxies: Sequence[str],
    privacy_cap: float | None,
    quiet: bool,
    demo: bool,
) -> None:
    """Serve campaigns to analysts, auditors and participants.

    On the first start the folder is made, with its keys and, unless --database names PostgreSQL, its database. If there
    is no account yet and somebody is at the terminal, an analyst is made and the password shown once; otherwise use
    `hushbid users add`. Ctrl-C lets requests finish that have begun. --demo needs no account and no folder.
    """
    if demo:
        refuse_with_demo(home, database, url, privacy_cap)
        serve_demo(host, port)
        return
    https = _is_https(url, host)
    try:
        from hushbid.server.http import create_app
        from hushbid.server.http.serve import is_loopback, listen, serve
        from hushbid.server.pages import add_pages
        from hushbid.server.service import Service
    except ImportError as missing:
        raise MissingExtra(
            f"The server needs the package {missing.name}: pip install '.[server]' in a checkout."
        ) from None
    listener = listen(host, port)
    with listener, Service.at(str(home), database=database, privacy_cap=privacy_cap) as service:
        here = _address(host, listener.getsockname()[1])
        if not is_loopback(host) and url is None:
            click.echo(f"Warning: {here} is not protected by TLS; put it behind a proxy and say --url.", err=True)
        _first_account(service, home)

        def ready() -> None:
            click.echo(f"Hushbid serves {url or here} from {home} (Ctrl-C stops).")
            click.echo(f"Receipts are signed with key {service.keys().newest.fingerprint}")

        log_to_stderr(quiet)
        trusted = list(proxies) or (["127.0.0.1", "::1"] if url is not None else [])
        app = create_app(service, pages=add_pages, https=https, address=url, host=host)
        serve(app, listener, proxies=trusted, ready=ready)
    click.echo("Stopped.")


def _is_https(url: str | None, host: str) -> bool:
    """Whether cookies must travel by https only: always, but on this machine itself."""
    if url is None:
        from hushbid.server.http.serve import is_loopback

        return not is_loopback(host)
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.netloc or parts.path.rstrip("/") or parts.query or parts.fragment:
        raise InputError(f"--url must look like https://campaign.example.org, without a path, got {url!r}.")
    return True


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _first_account(service: "Service", home: Path) -> None:
    """Make the first account and show its password, to somebody at a terminal only: elsewhere it would be a log."""
    if service.users():
        return
    if not sys.stdout.isatty():
        click.echo(f"There is no account yet: hushbid users add NAME --home {home}", err=True)
        return
    password = new_password()
    service.create_user(_FIRST_USER, "analyst", password)
    click.echo(f"An account was made. It is shown this once:\n  name      {_FIRST_USER}\n  password  {password}")
