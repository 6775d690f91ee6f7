"""What is done beside a running server."""

from sqlalchemy import text

from hushbid.server.admin import Administration
from tests.server.support import Installation


def test_what_an_operation_leaves_for_later_is_written_before_its_transaction_ends(installation: Installation) -> None:
    with installation.start():
        pass
    with Administration.at(installation.folder, database=installation.url) as beside:
        beside.context.write("test", lambda tx: tx.memory.later(text("CREATE TABLE later (number INTEGER)"), {}))
        with beside.context.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM later")).scalar() == 0
