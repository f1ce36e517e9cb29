"""Run the tests of reading, searching and counting samples with PostgreSQL."""

import pytest

from tests.harness.store import test_details, test_details_search, test_notes
from tests.harness.store.test_postgres import make_database, port, store, url

pytestmark = pytest.mark.slow

__all__ = ["make_database", "port", "store", "url"]

_PLANS = {"test_no_other_sample_is_read"}
"""This test reads SQLite's query plans."""
_SAME = {
    name: test
    for module in (test_details, test_details_search, test_notes)
    for name, test in vars(module).items()
    if name.startswith("test_") and name not in _PLANS
}
# They use the fixture `store` of this module.
globals().update(_SAME)


def test_the_sqlite_tests_also_run_here() -> None:
    assert len(_SAME) >= 12
