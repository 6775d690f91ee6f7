"""A process that loads what commands need once and forks a child for each: loading takes longer than most commands.

It reads one request per line, a JSON object, and answers with the exit status. A child starts where the command line
does, with standard streams, a folder and an environment of its own. A request may ask for a fault: a signal that
arrives at a certain step, or a build with too little noise. Run as a module by conftest.py.
"""

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from hushbid.cli import COMMANDS, main
from tests.brief import brief_reports

HEAVY = (
    *("hushbid.audit", "hushbid.baselines", "hushbid.record", "hushbid.report"),
    *("hushbid.campaign.buying", "hushbid.priors.fitting"),
    *("opendp.prelude", "pyarrow.parquet", "scipy.integrate", "scipy.optimize", "scipy.special", "scipy.stats"),
)
LONGEST = 300


def serve() -> None:
    for command in COMMANDS:
        importlib.import_module(f"hushbid.cli.{command.replace('-', '_')}")
    for module in HEAVY:
        importlib.import_module(module)
    compile_templates()
    hurry_attacks()
    with brief_reports():
        for line in sys.stdin:
            child = os.fork()
            if child == 0:
                be_command(json.loads(line))
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 (the answer)


def be_command(request: dict[str, Any]) -> NoReturn:
    status = 1
    try:
        signal.alarm(LONGEST)
        for descriptor, name in enumerate(request["streams"]):
            os.dup2(os.open(name, os.O_RDONLY if descriptor == 0 else os.O_WRONLY), descriptor)
        sys.stdin, sys.stdout, sys.stderr = (open(place, "w" if place else "r") for place in (0, 1, 2))  # noqa: SIM115
        os.chdir(request["cwd"])
        os.environ.update(request["variables"])
        if request.get("stop"):
            stop_at(*request["stop"])
        if request.get("noise", 1.0) == 1.0:
            draw_fewer_samples()
        scale_noise(request.get("noise", 1.0))
        main(request["arguments"], prog_name="hushbid")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (the last frame of a process)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def compile_templates() -> None:
    """Those of a report, which most commands of a campaign write: a child would compile them again."""
    from hushbid.report import page

    first = page._page("en")
    for name in first.environment.list_templates(filter_func=lambda name: name.endswith(".html") and "/" not in name):
        first.environment.get_template(name, globals=dict(first.globals))


def hurry_attacks() -> None:
    """Let one person misreport, now and then, where a report would try sixteen people: no attack is tested here."""
    from hushbid.audit import incentives, suite

    attack, close_in = suite.check_incentives, incentives._close_in
    fewer = {"rows": lambda rows: rows and rows[:1], "people": lambda _: 1, "points": lambda _: 3}

    def hurried(*what: Any, **how: Any) -> Any:
        return attack(*what, **{name: fewer.get(name, lambda value: value)(value) for name, value in how.items()})

    suite.check_incentives = hurried
    incentives._close_in = lambda table, run, **how: close_in(table, run, **{**how, "rounds": 1})


def draw_fewer_samples() -> None:
    """Attack honest noise with a tenth of the samples: they find nothing, and what they find is tested elsewhere."""
    from hushbid.audit import suite

    suite._SAMPLES //= 10
    suite._SUMMED = (suite._SUMMED[0] // 10, suite._SUMMED[1] // 10)
    suite._MOST_REPETITIONS = suite._FEWEST_REPETITIONS


def scale_noise(factor: float) -> None:
    """Plant a fault: noise of this many times the scale it should have."""
    from hushbid.disclosure import noise

    draw = noise.draw_many
    if factor != 1.0:
        noise.draw_many = lambda totals, *, scale: draw(totals, scale=factor * scale)


def stop_at(place: int, number: int) -> None:
    """Let a signal arrive after the place-th call that makes something durable or gives it its name."""
    calls = 0

    def counted(step: Callable[..., None]) -> Callable[..., None]:
        def count(*arguments: Any) -> None:
            nonlocal calls
            step(*arguments)
            calls += 1
            if calls == place:
                os.kill(os.getpid(), number)

        return count

    os.fsync, os.link = counted(os.fsync), counted(os.link)  # type: ignore[assignment]


if __name__ == "__main__":
    serve()
