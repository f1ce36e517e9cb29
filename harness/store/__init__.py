"""Stored results: append-only rows in SQLite (the default) or PostgreSQL."""

from ctxbench.harness.store.store import Store, open_store

__all__ = ["Store", "open_store"]
