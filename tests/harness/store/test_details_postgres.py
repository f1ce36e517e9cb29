"""Samples are read, searched and counted in PostgreSQL as in SQLite: the same tests again."""

import pytest

from ctxbench.harness.store import Store
from ctxbench.harness.store.search import SampleFilter, neighbours, search
from tests.harness.store import test_details, test_details_search
from tests.harness.store.test_postgres import make_database, port, store, url

pytestmark = pytest.mark.slow

__all__ = ["make_database", "port", "store", "url"]

_PLANS = {"test_no_other_sample_is_read", "test_a_page_is_all_that_is_read"}
"""They read SQLite's plans of its statements."""
_SAME = {
    name: test
    for module in (test_details, test_details_search)
    for name, test in vars(module).items()
    if name.startswith("test_") and name not in _PLANS
}
# They take the `store` of this module.
globals().update(_SAME)


def test_what_fits_is_found_once_and_not_for_the_first_row_only(store: Store) -> None:
    run = test_details_search.add_scored(store, "s", 0.5, None, 1.0)
    wanted = SampleFilter(run=run, measure=test_details_search.EM, other=run, differs="any")
    with test_details.statements(store) as sent:
        search(store, wanted, limit=1)
        neighbours(store, wanted, 1)
    assert len(sent) == 2
    with store.reading() as connection:
        for statement, parameters in sent:
            plan = [line for (line,) in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
            assert sum("CTE found" in line for line in plan) == 1, plan


def test_the_same_tests_run_here() -> None:
    assert len(_SAME) >= 12
