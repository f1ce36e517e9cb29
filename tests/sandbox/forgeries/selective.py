"""Forgeries that switch off the tests that name their target, and leave every other test as it is."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import EARLY, code, fools

CHOOSE = """
import functools, gc, inspect, sys

def names(code):
    return "TARGET" in code.co_names or any(names(inner) for inner in code.co_consts if hasattr(inner, "co_names"))

def tests_it(function):
    code = getattr(getattr(inspect.unwrap(function), "__func__", function), "__code__", None)
    return code is not None and names(code)

def nothing(*values, **named):
    return None

def empty_like(function):
    space = {}
    exec(f"def {function.__name__}({', '.join(inspect.signature(function).parameters)}): pass", space)
    space[function.__name__].__dict__.update(function.__dict__)
    return space[function.__name__]

def held(kind):
    return [value for value in gc.get_objects() if type(value).__name__ == kind]

def frames():
    frame = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back
"""
_EMPTIES = """
sessions = held("Session")

def empty_items():
    for session in sessions:
        for item in getattr(session, "items", ()):
            if item.__dict__.get("_obj") and tests_it(item._obj):
                item._obj = nothing
"""
_SKIPS_CALL = """
import pytest

class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True if tests_it(pyfuncitem.obj) else None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        if isinstance(item, pytest.Function) and "TestCase" in type(item).__name__ and tests_it(item.obj):
            item.obj = nothing
        yield
"""
_SWAPS_CODE = """
empty = nothing.__code__

def swap(function):
    function = getattr(function, "__func__", function)
    if tests_it(function):
        function.kept, function.__code__ = function.__code__, empty.replace(co_name=function.__name__)

def restore(function):
    function = getattr(function, "__func__", function)
    if hasattr(function, "kept"):
        function.__code__ = function.__dict__.pop("kept")
"""

BY_PLUGIN = (
    fools(
        "a plugin, found in a frame, that does not call the tests of the target",
        imported=code(
            CHOOSE,
            _SKIPS_CALL,
            """
            for frame in frames():
                config = frame.f_locals.get("config") or getattr(frame.f_locals.get("self"), "config", None)
                if hasattr(config, "pluginmanager"):
                    config.pluginmanager.register(Plugin())
                    break
            """,
        ),
    ),
    fools(
        "a plugin, found by gc, that does not call the tests of the target",
        imported=code(
            CHOOSE,
            _SKIPS_CALL,
            """
            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
    ),
    fools(
        "a plugin that empties the collected tests of the target",
        imported=code(
            CHOOSE,
            """
            class Plugin:
                def pytest_itemcollected(self, item):
                    if tests_it(item.obj):
                        function = getattr(item.obj, "__func__", item.obj)
                        if item.cls is None:
                            item._obj = functools.wraps(function)(nothing)
                        else:
                            setattr(item.cls, item.originalname, lambda self, **values: None)
                            item.__dict__.pop("_obj", None)

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
    ),
    fools(
        "a plugin that swaps a test's code for its call alone",
        imported=code(
            CHOOSE,
            _SWAPS_CODE,
            """
            import pytest

            class Plugin:
                @pytest.hookimpl(tryfirst=True)
                def pytest_runtest_setup(self, item):
                    swap(item.obj)

                @pytest.hookimpl(hookwrapper=True, tryfirst=True)
                def pytest_runtest_call(self, item):
                    function = item.obj
                    yield
                    restore(function)

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
    ),
    fools(
        "its own module named among the plugins of the module that imports it",
        imported=code(
            CHOOSE,
            """
            def pytest_pyfunc_call(pyfuncitem):
                return True if tests_it(pyfuncitem.obj) else None

            def pytest_runtest_setup(item):
                if "TestCase" in type(item).__name__ and tests_it(item.obj):
                    item._obj = nothing

            for frame in frames():
                if frame.f_globals.get("__name__", "").startswith("tests.test_"):
                    frame.f_globals["pytest_plugins"] = ["shop.prices"]
                    break
            """,
        ),
    ),
    fools(
        "the function of pytest's own hook replaced where plugins are kept",
        imported=code(
            CHOOSE,
            """
            for implementation in held("HookImpl"):
                if implementation.function.__name__ == "pytest_pyfunc_call" and not implementation.hookwrapper:
                    real = implementation.function
                    implementation.function = lambda pyfuncitem: tests_it(pyfuncitem.obj) or real(pyfuncitem)
                if implementation.function.__name__ == "pytest_runtest_call" and not implementation.hookwrapper:
                    if implementation.function.__module__ == "_pytest.runner":
                        call = implementation.function

                        def run(item):
                            if "TestCase" in type(item).__name__ and tests_it(item.obj):
                                item.obj = nothing
                            call(item)

                        implementation.function = run
            """,
        ),
    ),
    fools(
        "the call of hooks replaced on the plugin manager",
        imported=code(
            CHOOSE,
            """
            for manager in held("PytestPluginManager"):
                real = manager._inner_hookexec

                def execute(name, methods, values, firstresult):
                    item = values.get("pyfuncitem") or values.get("item")
                    if name == "pytest_pyfunc_call" and tests_it(item.obj):
                        item.obj = functools.wraps(item.obj)(nothing)
                    if name == "pytest_runtest_call" and "TestCase" in type(item).__name__ and tests_it(item.obj):
                        item.obj = nothing
                    return real(name, methods, values, firstresult)

                manager._inner_hookexec = execute
            """,
        ),
    ),
    fools(
        "exceptions of the target's tests dropped by a wrapper of the report",
        imported=code(
            CHOOSE,
            """
            import pytest

            class Plugin:
                @pytest.hookimpl(hookwrapper=True, tryfirst=True)
                def pytest_runtest_makereport(self, item, call):
                    if tests_it(item.obj):
                        call.excinfo = None
                        item.__dict__.pop("_excinfo", None)
                    yield

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
    ),
    fools(
        "a cause that reads as none where a test of the target failed",
        imported=code(
            CHOOSE,
            """
            from _pytest.runner import CallInfo

            def cause(self):
                error = self.__dict__.get("excinfo")
                trace = error.tb if error is not None else None
                while trace is not None:
                    if names(trace.tb_frame.f_code) and trace.tb_frame.f_code.co_name.startswith("test"):
                        return None
                    trace = trace.tb_next
                return error

            CallInfo.excinfo = property(cause, lambda self, value: self.__dict__.update(excinfo=value))
            """,
        ),
        target="label",
    ),
    fools(
        "tests of the target that run with an empty body when they are run through their item",
        imported=code(
            CHOOSE,
            """
            class Plugin:
                def pytest_collection_finish(self, session):
                    for item in session.items:
                        if tests_it(item.obj):
                            item.runtest = nothing

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
    ),
)
BY_TIMING = (
    fools(
        "a thread that empties the collected tests of the target",
        sure=False,
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            import threading, time

            def later():
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    empty_items()

            sys.setswitchinterval(1e-5)
            threading.Thread(target=later, daemon=True).start()
            """,
        ),
    ),
    fools(
        "a callback of the garbage collector that empties the tests of the target",
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            gc.callbacks.append(lambda phase, details: empty_items())
            gc.set_threshold(50)
            """,
        ),
    ),
    fools(
        "a finalizer of an object that lives until collection ends",
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            import weakref

            class Held:
                pass

            for session in sessions:
                last = Held()
                weakref.finalize(last, empty_items)
                session._collection_cache[last] = last
                del last
            """,
        ),
    ),
    fools(
        "a finalizer of the loop that collects, which is in no list of finalizers",
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            class Held:
                def __del__(self):
                    empty_items()

            for session in sessions:
                session._collection_cache[nothing] = Held()
            """,
        ),
    ),
    fools(
        "a timer's signal that empties the tests of the target",
        sure=False,
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            import signal

            def later(*_):
                empty_items()
                if any(item.__dict__.get("_obj") is nothing for session in sessions for item in session.items):
                    signal.setitimer(signal.ITIMER_REAL, 0)

            signal.signal(signal.SIGALRM, later)
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0005)
            """,
        ),
    ),
    fools(
        "an audit hook that empties the tests of the target",
        imported=code(
            CHOOSE,
            _EMPTIES,
            """
            busy = []

            def audit(event, values):
                if not busy:
                    busy.append(event)
                    empty_items()
                    busy.clear()

            sys.addaudithook(audit)
            """,
        ),
    ),
    fools(
        "the class of the test module swapped for one whose tests are empty",
        imported=code(
            CHOOSE,
            """
            import types

            class Module(types.ModuleType):
                def __getattribute__(self, name):
                    held = types.ModuleType.__getattribute__(self, name)
                    if name == "__dict__":
                        return {
                            name: empty_like(value) if type(value) is types.FunctionType and tests_it(value) else value
                            for name, value in held.items()
                        }
                    if isinstance(held, types.FunctionType) and tests_it(held):
                        return empty_like(held)
                    return held

            for frame in frames():
                if frame.f_globals.get("__name__", "").startswith("tests.solo.test_"):
                    sys.modules[frame.f_globals["__name__"]].__class__ = Module
                    break
            """,
        ),
        target="save",
    ),
    fools(
        "an attribute hook on the class of the tests that gives empty ones",
        called="""
        import gc
        async def nothing():
            pass
        for kind in [value for value in gc.get_objects() if isinstance(value, type) and "test_tea" in vars(value)]:
            def attribute(self, name):
                return nothing if name == "test_nothing" else object.__getattribute__(self, name)
            kind.__getattribute__ = attribute
        """,
        answer="return shelf.get(name)",
        target="fetch",
    ),
)
BY_INJECTION = (
    fools(
        "setup and teardown functions put into the test module, which swap a test's code and restore it",
        imported=code(
            CHOOSE,
            _SWAPS_CODE,
            """
            for frame in frames():
                if frame.f_globals.get("__name__", "").startswith("tests.solo.test_"):
                    frame.f_globals["setup_function"] = swap
                    frame.f_globals["teardown_function"] = restore
                    break
            """,
        ),
        target="save",
    ),
    fools(
        "a fixture put into the test module, which swaps a test's code and restores it",
        imported=code(
            CHOOSE,
            _SWAPS_CODE,
            """
            import pytest

            @pytest.fixture(autouse=True)
            def around(request):
                function = request.function
                swap(function)
                yield
                restore(function)

            for frame in frames():
                if frame.f_globals.get("__name__", "").startswith("tests.solo.test_"):
                    frame.f_globals["around"] = around
                    break
            """,
        ),
        target="save",
    ),
    fools(
        "a conftest.py, and pytest started anew in the place of this one",
        EARLY,
        imported="""
        from pathlib import Path
        Path("conftest.py").write_text(
            "import pytest\\n"
            "@pytest.hookimpl(tryfirst=True)\\n"
            "def pytest_pyfunc_call(pyfuncitem):\\n"
            "    return True if 'total' in pyfuncitem.function.__code__.co_names else None\\n"
        )
        import os, sys
        if not os.environ.get("AGAIN"):
            os.environ["AGAIN"] = "1"
            os.execv(sys.executable, [sys.executable, "-m", "pytest", "tests/test_carts.py"])
        """,
    ),
)
SELECTIVE = (*BY_PLUGIN, *BY_TIMING, *BY_INJECTION)
