"""Work in the background, and answers to requests that must not be carried out twice."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, select

from hushbid.errors import NotFound
from hushbid.server.model.views import JobView
from hushbid.server.store import schema
from hushbid.server.store.schema import idempotency, jobs


def add(connection: Connection, job: JobView) -> None:
    """Store a new job."""
    schema.add(connection, jobs, asdict(job))


def change(connection: Connection, job_id: str, **columns: Any) -> None:
    """Set columns of a job."""
    schema.change(connection, jobs, job_id, **columns)


def get(connection: Connection, job_id: str) -> JobView:
    """The job with that id."""
    found = schema.one_of(connection, JobView, select(jobs).where(jobs.c.id == job_id))
    if found is None:
        raise NotFound("There is no such job.")
    return found


def of_campaign(connection: Connection, campaign_id: str) -> list[JobView]:
    """A campaign's jobs, newest first."""
    query = select(jobs).where(jobs.c.campaign == campaign_id).order_by(jobs.c.started_at.desc(), jobs.c.id.desc())
    return schema.all_of(connection, JobView, query)


def running(connection: Connection, campaign_id: str | None = None) -> list[JobView]:
    """All jobs that are not finished, or those of one campaign; oldest first."""
    query = select(jobs).where(jobs.c.state == "running").order_by(jobs.c.started_at, jobs.c.id)
    return [job for job in schema.all_of(connection, JobView, query) if campaign_id in (None, job.campaign)]


def remembered(connection: Connection, key: str) -> tuple[str, bytes] | None:
    """The request that was carried out under a key, and the answer to it."""
    row = connection.execute(select(idempotency).where(idempotency.c.key == key)).one_or_none()
    return None if row is None else (row.request, bytes(row.answer))


def remember(connection: Connection, key: str, *, request: str, answer: bytes, at: str) -> None:
    """Note a request and the answer to it."""
    schema.add(connection, idempotency, {"key": key, "request": request, "answer": answer, "at": at})


def forget_old(connection: Connection, before: str) -> None:
    """Forget requests made before a time."""
    connection.execute(delete(idempotency).where(idempotency.c.at < before))
