"""``hushbid`` and ``python -m hushbid``: where the command line begins and ends.

Nothing is imported before the ``try``: loading takes longer than many commands, and whoever interrupts while that goes
on is told so in a line, as later.
"""


def main() -> None:
    """Load the command line, run it, and leave with its status."""
    try:
        status = _run()
    except KeyboardInterrupt as stop:
        import os

        status = 130
        if not isinstance(stop.__context__, SystemExit):  # nobody has said so yet
            os.write(2, b"\nInterrupted: nothing is left half written.\n")
    _leave(status)


def _run() -> object:
    _set_up()
    try:
        from hushbid.cli import main as command_line

        command_line(prog_name="hushbid")
    except SystemExit as end:
        return end.code
    return 0


def _set_up() -> None:
    """How numerical work goes best in a process of its own, unless somebody has said otherwise."""
    import gc
    import os

    # we multiply no matrices, and threads of OpenBLAS that wait for some keep a processor busy
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # lists of millions hold no circles, and looking for some in them takes long
    gc.set_threshold(100_000, 10, 10)


def _leave(status: object) -> None:
    """End the process: what has been decided is not changed by a signal that comes while Python shuts down.

    An interrupted engine may have threads of its own in the middle of our code. Python ends such a thread under the
    engine's feet when it shuts down, which aborts the process; so after an interruption it does not shut down. By
    then everything temporary has been removed.
    """
    import signal
    import sys
    from contextlib import suppress

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if status in (130, 143):
        import os

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it any more
                stream.flush()
        os._exit(int(str(status)))
    sys.exit(status)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
