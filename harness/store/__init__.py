"""Stored results: append-only rows in any database that SQLAlchemy reaches; SQLite by default."""

from ctxbench.harness.store.store import Store, open_store

__all__ = ["Store", "open_store"]
