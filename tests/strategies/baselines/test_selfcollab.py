"""The complete messages of Self-collaboration's roles, and when they are sent."""

import pytest

from ctxbench.strategies.api import Execution
from tests.strategies.baselines.shop import Sandbox, made
from tests.strategies.icl.shop import Model

TEAM = '''\
There is a development team that includes a requirement analyst, a Python developer, and a tester. The team needs to \
develop programs that satisfy the requirement of the users. The different roles have different divisions of labor and \
need to cooperate with each others.
 The requirement from users is: \n\
{'requirement':
'def checkout(store, user, rate):
    """
    Take the money of a user.
    Add the tax to the cart.
    """'
}

'''
ANALYST = f"""\
{TEAM}I want you to act as a requirement analyst on our development team. Given a user requirement, your task is to \
analyze, decompose, and develop a high-level and concise plan to guide our developer in writing programs. The plan \
should include the following information:
1. Decompose the requirement into several easy-to-solve subproblems that can be more easily implemented by the \
developer.
2. Develop a high-level plan that outlines the major steps of the program.
Remember, you only need to provide the concise plan in json."""
DEVELOPER = f"""\
{TEAM}I want you to act as a Python developer on our development team. You will receive plans from a requirement \
analyst or test reports from a tester. Your job is split into two parts:
1. If you receive a plan from a requirement analyst, write code in Python that meets the requirement following the \
plan. Ensure that the code you write is efficient, readable, and follows best practices.
2. If you receive a test report from a tester, write the fixed or improved code based on the content of the report. \
Ensure that any changes made to the code do not introduce new bugs or negatively impact the performance of the code.
Remember, you only need to provide the code in Python and do not need to explain the code you wrote.

The plan from the requirement analyst is as following:
{{"steps": ["load", "tax"]}}
"""
IMPLEMENT = '''
Please implement the following code. Use ```python to put the Python code in markdown quotes:
def checkout(store, user, rate):
    """
    Take the money of a user.

    Add the tax to the cart.
    """'''
TESTER = f"""\
{TEAM}I want you to act as a tester on our development team. You will receive the code written by the developer, and \
your job is as follows:
1. Write the test code that starts with "def check(candidate):" and candidate is a 'function' object.
2. Call candidate with different inputs (up to five) that starts with "print", and do not write assert statements.
Remember, you only need to provide the test code in Python and avoid using assert statements.

The code provided by developer is as follows:
def checkout(store, user, rate):
    return cart
"""
REPORT = """
def checkout(store, user, rate):
    return cart

The report from the tester is as following:
The compilation output of the preceding code is: NameError: name 'cart' is not defined
"""
PLAN = ' {"steps": ["load", "tax"]}\n'
CODE = "```python\ndef checkout(store, user, rate):\n    return cart\n```"
TESTS = "Here it is:\n```python\ndef check(candidate):\n    print(candidate({}, 1, 2))\n```\n"
PROGRAM = """\
def checkout(store, user, rate):
    return cart
def check(candidate):
    print(candidate({}, 1, 2))
check(checkout)
"""
RAISED = Execution(
    finished=False, output="1\nTraceback (most recent call last):\nNameError: name 'cart' is not defined"
)


def test_the_report_goes_back_to_the_developer() -> None:
    model, sandbox = Model(PLAN, CODE, TESTS), Sandbox(RAISED)
    prompt = made("base.selfcollab", model=model, sandbox=sandbox)
    assert model.asked == [
        ("analyst", 512, ANALYST),
        ("developer", 1024, f"{DEVELOPER}{IMPLEMENT}"),
        ("tester", 512, TESTER),
    ]
    assert sandbox.ran == [(PROGRAM, 10.0)]
    assert prompt.text == f"{DEVELOPER}{REPORT}{IMPLEMENT}" and prompt.flags == ("tests_failed",)


def test_code_that_runs_is_requested_again_with_the_same_prompt() -> None:
    prompt = made(
        "base.selfcollab", model=Model(PLAN, CODE, TESTS), sandbox=Sandbox(Execution(finished=True, output="1"))
    )
    assert prompt.text == f"{DEVELOPER}{IMPLEMENT}" and prompt.flags == ("tests_passed",)


def test_more_rounds_keep_the_whole_history() -> None:
    model, sandbox = Model(PLAN, CODE, TESTS, CODE, TESTS), Sandbox(RAISED, RAISED)
    prompt = made("base.selfcollab(rounds=3)", model=model, sandbox=sandbox)
    assert prompt.text == f"{DEVELOPER}{REPORT}{REPORT}{IMPLEMENT}"
    assert model.asked[-1] == (
        "tester",
        512,
        f"{TESTER}\n\n{TESTS}\n\n{TESTER.removeprefix(TESTER.partition('The code')[0])}",
    )
    assert made("base.selfcollab(rounds=1)", model=Model(PLAN)).text == f"{DEVELOPER}{IMPLEMENT}"


def test_an_answer_without_a_function_is_not_tested() -> None:
    sandbox = Sandbox()
    prompt = made("base.selfcollab", model=Model(PLAN, "I cannot."), sandbox=sandbox)
    assert prompt.flags == ("empty_draft",) and prompt.text == f"{DEVELOPER}{IMPLEMENT}" and not sandbox.ran


@pytest.mark.parametrize(
    ("code", "called"),
    [
        ("def helper():\n    pass\n\ndef checkout():\n    def inner():\n        pass\n", "check(checkout)"),
        ("def checkout():\n    pass\ndef main():\n    pass\n", "check(checkout)"),
        ("def main():\n    pass\n", "check(main)"),
        ("def checkout():\n    pass\nclass A:\n    def method(self):\n        pass\n", "check(checkout)"),
    ],
)
def test_the_last_function_is_the_candidate(code: str, called: str) -> None:
    sandbox = Sandbox(RAISED)
    made("base.selfcollab", model=Model(PLAN, f"```\n{code}```", TESTS), sandbox=sandbox)
    assert sandbox.ran[0][0].endswith(f"\n{called}\n")


def test_a_test_without_a_fence_starts_at_its_function() -> None:
    sandbox = Sandbox(Execution(finished=False, output=""))
    made("base.selfcollab", model=Model(PLAN, CODE, "Sure! def check(candidate):\n    print(1)"), sandbox=sandbox)
    assert "\ndef check(candidate):\n    print(1)\ncheck(checkout)\n" in sandbox.ran[0][0]


def test_a_model_without_instructions_gets_the_docstring_as_steps() -> None:
    prompt = made("base.selfcollab", model=Model(instructs=False))
    assert prompt.flags == ("plain_steps", "no_instructions")
    assert prompt.text == (
        "Here are the steps to implement it:\n1. Take the money of a user.\n2. Add the tax to the cart.\n\n"
        f"### Function docstring:\n{IMPLEMENT.partition('quotes:')[2].lstrip()}"
    )
