"""Work in the background, and answers to requests that must not be carried out twice."""

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from hushbid.errors import NotFound
from hushbid.server.model.views import JobView
from hushbid.server.store.schema import idempotency, jobs


def add(connection: Connection, **columns: Any) -> None:
    """Store a new job."""
    connection.execute(insert(jobs).values(**columns))


def change(connection: Connection, job_id: str, **columns: Any) -> None:
    """Set columns of a job."""
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(**columns))


def get(connection: Connection, job_id: str) -> JobView:
    """The job with that id."""
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound("There is no such job.")
    return _job(row)


def of_campaign(connection: Connection, campaign_id: str) -> list[JobView]:
    """A campaign's jobs, newest first."""
    query = select(jobs).where(jobs.c.campaign_id == campaign_id)
    return [_job(row) for row in connection.execute(query.order_by(jobs.c.started_at.desc(), jobs.c.id.desc()))]


def running(connection: Connection) -> list[JobView]:
    """All jobs that are not finished, oldest first."""
    query = select(jobs).where(jobs.c.state == "running").order_by(jobs.c.started_at, jobs.c.id)
    return [_job(row) for row in connection.execute(query)]


def remove_all(connection: Connection, campaign_id: str) -> None:
    """Remove a campaign's jobs."""
    connection.execute(delete(jobs).where(jobs.c.campaign_id == campaign_id))


def remembered(connection: Connection, key: str) -> tuple[str, bytes] | None:
    """The request that was carried out under a key, and the answer to it."""
    row = connection.execute(select(idempotency).where(idempotency.c.key == key)).one_or_none()
    return None if row is None else (row.request, bytes(row.answer))


def remember(connection: Connection, key: str, *, request: str, answer: bytes, at: str) -> None:
    """Note a request and the answer to it."""
    connection.execute(insert(idempotency).values(key=key, request=request, answer=answer, at=at))


def forget_old(connection: Connection, before: str) -> None:
    """Forget requests made before a time."""
    connection.execute(delete(idempotency).where(idempotency.c.at < before))


def _job(row: Row[Any]) -> JobView:
    return JobView(
        id=row.id,
        campaign=row.campaign_id,
        kind=row.kind,
        state=row.state,
        step=row.step,
        done=row.done,
        total=row.total,
        problem=row.problem,
        field=row.field,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
