"""The cost of a run compared with a bare loop that sends the same requests and discards the answers.

The server is a separate process that answers after a fixed time. Both keep 64 requests in flight. Runs are timed with
and without context gain, which is a second model's work.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Generator
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.runner import run
from ctxbench.harness.store import open_store
from ctxbench.harness.store.facts import prompt_texts
from ctxbench.strategies.api import Prompt
from tests.helpers.sets import make_set

REQUESTS, AT_ONCE, ROUNDS = 2048, 64, 2
DELAYS = (0.05, 1.0)
"""Seconds per answer: almost no model, and a model that writes 64 lines at once at 1,500 tokens per second."""
_REPLY = {
    "model": "tiny",
    "choices": [{"index": 0, "text": "apply_tax(cart_1, rate)", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 9},
}


class Free(Scripted):
    """A generator whose bits cost no time."""

    def __init__(self) -> None:
        super().__init__(lambda _: "", version="1")

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return one bit for each text."""
        return [1.0] * len(texts)


@dataclass(frozen=True, slots=True)
class Cost:
    """The seconds of one measurement."""

    wall: float
    processor: float
    """Processor seconds of this process and its children, without the server."""


def main() -> None:
    logging.disable(logging.INFO)
    for delay in DELAYS:
        with tempfile.TemporaryDirectory() as name, _server(delay) as url:
            folder = Path(name)
            home = Home(folder)
            sample_set = make_set(home, repos=REQUESTS // 32, per_repo=32)
            bodies = _bodies(home, sample_set, url)
            # In turns, so that a busy moment of the machine affects all of them.
            rounds = [
                (
                    _timed(_bare, url, bodies),
                    _timed(_run, home, sample_set, folder / f"free{number}.db", url, False),
                    _timed(_run, home, sample_set, folder / f"priced{number}.db", url, True),
                )
                for number in range(ROUNDS)
            ]
        for line in _lines(delay, rounds):
            print(line, flush=True)


def _lines(delay: float, rounds: Sequence[tuple[Cost, ...]]) -> Iterator[str]:
    names = ("a bare loop", "a run without context gain", "a run with context gain")
    yield f"{REQUESTS} requests of {delay:g} s, {AT_ONCE} in flight, {ROUNDS} times:"
    for name, costs in zip(names, zip(*rounds, strict=True), strict=True):
        ratios = sorted(cost.wall / bare.wall for cost, (bare, *_) in zip(costs, rounds, strict=True))
        wall = statistics.median(cost.wall for cost in costs)
        spent = statistics.median(cost.processor for cost in costs) / REQUESTS * 1e3
        yield (
            f"  {name:27} {wall:6.2f} s, {statistics.median(ratios):.2f} of the bare loop's "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}), {spent:.1f} ms of processor time per request"
        )


def _timed(work: Callable[..., None], *arguments: object) -> Cost:
    begin, before = time.perf_counter(), _processor()
    work(*arguments)
    return Cost(time.perf_counter() - begin, _processor() - before)


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _run(home: Home, sample_set: SampleSet, database: Path, url: str, priced: bool) -> None:
    def resolve(spec: str) -> Generator:
        return Free() if spec == "incontext" and not priced else base.resolve(spec)

    with open_store(f"sqlite:///{database}") as store:
        # The server returns the same answer and token count for every prompt.
        generator = f"openai:tiny@{url}(concurrency={AT_ONCE}, whole=off)"
        [summary] = run(home, store, sample_set, strategies=["lc.infile"], generator=generator, resolve=resolve)
    if summary.scored != REQUESTS:
        raise RuntimeError(f"{summary.scored} samples scored: {summary.faults[:1]}")


def _bodies(home: Home, sample_set: SampleSet, url: str) -> list[bytes]:
    """Return the requests of a run, rebuilt from its stored answers."""
    database = home.root / "bodies.db"
    _run(home, sample_set, database, url, False)
    with open_store(f"sqlite:///{database}") as store, store.reading() as connection:
        digests = connection.scalars(text("SELECT digest FROM prompt_fact")).all()
        prompts = [prompt for _, prompt in prompt_texts(connection, digests)]
    common: dict[str, Any] = {"model": "tiny", "max_tokens": 128, "temperature": 0.0, "stop": ["\n"]}
    return [json.dumps({**common, "prompt": prompt}, ensure_ascii=False).encode() for prompt in prompts]


def _bare(url: str, bodies: Sequence[bytes]) -> None:
    import httpx

    bodies_left = iter(bodies)
    lock = threading.Lock()
    answers: list[str] = []

    def worker() -> None:
        while True:
            with lock:
                body = next(bodies_left, None)
            if body is None:
                return
            answers.append(http.post(f"{url}/completions", content=body).json()["choices"][0]["text"])

    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    with httpx.Client(limits=limits, timeout=60, headers={"Content-Type": "application/json"}) as http:
        threads = [threading.Thread(target=worker) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(answers) != REQUESTS:
        raise RuntimeError(f"{len(answers)} answers")


@contextlib.contextmanager
def _server(delay: float) -> Iterator[str]:
    """Run a server in a separate process, and yield its address."""
    command = [sys.executable, "-m", "benchmarks.overhead", str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


async def _serve(delay: float) -> None:
    data = json.dumps(_REPLY).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
                await asyncio.sleep(delay)
                writer.write(reply)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_serve(float(sys.argv[1])))
    else:
        main()
