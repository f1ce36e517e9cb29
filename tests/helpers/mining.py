"""A tiny repository to mine, and a sandbox that runs its tests in this process, for trusted tests only."""

import ast
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ctxbench.bench.judging import python as guest
from ctxbench.bench.judging.python.judging import Canary
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.bench.judging import told
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.repositories import manifest_of
from tests.helpers.trees import write_tree

SHOP = '''
"""A shop."""

import math

RATE = 2


def double(x):
    """Return twice x."""
    return x * RATE


def root(x):
    """Return the root of x."""
    # Of a number.
    return math.sqrt(x)


def flaky(x):
    """Return x the first time only."""
    return x if SEEN.append(x) or len(SEEN) % 2 else None


def nothing(x):
    """Return None, as an empty body does."""
    return None


def broken(x):
    """Work in the whole suite only."""
    return x + 1


def unused(x):
    """Never be called."""
    return x + 3


def undocumented(x):
    return x


SEEN = []


class Cart:
    """A cart."""

    def __init__(self):
        self.items = []

    def put(self, item):
        """Put an item into the cart."""
        self.items.append(item)
        return len(self.items)
'''
TESTS = {
    "test_double": "assert double(2) == 4",
    "test_root": "assert root(9) == 3",
    "test_flaky": "assert flaky(3) == 3",
    "test_nothing": "assert nothing(3) is None",
    "test_broken": "assert broken(3) == 5",
    "test_put": "assert Cart().put(1) == 1",
}
TEST_FILE = "tests/test_shop.py"
FILES = {
    "shop.py": SHOP.lstrip("\n"),
    TEST_FILE: "from shop import *\n"
    + "".join(f"\n\ndef {name}():\n    {body}\n" for name, body in TESTS.items() if name != "test_broken"),
}


def local_manifest(folder: Path, files: Mapping[str, str] = FILES, *, name: str = "demo") -> RepoManifest:
    tree = write_tree(folder / f"{name}-tree", files)
    source = f'[[source]]\nkind = "local"\npath = "{tree}"\n[tests]\npaths = ["tests"]\n'
    return manifest_of(folder, source, name=name, version="1")


def judging(sandbox: FakeSandbox) -> list[Job]:
    """Return the jobs that ran tests on a function, without those that compile or cover."""
    return [job for job in sandbox.jobs if isinstance(job.action, Call) and job.action.function == guest.RUN]


def in_process(
    *,
    more: Callable[[Job], Outcome | None] = lambda _: None,
    tests: Mapping[str, str] = TESTS,
    shop: str = FILES["shop.py"],
    imports: Mapping[str, str] = MappingProxyType({}),
) -> FakeSandbox:
    """Return a sandbox that answers as a real one for the repository.

    Args:
        more: called first.
        tests: name of a test, ``test_FUNCTION`` or ``test_FUNCTION__MORE`` -> its body.
        shop: the file ``shop.py``.
        imports: function that the import of a test module runs -> that module, empty for a conftest.
    """
    flaky: list[Any] = []

    def answer(job: Job) -> Outcome:
        first = more(job)
        assert isinstance(job.action, Call)
        if first is not None:
            return first
        arguments = job.action.arguments
        result: dict[str, Any] = {}
        if job.action.function.endswith(":cover"):
            result = covered(tests, shop, imports)
        elif job.action.function.endswith(":run_tests"):
            result = _judged(job, arguments, flaky, tests)
        return Outcome(ended=Ended.EXITED, exit_code=0, result=json.loads(json.dumps(result)), seconds=0.1)

    return FakeSandbox(answer)


def covered(tests: Mapping[str, str], shop: str, imports: Mapping[str, str]) -> dict[str, Any]:
    """Return the coverage of a repository. Each test runs the function in its name."""
    spans = {
        node.name: range(node.body[0].lineno + 1, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(shop))
        if isinstance(node, ast.FunctionDef)
    }
    lines: dict[str, list[int]] = {}
    for position, test in enumerate(tests):
        for line in spans.get(test.removeprefix("test_").partition("__")[0], ()):
            lines.setdefault(str(line), []).append(position)
    held = {line: number for number, line in enumerate(lines)}
    modules = ["", *sorted(set(imports.values()) - {""})]
    return {
        "exit": 0,
        "tests": [[f"{TEST_FILE}::{name}", "passed", 0.01] for name in tests],
        "broken": [],
        "sets": [",".join(map(str, positions)) for positions in lines.values()],
        "lines": {"shop.py": held},
        "modules": modules,
        "imports": {
            "shop.py": {str(line): [modules.index(module)] for name, module in imports.items() for line in spans[name]}
        },
    }


def _judged(job: Job, arguments: Mapping[str, Any], seen: list[Any], tests: Mapping[str, str]) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "shop"}
    try:
        exec(compile(job.files["shop.py"], "shop.py", "exec"), space)
    except Exception as error:  # noqa: BLE001 - as pytest does
        broken = [["broken", TEST_FILE, str(error)], ["collected", []], ["loaded", False], ["end", 2]]
        return told.result(broken, nonce=arguments["nonce"], exit=2)
    space["SEEN"] = seen
    events: list[list[Any]] = [["collected", list(range(len(arguments["tests"])))]]
    for position, test in enumerate(arguments["tests"]):
        try:
            exec(tests[test.partition("::")[2]], space)
            events += told.phases(position)
        except Exception as error:  # noqa: BLE001 - as pytest does
            events += told.phases(position, "failed", str(error))
    for number, canary in enumerate(arguments["canaries"], 1):
        events += told.canary(number, Canary(**canary))
    events += [["loaded", True], ["end", 1]]
    return told.result(events, nonce=arguments["nonce"])
