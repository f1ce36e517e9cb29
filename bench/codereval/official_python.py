"""CoderEval's official protocol for Python: a changed copy of a test file, and its exit code.

A test file is a copy of the source file with a check at its end. In it the **last** function of the name, or of
the name with an underscore before it, is replaced; the changed copy is run beside the original, and the exit code 0
means passed. That is weaker than the verdicts of other sets: a completion that ends the process with 0 passes.
`bench.codereval.protocol.REMARK` says so wherever the numbers are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ctxbench.bench.codereval.protocol import PYTHON, PYTHON_RUNNER, judgement
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import asts
from ctxbench.bench.testing.lines import indentation
from ctxbench.bench.testing.python import blank
from ctxbench.bench.testing.types import Judgement
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import MIB, Command, Ended, Environment, Job, Limits, Outcome

SECONDS = 30.0
LIMITS = Limits(memory=2048 * MIB, disk=256 * MIB, file_bytes=256 * MIB, processes=128, open_files=1024, cpus=2.0)
_VERSION = "1"
"""Of the protocol as written here; a part of what verdicts are kept under."""
_ENDS = re.compile(r"\r\n|\r|\n")
_CURE = "import the set again with --image"


def replaced(source: str, name: str, text: str) -> str:
    """Return a test file with its last function of a name replaced by a completion.

    Args:
        source: the file.
        name: the function's; one that is called so with an underscore before it counts too.
        text: the completion, taken as it is. If its first line is indented less than the function, all of it is
            indented by the difference.

    Raises:
        InputFault: if the file has no such function, or is no Python.
    """
    lines = _ENDS.split(source)
    first, end = _span(source, name)
    own = indentation(lines[first])
    put = _ENDS.split(text.rstrip("\r\n"))
    missing = own[: max(0, len(own) - len(indentation(put[0])))]
    return "\n".join([*lines[:first], *(missing + line if line.strip() else line for line in put), *lines[end:]])


def _span(source: str, name: str) -> tuple[int, int]:
    """Return the lines of the last function of a name, decorators left out."""
    # Bytes that are no text, and a byte-order mark, are nothing to a parser of text; no line moves.
    plain = source.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    tree = asts.parse(plain)
    if tree is None:
        raise InputFault("the test file is no Python", cure="leave its task out")
    spans = [
        (node.lineno - 1, node.end_lineno or node.lineno)
        for node in asts.all_functions(tree)
        if node.name in (name, f"_{name}")
    ]
    if not spans:
        raise InputFault(f"the test file has no function {name!r}", cure="leave its task out")
    return max(spans)


class OfficialPythonSuite:
    """The `Suite` of a Python repository of the official image."""

    def __init__(self, image: str, python: str, tree: Mapping[str, bytes]) -> None:
        """Take a repository.

        Args:
            image: the image's id.
            python: its interpreter.
            tree: path below `PYTHON` -> content.
        """
        self.environment = Environment(
            name=PYTHON_RUNNER,
            image=image,
            folder=PYTHON,
            tree=tree,
            variables=(("CTXBENCH_PROTOCOL", f"{PYTHON_RUNNER}-{_VERSION} {python}"),),
        )
        self.limits = LIMITS
        self._python = python

    def blank(self, sample: Sample) -> str:
        """Return the function with its docstring and no body."""
        return blank(sample)

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that runs the reference's test file with `text` in it.

        Raises:
            InputFault: if the test file is not there or has no such function, or the text cannot be written.
        """
        del secret  # The protocol has no use for one.
        (path,) = reference.tests
        if path not in self.environment.tree:
            raise InputFault(f"the image's files hold no test {path!r}", where=sample.id, cure=_CURE)
        source = self.environment.tree[path].decode("utf-8", "surrogateescape")
        name = (sample.name or "").rpartition(".")[2]
        try:
            changed = replaced(source, name, text).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise InputFault(f"cannot be written as UTF-8 ({error.reason})", where=sample.id) from None
        # The harness numbers the samples of a task; ours come one by one.
        beside = f"{path.removesuffix('.py')}0.py"
        argv = (self._python, f"{PYTHON}/{beside}")
        return Job(action=Command(argv=argv), files={beside: changed}, seconds=SECONDS)

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return the judgement: passed if the exit code is 0, whatever else happened."""
        del reference, secret
        return judgement(outcome, passed=outcome.ended is Ended.EXITED and outcome.exit_code == 0)
