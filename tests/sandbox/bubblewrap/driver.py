"""A program that opens boxes under bubblewrap as the current user, and prints their results as JSON.

It imports only `ctxbench.sandbox` and its conformance list, so that a plain user can run it with any interpreter.
"""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ctxbench.sandbox.bubblewrap import BubblewrapSandbox
from ctxbench.sandbox.bubblewrap.box import BubblewrapBox, BubblewrapLauncher
from ctxbench.sandbox.bubblewrap.image import PYTHON, layout, make
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import Command, Environment, Job, Limits
from tests.sandbox.conformance import check


def quiet(_: str) -> None:
    """Discard the report."""


def launcher(asked: dict[str, Any]) -> BubblewrapLauncher:
    environment = Environment(name="raw", **asked.get("environment", {}))
    limits = Limits(**asked.get("limits", {}))
    image = make(environment, Path(asked["cache"]), quiet)
    command = (PYTHON, "-s", "-P", "-B", "-c", asked["raw"])
    return BubblewrapLauncher(image.digest, layout(environment, image, limits), limits, command)


def listen(box: BubblewrapBox, seconds: float) -> str:
    said = b""
    deadline = time.monotonic() + seconds
    try:
        while True:
            said += box.receive(deadline)
    except SandboxError as error:
        if "in time" in error.what:
            raise
        return said.decode("utf-8", "replace")


def raw(asked: dict[str, Any]) -> dict[str, Any]:
    box = launcher(asked).start()
    try:
        said = listen(box, 60)
    finally:
        why = box.end()
    return {"said": said, "why": why}


def hold(asked: dict[str, Any]) -> dict[str, Any]:
    """Start boxes and wait to be killed."""
    starter = launcher(asked)
    if asked["hold"] == "storm":
        print("storm", flush=True)
        kept = [starter.start() for _ in range(40)]
        time.sleep(600)
        del kept
    boxes = [starter.start() for _ in range(asked["hold"])]
    for box in boxes:
        box.receive(time.monotonic() + 60)
    print(json.dumps({"started": len(boxes)}), flush=True)
    time.sleep(600)
    return {}


def jobs(asked: dict[str, Any]) -> dict[str, Any]:
    environment = Environment(name="jobs", **asked.get("environment", {}))
    sandbox = BubblewrapSandbox(Path(asked["cache"]))
    digest = sandbox.prepare(environment, quiet)
    with sandbox.open(environment, limits=Limits(**asked.get("limits", {})), reuse=asked.get("reuse", 1)) as pool:
        assert pool.image == digest
        outcomes = [pool.run(Job(action=Command(argv=tuple(argv)), seconds=30)) for argv in asked["jobs"]]
    return {"outcomes": [dataclasses.asdict(outcome) for outcome in outcomes], "user": os.geteuid()}


def conform(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the checks that every back end must pass."""
    return {"findings": [dataclasses.asdict(finding) for finding in check(BubblewrapSandbox(Path(asked["cache"])))]}


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    if "conform" in asked:
        print(json.dumps(conform(asked)), flush=True)
        return
    way = hold if "hold" in asked else jobs if "jobs" in asked else raw
    print(json.dumps(way(asked)), flush=True)


if __name__ == "__main__":
    main()
