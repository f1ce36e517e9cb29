# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp>=1.20,<3"]
# ///
"""Any server of the Model Context Protocol over stdio, as a TOML file describes it (docs/engine.md)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import threading
from collections import deque
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench_engine import identifiers
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

_FILES = "/ctxbench/lib/ctxbench_engine_source_files"
_SECONDS = 300.0
_GREETING_SECONDS = 120.0
"""Seconds for a server to answer `initialize`. Some import for a minute on a busy machine."""
_DECODER, _VISIBLE = json.JSONDecoder(), re.compile(r"\S")


class ToolFailed(RuntimeError):
    """The server flagged its answer as an error."""


class Mcp:
    """A client of one server. It runs in its own thread, since the SDK is asynchronous."""

    def __init__(self, *, config: dict[str, Any] | None = None) -> None:
        """Store the TOML file's content."""
        if not config or "command" not in config or "search" not in config:
            raise ValueError("an MCP server is described by a TOML file with `command` and `[search]`: name it instead")
        self._config = config
        self.follows = "update" in config
        self._root = "."
        self._loop = asyncio.new_event_loop()
        self._session: Any = None
        self._identity = ("mcp", "?")
        self._ready = threading.Event()
        self._failure = self._tools = ""
        self._errors: deque[str] = deque(maxlen=5)
        self.heard = ""
        """The last answer of a tool, which `ctxbench engine check` shows where no place is read from it."""

    def index(self, root: str) -> tuple[str, str]:
        """Run the `index` program, start the server, and make the `start` calls."""
        self._root = root
        self._prepare()
        if self._session is None:
            threading.Thread(target=self._run, daemon=True).start()
            if not self._ready.wait(_GREETING_SECONDS) or self._failure:
                silence = f"no answer to `initialize` on its stdout in {_GREETING_SECONDS:g} s; does it speak stdio?"
                last = f" Its stderr ended: {' | '.join(self._errors)[-300:]}" if self._errors else ""
                raise RuntimeError(f"the server did not start: {self._failure or silence}{last}")
        self._calls("start")
        return self._identity

    def update(self, paths: list[str]) -> None:
        """Run the `index` program again, and make the `update` calls or, without any, the `start` calls."""
        self._prepare()
        self._calls("update" if "update" in self._config else "start")

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Call the search tool, once or for each identifier, and read places from its answers."""
        search = self._config["search"]
        names = identifiers(text, int(search.get("lines", 20)))
        ordered = sorted(names, key=lambda name: -names[name])[: int(search.get("names", 12))]
        fields = {"root": self._root, "path": path, "line": str(line + 1), "text": text, "top": str(top)}
        fields |= {"query": " ".join(ordered), "pattern": "|".join(map(re.escape, ordered))}
        one_by_one = search.get("each") == "name"
        places: dict[tuple[str, int, int], float] = {}
        calls = ordered if one_by_one else [""] if ordered else []
        failures: list[ToolFailed] = []
        for name in calls:
            try:
                answer = self._tool(search["tool"], _filled(search.get("arguments", {}), {**fields, "name": name}))
            except ToolFailed as error:  # so some servers say that they have nothing for a name
                failures.append(error)
                continue
            located = list(self._places(answer))
            for position, place in enumerate(located):
                weight = names[name] if one_by_one else 1.0
                rarity = position if search.get("ranked") else len(located) ** 0.5
                places[place] = places.get(place, 0.0) + weight / (1 + rarity)
        if failures and len(failures) == len(calls):
            raise failures[0]
        return [(*place, score) for place, score in sorted(places.items(), key=lambda item: (-item[1], item[0]))[:top]]

    def _places(self, answer: str) -> Any:
        how = self._config.get("places", {})
        base, before, after = (int(how.get(key, other)) for key, other in (("base", 1), ("before", 2), ("after", 12)))
        for path, start, end in _matches(answer, how) if "pattern" in how else _entries(answer, how):
            relative = path.removeprefix(f"{self._root}/").removeprefix("./")
            first = max(0, start - base - before)
            last = max(first + 1, (start - base + after) if end is None else end - base + 1)
            if Path(self._root, relative).is_file():
                yield relative, first, last

    def _words(self, key: str) -> list[str]:
        return [part.replace("{root}", self._root).replace("{files}", _FILES) for part in self._config.get(key, [])]

    def _variables(self) -> dict[str, str]:
        return {**os.environ, **self._config.get("variables", {})}

    def _prepare(self) -> None:
        if words := self._words("index"):
            ended = subprocess.run(
                words, check=False, cwd=self._root, env=self._variables(), capture_output=True, timeout=_SECONDS
            )
            if ended.returncode:
                last = (ended.stdout + ended.stderr).decode(errors="replace").strip()[-200:]
                raise RuntimeError(f"{words[0]} ended with {ended.returncode}: {last}")

    def _calls(self, key: str) -> None:
        for call in self._config.get(key, []):
            self._tool(call["tool"], _filled(call.get("arguments", {}), {"root": self._root}))

    def _tool(self, name: str, arguments: dict[str, Any]) -> str:
        call = asyncio.run_coroutine_threadsafe(self._session.call_tool(name, arguments), self._loop)
        try:
            result = call.result(_SECONDS)
        except TimeoutError:
            raise RuntimeError(f"the tool {name} did not answer in {_SECONDS:g} s") from None
        words = "\n".join(part.text for part in result.content if getattr(part, "type", "") == "text")
        if getattr(result, "is_error", getattr(result, "isError", False)):
            raise ToolFailed(f"the tool {name} failed: {words[:200]} (its tools: {self._tools})")
        self.heard = words
        return words

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self._listener.join(1)
            self._failure = f"{type(error).__name__}: {error}."
            self._ready.set()

    async def _serve(self) -> None:
        heard, errors = os.pipe()
        self._listener = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._listener.start()
        command = self._words("command")
        server = StdioServerParameters(command=command[0], args=command[1:], env=self._variables(), cwd=self._root)
        with os.fdopen(errors, "w") as log:
            async with stdio_client(server, errlog=log) as (reads, writes), ClientSession(reads, writes) as session:
                greeting = await session.initialize()
                info = getattr(greeting, "server_info", None) or greeting.serverInfo
                self._identity = (info.name, f"{info.version} (mcp {version('mcp')})")
                self._tools = ", ".join(tool.name for tool in (await session.list_tools()).tools)
                self._session = session
                self._ready.set()
                await asyncio.Event().wait()

    def _listen(self, heard: int) -> None:
        with os.fdopen(heard, errors="replace") as stream:
            while line := stream.readline(1000):
                self._errors.append(line.strip())


def _filled(value: Any, fields: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, fields) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, fields) for item in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{(line|top)\}", value)
    return int(fields[whole[1]]) if whole else re.sub(r"\{(\w+)\}", lambda m: fields.get(m[1], m[0]), value)


def _matches(answer: str, how: dict[str, Any]) -> Any:
    path = ""
    for row in answer.splitlines():
        if "file" in how and (heading := re.match(how["file"], row)):
            path = heading["path"]
            continue
        if match := re.match(how["pattern"], row):
            groups = match.groupdict()
            yield groups.get("path") or path, int(groups["line"]), int(groups["end"]) if groups.get("end") else None


def _entries(answer: str, how: dict[str, Any]) -> Any:
    path_key, line_key, end_key = how.get("path", "path"), how.get("line", "line"), how.get("end", "")
    for answered in _values(answer):
        waiting: list[tuple[Any, str]] = [(answered, "")]
        while waiting:
            value, inherited = waiting.pop()
            if isinstance(value, str) and value[:1] in "[{" and value:
                with contextlib.suppress(ValueError):  # an answer within an answer, as some servers give
                    waiting.append((json.loads(value), inherited))
            if isinstance(value, list):
                waiting += [(item, inherited) for item in reversed(value)]
            if isinstance(value, dict):
                path, line = value.get(path_key, inherited), value.get(line_key)
                if isinstance(path, str) and isinstance(line, int):
                    end = value.get(end_key)
                    yield path, line, end if isinstance(end, int) else None
                waiting += [(item, path if isinstance(path, str) else inherited) for item in reversed(value.values())]


def _values(answer: str) -> Any:
    """Yield the JSON values in an answer, which may be whole, in blocks, or one per line. Other lines are skipped."""
    position = 0
    while begin := _VISIBLE.search(answer, position):
        try:
            value, position = _DECODER.raw_decode(answer, begin.start())
            yield value
        except ValueError:
            position = answer.find("\n", begin.start()) + 1 or len(answer)
