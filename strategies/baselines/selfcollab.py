"""Self-collaboration: an analyst plans, a developer writes, a tester tests (ICL-strategies paper, Table 4). Python."""

from __future__ import annotations

import re
from typing import Annotated

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Execute, Generate, Prompt, text_block
from ctxbench.strategies.baselines.cocogen import DRAFT, NO_INSTRUCTIONS
from ctxbench.strategies.icl.prompts import numbered_list, plain_steps
from ctxbench.strategies.layout import closing, target
from ctxbench.strategies.registry import strategy

ROLE = 512
"""Maximum new tokens of an analyst's or tester's answer, as in the release."""
SECONDS = 10.0
PLAIN_STEPS = 3
TEAM = (
    "There is a development team that includes a requirement analyst, a Python developer, and a tester. The "
    "team needs to develop programs that satisfy the requirement of the users. The different roles have "
    "different divisions of labor and need to cooperate with each others."
)
ANALYST = (
    "I want you to act as a requirement analyst on our development team. Given a user requirement, your task "
    "is to analyze, decompose, and develop a high-level and concise plan to guide our developer in writing "
    "programs. The plan should include the following information:\n"
    "1. Decompose the requirement into several easy-to-solve subproblems that can be more easily implemented "
    "by the developer.\n"
    "2. Develop a high-level plan that outlines the major steps of the program.\n"
    "Remember, you only need to provide the concise plan in json."
)
DEVELOPER = (
    "I want you to act as a Python developer on our development team. You will receive plans from a "
    "requirement analyst or test reports from a tester. Your job is split into two parts:\n"
    "1. If you receive a plan from a requirement analyst, write code in Python that meets the requirement "
    "following the plan. Ensure that the code you write is efficient, readable, and follows best practices.\n"
    "2. If you receive a test report from a tester, write the fixed or improved code based on the content of "
    "the report. Ensure that any changes made to the code do not introduce new bugs or negatively impact the "
    "performance of the code.\n"
    "Remember, you only need to provide the code in Python and do not need to explain the code you wrote."
)
TESTER = (
    "I want you to act as a tester on our development team. You will receive the code written by the "
    "developer, and your job is as follows:\n"
    "1. Write the test code that starts with \"def check(candidate):\" and candidate is a 'function' object.\n"
    '2. Call candidate with different inputs (up to five) that starts with "print", and do not write assert '
    "statements.\n"
    "Remember, you only need to provide the test code in Python and avoid using assert statements."
)
_FENCED = re.compile(r"```[^\n]*\n(?P<code>.*?)```", re.S)


@strategy("base.selfcollab", kinds=(Kind.FUNCTION,), languages=(PYTHON,))
def selfcollab(
    query: Query,
    repo: Repository,  # noqa: ARG001 - the release shows nothing of it
    generate: Generate,
    execute: Execute,
    *,
    rounds: Annotated[int, AtLeast(1)] = 2,
) -> Prompt:
    """Let the model plan, write, test and correct the function, without showing the repository.

    The developer's and the tester's code run together in the sandbox for at most 10 seconds. If they end without an
    exception, the developer's prompt stays as it is. Otherwise, the report is added and the developer answers again.

    A model that only continues code cannot play roles: it gets the docstring's sentences as steps and the function's
    head, and nothing runs (flags ``plain_steps`` and ``no_instructions``).

    Args:
        generate: the model, asked once as analyst, and in all rounds but the last once as developer and once as tester.
        rounds: maximum number of versions that the developer writes.
    """
    if not generate.instructs:
        plan_block = text_block(numbered_list(plain_steps(query, PLAIN_STEPS)))
        return Prompt(blocks=(plan_block, *closing(query, "clean")), flags=("plain_steps", NO_INSTRUCTIONS))
    flags: list[str] = []
    plan = generate(_chat(_opening(query, ANALYST)), role="analyst", max_tokens=ROLE)
    history = [_opening(query, DEVELOPER), f"The plan from the requirement analyst is as following:\n{plan.strip()}"]
    quotes = "Use ```python to put the Python code in markdown quotes:"
    implement = f"Please implement the following code. {quotes}\n{target(query, 'clean')}"
    trials = [_opening(query, TESTER)]
    for _ in range(rounds - 1):
        # The harness uses the same limit for its last call, so the scored code equals the tested code.
        answer = generate(_chat(*history, implement), role="developer", max_tokens=DRAFT)
        code = code_in(answer)
        name = _last_function(code)
        if not name:
            flags.append("empty_draft")
            break
        trials.append(f"The code provided by developer is as follows:\n{code}\n")
        tests = generate(_chat(*trials), role="tester", max_tokens=ROLE)
        trials.append(tests)
        execution = execute(f"{code}\n{code_in(tests)}\ncheck({name})\n", seconds=SECONDS)
        if execution.finished:
            flags.append("tests_passed")
            break
        flags.append("tests_failed")
        report = f"The compilation output of the preceding code is: {_message(execution.output)}"
        history += [code, f"The report from the tester is as following:\n{report.strip()}"]
    return _chat(*history, implement).flagged(*flags)


def _opening(query: Query, role: str) -> str:
    requirement = target(query, "clean").replace("\n\n", "\n").strip(".")
    return f"{TEAM}\n The requirement from users is: \n{{'requirement':\n'{requirement}'\n}}\n\n{role}"


def _chat(*messages: str) -> Prompt:
    return Prompt(blocks=(text_block("\n\n".join(messages)),))


def _last_function(code: str) -> str:
    functions = PYTHON.outline(code).functions
    names = [function.name for function in functions if not function.types and not function.inside]
    return next((name for name in reversed(names) if name != "main"), names[-1] if names else "")


def _message(output: str) -> str:
    """Return the last line of the output: the exception without its traceback, as in the release."""
    lines = [line for line in output.split("\n") if line.strip()]
    return lines[-1].strip() if lines else ""


def code_in(answer: str) -> str:
    """Return an answer's code: its first fenced block, or all text from the first ``def``; empty without either."""
    fenced = _FENCED.search(answer)
    if fenced is not None:
        return fenced["code"].strip("\n")
    at = answer.find("def ")
    return answer[at:].replace("```", "").strip() if at >= 0 else ""
