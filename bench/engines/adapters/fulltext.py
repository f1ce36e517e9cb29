# /// script
# requires-python = ">=3.11"
# dependencies = ["tantivy==0.27.0"]
# ///
"""Finds windows of lines with a full-text index (BM25 over identifiers and their parts)."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import tantivy
from ctxbench_engine import identifiers

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_HEAP = 64 << 20
_TIES = 50


class Tantivy:
    """A full-text index of windows, stored on disk."""

    saves = True

    def __init__(self, *, lines: int = 20, window: int = 20, parts: bool = True) -> None:
        """Search windows of `window` lines for identifiers of the last `lines` lines, with `parts` for their words."""
        self._lines, self._window, self._parts = lines, window, parts
        self._root = Path()

    def index(self, root: str) -> tuple[str, str]:
        """Write the index."""
        self._root = Path(root)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("path", stored=True, tokenizer_name="raw")
        builder.add_unsigned_field("start", stored=True)
        builder.add_unsigned_field("end", stored=True)
        builder.add_text_field("body", stored=False, tokenizer_name="whitespace")
        _folder().mkdir(exist_ok=True)
        tantivy.Index(builder.build(), path=str(_folder()))
        self.update([file.relative_to(root).as_posix() for file in sorted(Path(root).rglob("*")) if file.is_file()])
        return "tantivy", version("tantivy")

    def update(self, paths: list[str]) -> None:
        """Index these files again."""
        writer = tantivy.Index.open(str(_folder())).writer(heap_size=_HEAP, num_threads=1)
        stride = max(1, self._window // 2)
        for path in paths:
            writer.delete_documents("path", path)
            file = self._root / path
            if not file.is_file():
                continue
            with file.open(encoding="utf-8", errors="replace") as rows:
                lines = list(rows)
            for start in range(0, len(lines), stride):
                end = min(len(lines), start + self._window)
                names = re.findall(r"[A-Za-z_]\w+", "".join(lines[start:end]))
                body = " ".join(word for name in names for word in self._words(name))
                writer.add_document(tantivy.Document(path=[path], start=[start], end=[end], body=[body]))
        writer.commit()
        writer.wait_merging_threads()

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return the windows that BM25 ranks highest."""
        words: dict[str, float] = {}
        for name, weight in identifiers(text, self._lines).items():
            for word in self._words(name):
                words[word] = max(weight, words.get(word, 0.0))
        if not words:
            return []
        index = tantivy.Index.open(str(_folder()))
        queries = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(tantivy.Query.term_query(index.schema, "body", word), weight),
            )
            for word, weight in words.items()
        ]
        searcher = index.searcher()
        hits = searcher.search(tantivy.Query.boolean_query(queries), limit=top + _TIES).hits
        documents = [(searcher.doc(address), score) for score, address in hits]
        places = [(d.get_first("path"), d.get_first("start"), d.get_first("end"), score) for d, score in documents]
        # Among equals the library's order is that of indexing, which differs between boxes.
        return sorted(places, key=lambda place: (-place[3], place[0].split("/"), place[1]))[:top]

    def _words(self, name: str) -> list[str]:
        parts = [part.lower() for part in _PART.findall(name)] if self._parts else []
        return [name, *(part for part in parts if len(part) > 2 and part != name)]


def _folder() -> Path:
    return Path.home() / "tantivy"
