"""`Service`: a running installation, for the HTTP interface, the pages, the command line and tests.

What it can do is in `hushbid.server.service.registry`; here is how it starts, works in the background and ends.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError
from hushbid.receipts.keys import KeyList
from hushbid.receipts.receipt import Receipt
from hushbid.server.failpoints import Crash, no_crash
from hushbid.server.installation import DataDir, Installation
from hushbid.server.model.settings import LEAST_PEOPLE
from hushbid.server.model.views import JobView
from hushbid.server.service import decision, drafts, payments, upkeep
from hushbid.server.service import participation as participating
from hushbid.server.service import release as releasing
from hushbid.server.service.jobs import Jobs
from hushbid.server.service.registry import UseCases
from hushbid.server.service.use_case import Effort, IdempotencyKey, ServiceContext
from hushbid.server.service.writer import Writer
from hushbid.server.store import campaigns as stored_campaigns
from hushbid.server.store import jobs as stored_jobs
from hushbid.server.store.database import Clock, Database, Transaction, lock_file, utc_now
from hushbid.server.store.migrate import bind_installation, migrate

T = TypeVar("T")
_MOST_CAP = 1e6


class Service(UseCases):
    """A running installation. Close it when done; only one may run on a database, and only one in a folder.

    ``privacy_cap``: nobody may give up more over all campaigns, from now on; infinity lifts the limit. Without it the
    limit stays what it was, so that a server started carelessly keeps it.
    """

    def __init__(
        self,
        home: DataDir,
        database: Database,
        *,
        clock: Clock = utc_now,
        crash: Crash = no_crash,
        privacy_cap: float | None = None,
        effort: Effort | None = None,
        least_people: int = LEAST_PEOPLE,
    ) -> None:
        """``least_people`` may be lower for people who do not exist: figures of few tell what they bid."""
        if privacy_cap is not None and not (0.0 < privacy_cap < _MOST_CAP or privacy_cap == math.inf):
            raise InputError(
                f"privacy_cap must be positive and below a million, or inf for none, got {privacy_cap}.",
                field="privacy_cap",
            )
        self.home = home
        self.clock = clock
        self._database = database
        self._trees = participating.TreeOf()
        self._forgot_at: datetime | None = None
        stopping = threading.Event()
        # the order matters: the folder, the cap, the tables, the writer, then what a crash left
        with ExitStack() as held:
            lock = lock_file(home.path / "lock", "Another server is running in this folder: stop it first.")
            held.callback(os.close, lock)
            if privacy_cap is not None:
                home.keep_privacy_cap(None if privacy_cap == math.inf else privacy_cap)
            self.installation = Installation.of(home, crash=crash, least_people=least_people)
            with database.writer.begin():
                migrate(database.writer)
                bind_installation(database.writer, home)
            self.writer = Writer(database, self.installation, clock=clock)
            held.callback(self.writer.close)
            self.context = ServiceContext(
                installation=self.installation,
                clock=clock,
                effort=effort or Effort(),
                write=self._write,
                read=self._read,
                stopping=stopping.is_set,
            )
            self._jobs = Jobs(self._run_job, self._job_failed)
            held.callback(self._jobs.close)
            # openings compute for minutes: nobody's decision or estimate waits for them
            self._openings = Jobs(self._run_job, self._job_failed)
            held.callback(self._openings.close)
            held.callback(stopping.set)
            # before anybody is answered
            again = upkeep.take_up(self.context)
            self._purge()  # what a server erased that was killed before it had emptied the log
            for job in again:
                self.start(job)
            self._held = held.pop_all()

    @classmethod
    def at(cls, home: str | Path, *, database: str | None = None, privacy_cap: float | None = None) -> Self:
        """Start the installation in a folder; on its own SQLite file unless an address is given."""
        folder = DataDir.at(home)
        opened = Database.sqlite(folder.database) if database is None else Database(database)
        try:
            return cls(folder, opened, privacy_cap=privacy_cap)
        except BaseException:
            opened.close()
            raise

    def close(self) -> None:
        """Finish what was begun, and let go of the database; an opening under way is left to the next server."""
        self._held.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receipt(self, secret: str) -> Receipt:
        """A participant's signed receipt, once the campaign is over."""
        key = self.home.signing.current()
        with self._read() as connection:
            return participating.receipt(connection, secret, tree_of=self._trees, key=key)

    def keys(self) -> KeyList:
        """The public keys by which receipts are checked."""
        return self.home.signing.listed()

    def answered(self, key: IdempotencyKey) -> bytes | None:
        """Return the answer that a request got before under its key, if it was carried out."""
        with self._read() as connection:
            return key.answer(connection)

    def tick(self) -> None:
        """What happens by itself as time passes; to be called every second or so."""
        now = self.clock()
        upkeep.cancel_expired(self.context, now)
        bids, data = upkeep.overdue(self.context, now)
        for campaign_id in bids:
            self._unless_late("allocation.start", partial(decision.start, campaign_id=campaign_id))
        for campaign_id in data:
            self._unless_late("release.start", partial(releasing.start, campaign_id=campaign_id, accept_nobody=True))
        if self._database.needs_purge:
            self._purge()
        upkeep.destroy_keys(self.context, now)
        payments.destroy_payouts(self.context, now)
        if self._forgot_at is None or abs(now - self._forgot_at) >= upkeep.FORGETTING:
            upkeep.forget(self.context)
            self._forgot_at = now

    def start(self, job: JobView) -> None:
        """Begin to work in the background."""
        (self._openings if job.kind == "opening" else self._jobs).start(job)

    def wait(self, job: JobView, timeout: float | None = None) -> JobView:
        """Wait until a job is done or has failed."""
        (self._openings if job.kind == "opening" else self._jobs).wait(job.id, timeout)
        with self._read() as connection:
            return stored_jobs.get(connection, job.id)

    # -- within --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, operation: Callable[[Transaction], T]) -> T:
        return self.writer.run(name, operation)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection

    def _unless_late(self, name: str, begin: Callable[[Transaction], JobView]) -> None:
        """Begin something by itself, unless somebody was faster."""
        with suppress(Conflict):
            self._jobs.start(self._write(name, begin))

    def _purge(self) -> None:
        def nothing_but_erasing(tx: Transaction) -> None:
            tx.erases = True

        self._write("purge", nothing_but_erasing)

    def _run_job(self, job: JobView) -> None:
        if job.kind == "opening":
            drafts.run_opening(self.context, job)
            return
        if job.kind == "release":
            releasing.run(self.context, job)
            return
        decision.run(self.context, job)
        with self._read() as connection:
            campaign = stored_campaigns.get(connection, job.campaign)
        upkeep.take_up_withdrawals(self.context, campaign)
        # a restored database may be behind: the estimate drawn, or the key destroyed, before
        again = upkeep.take_up_delivering(self.context, campaign)
        if again is not None:
            releasing.run(self.context, again)

    def _job_failed(self, job: JobView, problem: str, field: str | None) -> None:
        failed = {"state": "failed", "problem": problem, "field": field}
        self._write("job", lambda tx: stored_jobs.change(tx.connection, job.id, **failed, finished_at=tx.at))
