"""The notebook of the docs runs and shows the same tables as its page."""

from pathlib import Path

import nbformat
import pytest

from tests.helpers.notebook import PAGE, executed, tables

pytestmark = pytest.mark.network


@pytest.mark.long
def test_the_notebook_runs_and_its_page_is_up_to_date(tmp_path: Path) -> None:
    notebook = executed(tmp_path)
    assert tables(notebook) == tables(nbformat.read(PAGE, as_version=4)), "run `python -m tests.helpers.notebook`"
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("<progress" in output.get("data", {}).get("text/html", "") for output in shown)
