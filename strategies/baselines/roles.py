"""The messages of Self-collaboration's three roles, as its MIT-licensed release has them. Pure.

A role's history is one text here, its messages separated by empty lines: a strategy's prompt has no chat turns.
"""

from __future__ import annotations

import re

from ctxbench.bench.types import Query
from ctxbench.strategies.closing import target

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


def requirement(query: Query) -> str:
    """Return the requirement: signature and docstring."""
    return target(query, "clean")


def opening(query: Query, role: str) -> str:
    """Return the first message of a role: team, requirement, role."""
    requirement_text = requirement(query).replace("\n\n", "\n").strip(".")
    return f"{TEAM}\n The requirement from users is: \n{{'requirement':\n'{requirement_text}'\n}}\n\n{role}"


def with_plan(plan: str) -> str:
    """Return the message that hands the plan to the developer."""
    return f"The plan from the requirement analyst is as following:\n{plan.strip()}"


def with_report(message: str) -> str:
    """Return the message that hands the outcome of a test to the developer."""
    report = f"The compilation output of the preceding code is: {message}"
    return f"The report from the tester is as following:\n{report.strip()}"


def implement(query: Query) -> str:
    """Return the message that asks the developer for code."""
    quotes = "Use ```python to put the Python code in markdown quotes:"
    return f"Please implement the following code. {quotes}\n{requirement(query)}"


def with_code(code: str) -> str:
    """Return the message that hands code to the tester."""
    return f"The code provided by developer is as follows:\n{code}\n"


def chat(*messages: str) -> str:
    """Return a role's history as one text."""
    return "\n\n".join(messages)


def code_in(answer: str) -> str:
    """Return the code of an answer: its first fence, else all from its first ``def``; empty if there is none."""
    fenced = _FENCED.search(answer)
    if fenced is not None:
        return fenced["code"].strip("\n")
    at = answer.find("def ")
    return answer[at:].replace("```", "").strip() if at >= 0 else ""
