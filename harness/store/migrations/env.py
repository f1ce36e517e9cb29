"""What Alembic runs: every migration on the connection that `harness.store.migrate` hands over."""

from alembic import context

# The connection is in a transaction already: a schema is changed whole or not at all.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
