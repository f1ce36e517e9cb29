"""Numbered changes of the schema, driven by `harness.store.migrate`."""
