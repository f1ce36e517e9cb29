"""`EngineBox`: one living box with an engine and its indexed tree, and how long and how much it may."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench.engines import answers, trees
from ctxbench.bench.engines.recipe import SERVER, Recipe
from ctxbench.bench.engines.remote import RemoteTalk
from ctxbench.bench.types import Sample
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.living import Conversation, living
from ctxbench.sandbox.types import MIB, Limits, Sandbox

LIMITS = Limits(
    memory=2048 * MIB,
    disk=1024 * MIB,
    inodes=200_000,
    file_bytes=512 * MIB,
    processes=256,
    open_files=1024,
    cpus=2.0,
    result=4 * MIB,
)
"""Of an engine's box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePatience:
    """How long an engine may take, in seconds."""

    index: float = 600.0
    search: float = 30.0
    sample: float = 120.0
    """For all searches of one sample together."""


PATIENCE = EnginePatience()


class EngineBox:
    """One living box with an indexed tree; used by the sample whose turn it is."""

    def __init__(self, recipe: Recipe, tree: dict[str, str], sandbox: Sandbox | None, limits: Limits = LIMITS) -> None:
        """Start it and have its tree indexed; one that runs elsewhere needs no sandbox."""
        self._recipe, self.patience = recipe, PATIENCE
        self.tree, self.lines = tree, trees.line_counts(tree)
        self.asked: list[Sample] = []
        """The samples that it was asked for, the last one last."""
        self.cut = self.cut_path = ""
        """The sample for which a target file is cut at present, and that file; for a box of a repository."""
        self._open = contextlib.ExitStack()
        began = time.monotonic()
        try:
            self._talk = self._server(limits) if recipe.remote else self._program(sandbox, limits)
            self.version, self.size = answers.identity(self.ask({"call": "index"}, self.patience.index))
        except BaseException:
            self.end()
            raise
        self.index_seconds = time.monotonic() - began

    def _program(self, sandbox: Sandbox | None, limits: Limits) -> Conversation:
        """Start the engine in a box."""
        assert sandbox
        tree = {path: text.encode("utf-8", "replace") for path, text in self.tree.items()}
        environment = replace(living(self._recipe.environment), tree=tree)
        talk: Conversation = self._open.enter_context(sandbox.converse(environment, limits=limits))
        talk.begin(f"{SERVER}:serve", {"entry": self._recipe.entry, "arguments": dict(self._recipe.arguments)})
        return talk

    def _server(self, limits: Limits) -> RemoteTalk:
        """Have the tree's server asked, and told when it ends."""
        return self._open.enter_context(contextlib.closing(RemoteTalk(self._recipe.remote, self.tree, limits.result)))

    def ask(self, question: Mapping[str, Any], seconds: float) -> Any:
        """Return the engine's answer to a question, as JSON data.

        Raises:
            SandboxError: if the box was lost.
            Raised: if the engine raised.
            ValueError: if the answer is none.
        """
        return answers.parsed(self._talk.ask(json.dumps(question).encode(), seconds))

    def update(self, texts: Mapping[str, str | None]) -> None:
        """Give files another text, None for no file, and have them indexed."""
        self.ask({"call": "update", "texts": dict(texts)}, self.patience.index)
        for path, text in texts.items():
            self.lines.pop(path, None)
            if text is not None:
                self.lines |= trees.line_counts({path: text})

    def search(self, text: str, sample: Sample, top: int, seconds: float = math.inf) -> Any:
        """Return what the engine answers within so many seconds, or within those of a search if they are fewer."""
        question = {"call": "search", "text": text, "path": sample.path, "line": sample.cursor.line, "top": top}
        return self.ask(question, min(seconds, self.patience.search))

    def end(self) -> None:
        """End the box."""
        with contextlib.suppress(SandboxError):
            self._open.close()
