"""The split oracle in two plain processes: verdicts, exceptions, and what no candidate can do to a check.

The confinement of the two is the guest's and is tested with real boxes, the forgeries against it as well.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.sandbox.guest import oracle

_TESTER = """
import json, socket, sys
from sandbox.guest import oracle
class Stage:
    def start(self, function, arguments):
        assert (function, arguments) == ("sandbox.guest.oracle:serve", {})
        return socket.socket(fileno=int(sys.argv[1]))
sys.path.insert(0, sys.argv[2])
print(json.dumps(oracle.run(json.load(sys.stdin), Stage())))
"""
_CANDIDATE = (
    "import socket, sys; from sandbox.guest import oracle; oracle.serve(socket.socket(fileno=int(sys.argv[1])))"
)
_ROOT = str(Path(oracle.__file__).parents[3])


def judge(
    program: str, check: str, *, entry: str = "f", work: str = "/", flags: tuple[str, ...] = ()
) -> dict[str, object]:
    """Run a check against a program in two processes of their own."""
    ours, theirs = socket.socketpair()
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "PYTHONPATH": _ROOT}
    command = [sys.executable, "-P", "-c", _CANDIDATE, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, **quiet) as candidate:
        theirs.close()
        tester = subprocess.run(
            [sys.executable, "-P", *flags, "-c", _TESTER, str(ours.fileno()), work],
            input=json.dumps({"program": program, "entry": entry, "check": check}),
            pass_fds=[ours.fileno()],
            env=environment,
            cwd=work,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        ours.close()
        candidate.wait(timeout=60)
    assert tester.stderr == ""
    return json.loads(tester.stdout)  # type: ignore[no-any-return]


def passes(program: str, check: str, **how: object) -> bool:
    return judge(program, "def check(candidate):\n" + check, **how)["passed"] is True  # type: ignore[arg-type]


def test_a_right_function_passes_and_a_wrong_one_fails_with_the_line():
    check = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(n=3) == 9\n"
    assert judge("def f(n):\n    return n * n\n", check) == {"passed": True, "detail": ""}
    wrong = judge("def f(n):\n    return 4\n", check)
    assert wrong == {
        "passed": False,
        "detail": "line 3 of the check: assert candidate(n=3) == 9: AssertionError",
    }


def test_exceptions_arrive_as_their_nearest_builtin_class():
    program = """
class Odd(KeyError):
    pass
class Mine(Exception):
    pass
def f(what):
    if what == "own":
        raise Odd("gone")
    if what == "exact":
        raise OSError(2, "nothing", "there")
    if what == "unicode":
        b"\\xff".decode()
    if what == "mine":
        raise Mine(object())
    raise ValueError("bad " + what)
"""
    check = """
    def raised(what):
        try:
            candidate(what)
        except Exception as error:
            return error
    assert type(raised("own")) is KeyError
    assert (raised("exact").errno, raised("exact").strerror) == (2, "nothing")
    assert type(raised("exact")) is FileNotFoundError
    assert isinstance(raised("unicode"), UnicodeDecodeError)
    assert type(raised("mine")) is Exception
    assert str(raised("x")) == "bad x"
"""
    assert passes(program, check)


def test_an_exception_that_the_check_does_not_expect_is_a_failure():
    check = "    assert candidate() == 1\n"
    got = judge("def f():\n    raise ValueError('n' * 5000 + chr(27))\n", "def check(candidate):\n" + check)
    assert got["passed"] is False
    assert "ValueError: nnn" in str(got["detail"])
    assert len(str(got["detail"])) < 2000


@pytest.mark.parametrize(
    "stop", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "type('S', (StopIteration,), {})"]
)
def test_no_candidate_ends_a_loop_of_the_check_from_inside(stop):
    program = f"def f(n):\n    raise {stop}()\n"
    check = "    assert all(map(lambda n: candidate(n) == n, range(3)))\n"
    assert not passes(program, check)


@pytest.mark.parametrize(
    "program",
    [
        "import os\ndef f(n):\n    os._exit(0)\n",
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import os\ndef f(n):\n    os.close(int(__import__('sys').argv[1]))\n",
        "import os, sys\ndef f(n):\n    os.write(int(sys.argv[1]), b'\\0\\0\\0\\1N' * 9)\n",
        "import os, sys\ndef f(n):\n    os.write(int(sys.argv[1]), b'\\xff' * 9)\n",
        "def f(n):\n    return object()\n",
        "def f(n):\n    raise SystemExit(0)\n",
    ],
)
def test_a_check_that_catches_all_it_can_does_not_take_a_broken_line_for_an_answer(program):
    check = """
    for _ in range(3):
        try:
            assert candidate(1) == 2
        except SystemExit:
            raise
        except BaseException:
            pass
"""
    assert not passes(program, check)


@pytest.mark.slow
def test_always_equal_values_never_reach_the_check():
    program = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
class Number(int):
    __eq__ = Yes.__eq__
    __hash__ = int.__hash__
def f(n):
    return [Yes(), Number(1), (Number(1),)][n]
"""
    for case in range(3):
        got = judge(program, f"def check(candidate):\n    assert candidate({case}) == 7\n")
        assert got["passed"] is False
        assert "cannot be compared from outside" in str(got["detail"])


def test_a_program_is_a_module_and_not_main():
    program = """
from dataclasses import dataclass
@dataclass
class P:
    x: "int" = 1
def f():
    return (P().x, __name__)
if __name__ == "__main__":
    raise SystemExit(1)
"""
    assert passes(program, "    assert candidate() == (1, 'candidate') and candidate.__name__ == 'f'\n")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("def g(): pass\n", "defines no function f"),
        ("f = 3\n", "defines no function f"),
        ("def f(:\n", "SyntaxError"),
        ("raise RuntimeError('no')\n", "RuntimeError: no"),
    ],
)
def test_a_program_that_does_not_load_fails_and_says_why(program, why):
    got = judge(program, "def check(candidate):\n    pass\n")
    assert got["passed"] is False
    assert why in str(got["detail"])


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("def test(candidate):\n    pass\n", "defines no function check"),
        ("def check(candidate):\n    candidate(lambda: 1)\n", "the check passes a value of type function"),
        ("def check(candidate):\n    import sys\n    sys.exit(0)\n", "SystemExit"),
        ("def check(candidate)\n", "SyntaxError"),
    ],
)
def test_a_check_that_is_at_fault_is_no_pass(check, why):
    got = judge("def f(x):\n    return 1\n", check)
    assert got["passed"] is False
    assert why in str(got["detail"])


def test_assertions_of_a_check_run_also_where_python_optimises():
    assert not passes("def f():\n    return 1\n", "    assert candidate() == 2\n", flags=("-OO",))


def test_the_check_imports_nothing_that_the_candidate_can_write(tmp_path):
    (tmp_path / "colorsys.py").write_text("raise SystemExit(0)\n")
    check = "    import colorsys\n    assert colorsys.rgb_to_hls(0, 0, 0) == (0, 0, 0) and candidate() == 1\n"
    assert passes("def f():\n    return 1\n", check, work=str(tmp_path))


def test_what_a_check_prints_goes_nowhere():
    check = "def check(candidate):\n    print('the answer is', candidate())\n"
    assert judge("def f():\n    print('mine')\n    return 4\n", check) == {"passed": True, "detail": ""}


def test_iterators_and_big_values_can_be_checked():
    program = "def f(n):\n    return (x * x for x in range(n))\n"
    assert passes(program, "    assert list(candidate(50_000)) == [x * x for x in range(50_000)]\n")


def test_arguments_go_by_value():
    assert passes(
        "def f(n):\n    n.append(1)\n    return n\n", "    x = []\n    assert candidate(x) == [1] and x == []\n"
    )
