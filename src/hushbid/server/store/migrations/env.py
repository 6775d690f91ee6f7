"""How alembic runs the steps: on the connection it is given, in one transaction."""

from alembic import context

from hushbid.server.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=connection.dialect.name == "sqlite")
with context.begin_transaction():
    context.run_migrations()
