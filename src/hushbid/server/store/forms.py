"""What analysts have typed into drafts' forms and not sent."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from hushbid.server.model.forms import KeptForm
from hushbid.server.store.schema import forms, plain_text, plain_values

_C = forms.c


def add(connection: Connection, user_id: str, **columns: Any) -> None:
    """Keep a form that is new."""
    connection.execute(insert(forms).values(user_id=user_id, **_stored(columns)))


def change(connection: Connection, form_id: str, **columns: Any) -> None:
    """Keep something else under the same name."""
    connection.execute(update(forms).where(_C.id == form_id).values(**_stored(columns)))


def get(connection: Connection, user_id: str, form_id: str) -> KeptForm | None:
    """A user's form."""
    return _one(connection, _C.id == form_id, _C.user_id == user_id)


def is_known(connection: Connection, form_id: str) -> bool:
    """Whether somebody's form has that name."""
    return connection.execute(select(_C.id).where(_C.id == form_id)).first() is not None


def of_campaign(connection: Connection, user_id: str, campaign_id: str) -> KeptForm | None:
    """A user's form about a draft."""
    return _one(connection, _C.campaign_id == campaign_id, _C.user_id == user_id)


def unfinished(connection: Connection, user_id: str) -> list[KeptForm]:
    """A user's forms that are no campaigns yet, the newest first."""
    query = select(forms).where(_C.user_id == user_id, _C.campaign_id.is_(None))
    return [_form(row) for row in connection.execute(query.order_by(_C.changed_at.desc(), _C.id))]


def clear(connection: Connection, form_id: str) -> None:
    """Forget what was typed, but not of what it is the form."""
    connection.execute(update(forms).where(_C.id == form_id).values(fields=None))


def remove(connection: Connection, form_id: str) -> None:
    """Forget a form."""
    connection.execute(delete(forms).where(_C.id == form_id))


def remove_all(connection: Connection, campaign_id: str) -> None:
    """Forget everybody's forms about a campaign."""
    connection.execute(delete(forms).where(_C.campaign_id == campaign_id))


def _one(connection: Connection, *where: ColumnElement[bool]) -> KeptForm | None:
    row = connection.execute(select(forms).where(*where)).one_or_none()
    return None if row is None else _form(row)


def _stored(columns: dict[str, Any]) -> dict[str, Any]:
    fields = columns.get("fields")
    return columns if fields is None else {**columns, "fields": plain_text(fields)}


def _form(row: Row[Any]) -> KeptForm:
    return KeptForm(
        id=row.id,
        campaign=row.campaign_id,
        language=row.language,
        fields=None if row.fields is None else plain_values(row.fields),
        changed_at=row.changed_at,
        sent_at=row.sent_at,
    )
