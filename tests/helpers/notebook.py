"""Executes ``docs/notebook.ipynb`` and stores its output: ``python -m tests.helpers.notebook``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"
_SECONDS = 600


def executed(folder: Path) -> Any:
    """Return the notebook, executed in a folder, with the `ctxbench` of this interpreter first on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    notebook = nbformat.read(PAGE, as_version=4)
    client = NotebookClient(notebook, timeout=_SECONDS, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PATH": path, "CTXBENCH_HOME": str(folder / "home")})
    for cell in notebook.cells:
        cell.metadata.clear()
    return notebook


def tables(notebook: Any) -> list[str]:
    """Return the data frames and values at the ends of cells, as text."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    results = [output.data for output in outputs if output.output_type == "execute_result"]
    return [result["text/plain"] for result in results]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(Path(folder)), PAGE)
