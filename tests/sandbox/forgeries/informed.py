"""Forgeries by a reader of our runner: what its source, which lies open in the box, makes possible."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import EARLY, FAILED, TAMPERED, Forgery, code
from tests.sandbox.forgeries.selective import CHOOSE
from tests.sandbox.forgeries.shop import wrong


def _knows(name: str, *parts: str, called: str = "", says: tuple[str, ...] = (TAMPERED, EARLY, FAILED)) -> Forgery:
    return Forgery(name, wrong(called, when_imported=code(*parts)).replace("TARGET", "total"), says)


_SWITCHES_OFF = """
class Plugin:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if tests_it(item.obj):
                item._obj = nothing

for manager in held("PytestPluginManager"):
    manager.register(Plugin())
"""
INFORMED = (
    _knows(
        "tests switched off, but for where the value is taken away",
        CHOOSE,
        """
        class Plugin:
            def pytest_runtest_setup(self, item):
                twin = sys.modules.get("ctxbench_pytest.twin")
                if tests_it(item.obj) and not getattr(twin, "way", ""):
                    item._obj = nothing

        for manager in held("PytestPluginManager"):
            manager.register(Plugin())
        """,
    ),
    _knows(
        "a transcript of its own, with canaries that fail",
        CHOOSE,
        """
        import json, os
        for held_dict in [value for value in gc.get_objects() if type(value) is dict and "canaries" in value]:
            canaries, tests = held_dict["canaries"], held_dict["tests"]
            lines = [["collected", list(range(len(tests)))]]
            real = [(number, None) for number in range(len(tests))]
            for number, canary in [*((-1 - n, canary) for n, canary in enumerate(canaries)), *real]:
                for phase in ("setup", "call", "teardown"):
                    bad = canary is not None and phase == "call"
                    message = f"AssertionError: assert {canary['left']} == {canary['right']}" if bad else ""
                    lines.append(["phase", number, phase, "failed" if bad else "passed", bad, not bad, message])
            lines += [["loaded", True], ["end", 1]]
            os.write(3, "".join(json.dumps(line) + "\\n" for line in lines).encode())
            os._exit(1)
        """,
    ),
    _knows(
        "the encoder that the runner keeps, on that object alone",
        CHOOSE,
        """
        for encoder in held("JSONEncoder"):
            real = type(encoder).iterencode
            def iterencode(event, _one_shot=False, real=real, encoder=encoder):
                if event and event[0] == "phase" and event[1] is not None and event[1] >= 0:
                    event = [*event[:3], "passed", False, True, "", *event[7:]]
                return real(encoder, event, _one_shot)
            encoder.iterencode = iterencode
        """,
    ),
    _knows(
        "a seal that is never broken",
        CHOOSE,
        """
        class Whole:
            def broken(self): return []
            def add_tests(self, items): pass

        class Finds(dict):
            def get(self, name, default=None): return True

        for watcher in held("Watcher"):
            watcher._seal, watcher._ran = Whole(), Finds()
        """,
        _SWITCHES_OFF,
    ),
    _knows(
        "variables of the reporting function, changed by the text of an exception",
        CHOOSE,
        """
        import ctypes

        class Liar(Exception):
            def __str__(self):
                for frame in frames():
                    if frame.f_code.co_name == "pytest_runtest_makereport" and "state" in frame.f_locals:
                        frame.f_locals.update(state="passed", raised=False, ran=True)
                        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
                return ""
        """,
        called="raise Liar",
    ),
)
