"""How long a person waits for nothing: the command line against Python loading NumPy."""

import subprocess
import sys
from collections.abc import Callable

from benchmarks.harness import Row, time_ratio


def run() -> list[Row]:
    numpy = command("-c", "import numpy")
    lines = {
        "import hushbid": command("-c", "import hushbid"),
        "hushbid --version": command("-m", "hushbid", "--version"),
        "hushbid --help": command("-m", "hushbid", "--help"),
    }
    return [
        time_ratio(what, ours, against="python -c 'import numpy'", theirs=numpy, limit=1.0)
        for what, ours in lines.items()
    ]


def command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
