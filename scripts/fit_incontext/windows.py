"""Windows of 20 lines, found by similarity, in the layout of the similar-code block."""

from __future__ import annotations

import re

import numpy as np

SIMILAR = 6500
"""Characters of retrieved code in a prompt: about 2000 tokens."""
RULE = "# " + "-" * 50
WORD = re.compile(r"[A-Za-z]+|\d+|[^\w\s]")


class Windows:
    """All 20-line windows of a package, found by the Jaccard similarity of their words."""

    def __init__(self, files: dict[str, list[str]]) -> None:
        """Cut the windows."""
        self.places: list[tuple[str, int, int]] = []
        rows: dict[str, list[int]] = {}
        sizes: list[int] = []
        for path, lines in files.items():
            for middle in range(0, len(lines), 10):
                start, end = max(0, middle - 10), min(len(lines), middle + 10)
                words = set(WORD.findall("\n".join(lines[start:end])))
                for word in words:
                    rows.setdefault(word, []).append(len(self.places))
                self.places.append((path, start, end))
                sizes.append(len(words))
        self.files = files
        self.rows = {word: np.array(row) for word, row in rows.items()}
        self.sizes = np.array(sizes)

    def like(self, text: str, path: str, *, forward: bool) -> list[tuple[str, int, int]]:
        """Return the places most like `text` in other files, best first."""
        words = set(WORD.findall(text))
        common = np.zeros(len(self.places))
        for word in words:
            if word in self.rows:
                common[self.rows[word]] += 1
        score = common / (self.sizes + len(words) - common)
        found = []
        for at in np.argsort(-score, kind="stable")[:40]:
            name, start, end = self.places[at]
            if name != path:
                if forward:
                    end = min(end + 10, len(self.files[name]))
                    start = max(0, end - 20)
                found.append((name, start, end))
        return list(dict.fromkeys(found))

    def block(self, places: list[tuple[str, int, int]]) -> str:
        """Render places as the similar-code block, the best last."""
        parts: list[str] = []
        size = 0
        for path, start, end in places:
            code = "".join(f"# {line}\n" for line in self.files[path][start:end])
            if len(parts) < 10 and size + len(code) < SIMILAR:
                size += len(code)
                parts.insert(0, f"# the below code fragment can be found in:\n# {path}\n{RULE}\n{code}{RULE}\n")
        return f"# Here are some relevant code fragments from other files of the repo:\n{RULE}\n{''.join(parts)}\n"
