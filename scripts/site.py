"""Write the documentation as a site, the notebook as a page: ``python -m scripts.site [FOLDER]``, else ``site/``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[1]
_NOTEBOOK = "notebook.ipynb"


def build(folder: Path, docs: Path = ROOT / "docs") -> None:
    """Write the site into a folder, in place of what is there.

    Raises:
        SystemExit: if a page is missing or a link leads nowhere, with what the generator says.
    """
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        pages = root / "docs"
        shutil.copytree(docs, pages)
        shutil.copy(ROOT / "mkdocs.yml", root)
        text, _ = MarkdownExporter().from_filename(str(pages / _NOTEBOOK))
        (pages / _NOTEBOOK).unlink()
        (pages / _NOTEBOOK).with_suffix(".md").write_text(text, encoding="utf-8")
        for page in pages.glob("*.md"):
            linked = page.read_text(encoding="utf-8").replace(f"]({_NOTEBOOK})", "](notebook.md)")
            page.write_text(linked, encoding="utf-8")
        generator = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
        plain = {**os.environ, "NO_COLOR": "1"}
        built = subprocess.run(generator, cwd=root, env=plain, capture_output=True, text=True, check=False)
        if built.returncode:
            raise SystemExit(f"site: {built.stdout}{built.stderr}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(root / "site", folder)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
