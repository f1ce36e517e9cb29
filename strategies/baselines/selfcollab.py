"""Self-collaboration: an analyst plans, a developer writes, a tester tries (ICL-strategies paper, Table 4). Python."""

from __future__ import annotations

from typing import Annotated

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Block, BlockKind, Execute, Generate, Prompt
from ctxbench.strategies.baselines import roles
from ctxbench.strategies.baselines.cocogen import DRAFT, NO_INSTRUCTIONS, python_only
from ctxbench.strategies.closing import closing
from ctxbench.strategies.icl import steps
from ctxbench.strategies.parameters import AtLeast
from ctxbench.strategies.registry import strategy

ROLE = 512
"""New tokens of the analyst's and the tester's answers, as in the release."""
SECONDS = 10.0
PLAIN_STEPS = 3


@strategy("base.selfcollab", kinds=(Kind.FUNCTION,))
def selfcollab(
    query: Query,
    repo: Repository,  # noqa: ARG001 - the release shows nothing of it
    generate: Generate,
    execute: Execute,
    *,
    rounds: Annotated[int, AtLeast(1)] = 2,
) -> Prompt:
    """Let the model plan, write, test and mend; nothing of the repository is shown.

    The tester's code runs in the sandbox for at most 10 seconds, with the developer's and nothing else. If it ends
    without an exception the developer's prompt stands as it is, else he is asked again with the report.

    A model that only continues code cannot play roles: it is shown the docstring's sentences as steps and the
    function's head, and nothing is run (flags ``plain_steps`` and ``no_instructions``).

    Args:
        query: the sample's query.
        repo: the repository; not looked at.
        generate: the model, asked once as analyst, and once as developer and as tester in all rounds but the last.
        execute: the sandbox.
        rounds: how often the developer writes at most.

    Raises:
        InputFault: if the query is not of Python.
    """
    python_only(query, "base.selfcollab")
    if not generate.instructs:
        plan_block = Block(kind=BlockKind.TEXT, text=steps.numbered_list(steps.plain(query, PLAIN_STEPS)))
        return Prompt(blocks=(plan_block, *closing(query, "clean")), flags=("plain_steps", NO_INSTRUCTIONS))
    flags: list[str] = []
    plan = generate(_chat_prompt(roles.opening(query, roles.ANALYST)), role="analyst", max_tokens=ROLE)
    history = [roles.opening(query, roles.DEVELOPER), roles.with_plan(plan)]
    trials = [roles.opening(query, roles.TESTER)]
    for _ in range(rounds - 1):
        # As many tokens as the harness asks for last, so that what was tested is what is scored.
        answer = generate(_chat_prompt(*history, roles.implement(query)), role="developer", max_tokens=DRAFT)
        code = roles.code_in(answer)
        name = _last_function(code)
        if not name:
            flags.append("empty_draft")
            break
        trials.append(roles.with_code(code))
        tests = generate(_chat_prompt(*trials), role="tester", max_tokens=ROLE)
        trials.append(tests)
        execution = execute(f"{code}\n{roles.code_in(tests)}\ncheck({name})\n", seconds=SECONDS)
        if execution.finished:
            flags.append("tests_passed")
            break
        flags.append("tests_failed")
        history += [code, roles.with_report(_message(execution.output))]
    return Prompt(blocks=_chat_prompt(*history, roles.implement(query)).blocks, flags=tuple(dict.fromkeys(flags)))


def _chat_prompt(*messages: str) -> Prompt:
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=roles.chat(*messages)),))


def _last_function(code: str) -> str:
    """Return the name of the last function at module level, ``main`` passed over; empty if there is none."""
    functions = PYTHON.outline(code).functions
    names = [function.name for function in functions if not function.types and not function.inside]
    return next((name for name in reversed(names) if name != "main"), names[-1] if names else "")


def _message(output: str) -> str:
    """Return what the release reports: the exception, without what was printed and where it was raised."""
    lines = [line for line in output.split("\n") if line.strip()]
    return lines[-1].strip() if lines else ""
