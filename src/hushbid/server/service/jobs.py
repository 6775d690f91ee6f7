"""Work in the background: one thread that takes jobs one after the other.

A job's steps are ordinary operations of the writer, and what it draws goes to the claims folder first, so it may die at
any moment: its row still says ``running``, and the next server takes it up again from the beginning.
"""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.faults import log_fault
from hushbid.server.model.views import JobView

_log = logging.getLogger(__name__)


class Jobs:
    """Runs jobs; ``failed`` is told why one could not be done."""

    def __init__(self, run: Callable[[JobView], None], failed: Callable[[JobView, str, str | None], None]) -> None:
        self._run = run
        self._failed = failed
        self._queue: queue.SimpleQueue[tuple[JobView, Future[None]] | None] = queue.SimpleQueue()
        self._known: dict[str, Future[None]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="hushbid-jobs", daemon=True)
        self._thread.start()

    def start(self, job: JobView) -> None:
        """Queue a job."""
        done: Future[None] = Future()
        self._known[job.id] = done
        self._queue.put((job, done))

    def wait(self, job_id: str, timeout: float | None = None) -> None:
        """Wait until a job is done or has failed; at once if it is not known here."""
        done = self._known.get(job_id)
        if done is not None:
            done.result(timeout)

    def close(self) -> None:
        """Stop after the job at hand; those still waiting are taken up by the next server."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (taken := self._queue.get()) is not None and not self._stopping.is_set():
            job, done = taken
            try:
                self._run(job)
            except ServerFailed as problem:  # shutting down, or no database: the job stays as it is
                _log.warning("%s of campaign %s stopped: %s", job.kind, job.campaign, problem)
            except HushbidError as problem:
                self._tell(job, str(problem), problem.field)
            except Exception as problem:  # noqa: BLE001 - the campaign stays where it is, and somebody must be told
                log_fault(problem, f"{job.kind} of campaign {job.campaign}")
                self._tell(job, f"An unexpected fault: {type(problem).__name__}; the server's log says more.")
            finally:
                self._known.pop(job.id, None)
                done.set_result(None)

    def _tell(self, job: JobView, problem: str, field: str | None = None) -> None:
        try:
            self._failed(job, problem, field)
        except HushbidError as another:
            _log.warning("%s of campaign %s failed, and so did noting it: %s", job.kind, job.campaign, another)
