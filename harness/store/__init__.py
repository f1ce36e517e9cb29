"""Stored results: append-only rows in SQLite (the default) or in another database that SQLAlchemy supports."""

from ctxbench.harness.store.store import Store, open_store

__all__ = ["Store", "open_store"]
