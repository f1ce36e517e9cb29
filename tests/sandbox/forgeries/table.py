"""What a wrong function may try in order to be called right, and what the verdict on it must say.

Each runs in the process that runs the tests, as any completion does.
"""

from __future__ import annotations

from tests.sandbox.forgeries import steal
from tests.sandbox.forgeries.expected import EXPECTED
from tests.sandbox.forgeries.forgery import BROKE, EARLY, FAILED, TAMPERED, Forgery
from tests.sandbox.forgeries.forgery import tries as _tries
from tests.sandbox.forgeries.imports import IMPORTS
from tests.sandbox.forgeries.informed import INFORMED
from tests.sandbox.forgeries.memory import MEMORY
from tests.sandbox.forgeries.selective import SELECTIVE
from tests.sandbox.forgeries.shop import wrong
from tests.sandbox.forgeries.values import VALUES

ENDING = (
    _tries("os._exit(0) when called", EARLY, called="import os; os._exit(0)"),
    _tries("os._exit(1) when called", EARLY, called="import os; os._exit(1)"),
    _tries("os._exit(0) at import", EARLY, imported="import os; os._exit(0)"),
    _tries("sys.exit(0) when called", FAILED, EARLY, called="import sys; sys.exit(0)"),
    _tries("sys.exit(1) at import", BROKE, EARLY, imported="import sys; sys.exit(1)"),
    _tries("pytest.exit(1) when called", FAILED, EARLY, called="import pytest; pytest.exit('x', returncode=1)"),
    _tries("pytest.exit(1) at import", BROKE, EARLY, imported="import pytest; pytest.exit('x', returncode=1)"),
    _tries("KeyboardInterrupt", FAILED, EARLY, called="raise KeyboardInterrupt"),
    _tries("kill itself", "killed by signal", called="import os; os.kill(os.getpid(), 9)"),
    _tries("kill the reporting process", "killed by signal", EARLY, called="import os; os.kill(os.getppid(), 9)"),
    _tries("kill everything", "killed by signal", EARLY, "wrecked", called="import os; os.kill(-1, 9)"),
    _tries(
        "exec another program", EARLY, called="import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])"
    ),
    _tries("exec at import", EARLY, imported="import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])"),
)
SKIPPING = (
    _tries("pytest.skip", FAILED, called="import pytest; pytest.skip('no')"),
    _tries("unittest.SkipTest", FAILED, called="import unittest; raise unittest.SkipTest('no')"),
    _tries("pytest.xfail", FAILED, called="import pytest; pytest.xfail('no')"),
    _tries(
        "skip the modules",
        "none of the expected tests was found",
        imported="import pytest; pytest.skip('x', allow_module_level=True)",
    ),
    _tries(
        "mark the calling test as xfail",
        FAILED,
        called="""
        import gc, pytest
        for item in [each for each in gc.get_objects() if isinstance(each, pytest.Item)]:
            item.add_marker(pytest.mark.xfail)
        """,
    ),
)
PATCHING = (
    _tries(
        "patched TestReport.from_item_and_call",
        TAMPERED,
        imported="""
        from _pytest.reports import TestReport
        made = TestReport.from_item_and_call.__func__
        def lie(cls, item, call):
            report = made(cls, item, call)
            report.outcome, report.longrepr = "passed", None
            return report
        TestReport.from_item_and_call = classmethod(lie)
        """,
    ),
    _tries(
        "the same, only while it is called",
        TAMPERED,
        called="""
        from _pytest.reports import TestReport
        made = TestReport.from_item_and_call.__func__
        def lie(cls, item, call):
            TestReport.from_item_and_call = classmethod(made)
            report = made(cls, item, call)
            report.outcome, report.longrepr = "passed", None
            return report
        TestReport.from_item_and_call = classmethod(lie)
        """,
    ),
    _tries(
        "a patch for one report, then undone",
        TAMPERED,
        called="""
        from _pytest.reports import TestReport
        kept = vars(TestReport)["from_item_and_call"]
        def lie(cls, item, call):
            TestReport.from_item_and_call = kept
            call.excinfo = None
            return kept.__func__(cls, item, call)
        TestReport.from_item_and_call = classmethod(lie)
        """,
    ),
    _tries(
        "hooks and results of the running test only",
        TAMPERED,
        called="""
        import sys
        frame = sys._getframe()
        while frame:
            item, hooks = frame.f_locals.get("item"), frame.f_locals.get("ihook")
            if item is not None and hooks is not None:
                made = hooks.pytest_runtest_makereport
                def lie(item, call):
                    object.__setattr__(hooks, "pytest_runtest_makereport", made)
                    call.excinfo = None
                    return made(item=item, call=call)
                object.__setattr__(hooks, "pytest_runtest_makereport", lie)
                for name in ("addError", "addFailure"):
                    if hasattr(item, name):
                        setattr(item, name, lambda *rest: None)
                break
            frame = frame.f_back
        """,
    ),
    _tries(
        "lines of the calling test left out",
        TAMPERED,
        called="""
        import sys
        def jump(frame, event, argument):
            last = max(line for _, _, line in frame.f_code.co_lines() if line)
            if event == "line" and frame.f_lineno < last:
                frame.f_lineno = last
            sys.settrace(None)
            return None
        if not hasattr(total, "tried"):
            total.tried = True
            sys._getframe(1).f_trace = jump
            sys.settrace(lambda *rest: None)
        """,
    ),
    _tries(
        "replaced Function.runtest",
        TAMPERED,
        imported="""
        import _pytest.python, _pytest.unittest
        _pytest.python.Function.runtest = lambda self: None
        _pytest.unittest.TestCaseFunction.runtest = lambda self: None
        """,
    ),
    _tries(
        "replaced code of Function.runtest",
        TAMPERED,
        imported="""
        import _pytest.python
        _pytest.python.Function.runtest.__code__ = (lambda self: None).__code__
        """,
    ),
    _tries(
        "replaced TestCase.run and assertEqual",
        TAMPERED,
        imported="""
        import unittest
        unittest.TestCase.assertEqual = lambda self, *rest: None
        """,
    ),
    _tries(
        "patched CallInfo.from_call",
        TAMPERED,
        imported="""
        import _pytest.runner
        made = _pytest.runner.CallInfo.from_call.__func__
        def lie(cls, func, when, reraise=None):
            call = made(cls, func, when, reraise)
            call.excinfo = None
            return call
        _pytest.runner.CallInfo.from_call = classmethod(lie)
        """,
    ),
    _tries(
        "a plugin of its own, found by gc",
        TAMPERED,
        called="""
        import gc, pytest
        class Liar:
            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_makereport(self, item, call):
                call.excinfo = None
        for manager in [each for each in gc.get_objects() if isinstance(each, pytest.PytestPluginManager)]:
            manager.register(Liar())
        """,
    ),
    _tries(
        "replaced what the runner says",
        TAMPERED,
        imported="""
        import ctxbench_pytest.child as child
        say = child.Watcher._say
        def lie(self, *event):
            say(self, *["passed" if each == "failed" else False if each is True else each for each in event])
        child.Watcher._say = lie
        """,
    ),
    _tries(
        "replaced the JSON encoder",
        TAMPERED,
        imported="""
        import json
        encode = json.JSONEncoder.encode
        json.JSONEncoder.encode = lambda self, o: encode(self, o).replace('"failed"', '"passed"')
        """,
    ),
    _tries(
        "replaced pytest.raises and AssertionError",
        TAMPERED,
        imported="""
        import builtins, contextlib, pytest
        builtins.AssertionError = pytest.skip.Exception
        pytest.raises = lambda *a, **k: contextlib.suppress(Exception)
        """,
    ),
    _tries(
        "builtins that compare as equal",
        TAMPERED,
        FAILED,
        imported="""
        import builtins
        class Same(int):
            def __eq__(self, other): return True
            __hash__ = int.__hash__
        builtins.int = Same
        builtins.round = lambda *a: Same()
        """,
    ),
    _tries(
        "emptied test functions, by gc",
        TAMPERED,
        called="""
        import gc, types
        for each in [o for o in gc.get_objects() if isinstance(o, types.FunctionType)]:
            if each.__name__.startswith("test"):
                if each.__code__.co_freevars: continue
                each.__code__ = (lambda *a, **k: None).__code__
        """,
    ),
    _tries(
        "names of the test modules replaced",
        TAMPERED,
        called="""
        import sys
        class Same:
            def __eq__(self, other): return True
        for name, module in list(sys.modules.items()):
            if name.startswith("tests.") and hasattr(module, "total"):
                module.total = lambda *a: Same()
        """,
    ),
    _tries(
        "a thread that waits, then patches",
        TAMPERED,
        FAILED,
        imported="""
        import threading, time
        def later():
            from _pytest.reports import TestReport
            made = TestReport.from_item_and_call.__func__
            def lie(cls, item, call):
                report = made(cls, item, call)
                report.outcome, report.longrepr = "passed", None
                return report
            time.sleep(0.01)
            TestReport.from_item_and_call = classmethod(lie)
        threading.Thread(target=later, daemon=True).start()
        """,
    ),
    _tries(
        "an alarm that patches",
        TAMPERED,
        FAILED,
        imported="""
        import signal
        def later(*_):
            import _pytest.python
            _pytest.python.Function.runtest = lambda self: None
        signal.signal(signal.SIGALRM, later)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        """,
    ),
    _tries(
        "a trace function that returns what is wanted",
        TAMPERED,
        FAILED,
        called="""
        import sys
        def follow(frame, event, argument):
            frame.f_trace_lines = True
            return follow
        sys.settrace(follow)
        sys._getframe(1).f_trace = follow
        """,
    ),
    _tries(
        "swapped modules",
        TAMPERED,
        BROKE,
        EARLY,
        imported="""
        import sys, types
        import _pytest.runner
        fake = types.ModuleType("_pytest.runner")
        fake.__dict__.update(vars(_pytest.runner))
        sys.modules["_pytest.runner"] = fake
        """,
    ),
    _tries(
        "an import hook that drops assertions",
        TAMPERED,
        imported="""
        import ast, importlib.abc, importlib.machinery, sys
        class Drop(ast.NodeTransformer):
            def visit_Assert(self, node): return ast.Pass()
            def visit_With(self, node): return ast.Pass()
        class Loader(importlib.machinery.SourceFileLoader):
            def source_to_code(self, data, path, *, _optimize=-1):
                return compile(ast.fix_missing_locations(Drop().visit(ast.parse(data))), path, "exec")
        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if not name.startswith("tests.test_"): return None
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                spec.loader = Loader(name, spec.origin)
                return spec
        sys.meta_path.insert(0, Finder())
        """,
    ),
    _tries(
        "a rewriter that drops assertions",
        TAMPERED,
        imported="""
        import ast
        from _pytest.assertion.rewrite import AssertionRewriter
        AssertionRewriter.visit_Assert = lambda self, node: [ast.Pass()]
        """,
    ),
)
FILES = (
    _tries(
        "a conftest.py with a hook",
        TAMPERED,
        FAILED,
        imported="""
        from pathlib import Path
        hook = (
            "import pytest\\n"
            "@pytest.hookimpl(tryfirst=True)\\n"
            "def pytest_runtest_makereport(item, call):\\n    call.excinfo = None\\n"
        )
        Path("conftest.py").write_text(hook)
        Path("tests/conftest.py").write_text(hook)
        """,
    ),
    _tries(
        "rewritten tests",
        TAMPERED,
        imported="""
        from pathlib import Path
        Path("tests/test_carts.py").write_text("class TestCart:\\n    def test_cart(self): pass\\n")
        Path("tests/test_prices.py").write_text("")
        """,
    ),
    _tries(
        "rewritten tests, put back later",
        TAMPERED,
        imported="""
        from pathlib import Path
        path = Path("tests/test_carts.py")
        text = path.read_text()
        path.write_text(
            f"from pathlib import Path\\nPath('tests/test_carts.py').write_text({text!r})\\n"
            "class TestCart:\\n    def test_cart(self): pass\\n"
        )
        """,
    ),
    _tries(
        "atexit rewrites reports",
        FAILED,
        imported="""
        import atexit, os
        from pathlib import Path
        def later():
            Path("report.xml").write_text('<testsuite tests="6" failures="0" errors="0"/>')
            os._exit(1)
        atexit.register(later)
        """,
    ),
    _tries("frames of success to every descriptor", TAMPERED, EARLY, imported=steal.EVENTS_TO_EVERY_DESCRIPTOR),
    _tries("the same, with the runner's own words", TAMPERED, EARLY, imported=steal.RIGHT_WORDS_TO_EVERY_DESCRIPTOR),
    _tries("a flood to every descriptor", TAMPERED, EARLY, "killed by signal", called=steal.FLOOD),
    _tries("the nonce by frames and gc, to every descriptor", TAMPERED, EARLY, called=steal.NONCE),
    _tries("the result's descriptor through /proc", TAMPERED, EARLY, called=steal.THROUGH_PROC),
    _tries("deep JSON to every descriptor", TAMPERED, EARLY, called=steal.DEEP),
    _tries("a copy of itself that goes on", TAMPERED, EARLY, FAILED, called="import os; os.fork()"),
    _tries("printed success", FAILED, called="print('6 passed in 0.01s'); print('=' * 30)"),
)
SLOW = (_tries("never return", "ran out of time", called="while True: pass"),)
RUNNER = (
    Forgery("a value that equals everything", steal.EQUAL),
    Forgery("code written against this very runner", wrong(when_imported=steal.KNOWS_THE_RUNNER)),
)
FORGERIES = (
    *ENDING,
    *SKIPPING,
    *PATCHING,
    *FILES,
    *SELECTIVE,
    *EXPECTED,
    *IMPORTS,
    *MEMORY,
    *VALUES,
    *INFORMED,
    *RUNNER,
)
