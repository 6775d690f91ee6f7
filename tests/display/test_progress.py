"""Progress outside a kernel: a line on a terminal, and nothing in a pipe; IPython is not loaded for it."""

import os
import pty
import subprocess
import sys

from hushbid.display import progress

PROGRAM = """
import sys
from hushbid.display import progress
bar = progress("counting")
for k in range(5):
    bar(k, 4)
print("IPython" in sys.modules)
"""


def test_in_a_pipe_nothing_is_shown() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300)
    assert (told.stdout, told.stderr) == ("False\n", "")


def test_on_a_terminal_a_line_is_drawn_again_and_again_and_then_erased() -> None:
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=300)
        told = os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert told.count("counting") == 4
    assert told.endswith("\r\033[2K")


def test_where_nothing_can_be_seen_a_bar_takes_any_count() -> None:
    bar = progress()
    for done, of in ((0, 0), (5, 3), (-1, 2)):
        bar(done, of)
