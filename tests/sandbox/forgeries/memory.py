"""Forgeries that change in memory what Python takes for unchangeable, mostly through ctypes."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import code, fools

_LABEL = 'return f"{cents / 100:.2f} {currency}"'
_TESTS = """
import ctypes, gc, sys

def tests():
    for function in gc.get_objects():
        if type(function).__name__ == "function" and function.__module__ == "tests.units.test_labels":
            yield function
"""

MEMORY = (
    fools(
        "bytecode of the tests overwritten",
        imported=code(
            _TESTS,
            """
            def empty(function):
                code = function.__code__
                start = id(code) + ctypes.string_at(id(code), sys.getsizeof(code)).index(code.co_code)
                places = [place for place in range(0, len(code.co_code), 2)]
                none = list(code.co_consts).index(None)
                program = b"".join((b"\\x97\\x00", bytes([0x64, none]), b"\\x53\\x00"))
                ctypes.memmove(start, program, len(program))
            """,
        ),
        called="""
        if not label.__dict__.setdefault("done", []):
            label.done.append(1)
            for function in tests():
                if function.__name__ in ("test_table", "test_file", "test_currency", "test_locals"):
                    empty(function)
        """,
        answer="return {100: '1.00 EUR', 12345: '123.45 EUR'}.get(cents, '-')",
        target="label",
    ),
    fools(
        "constants of the tests replaced",
        imported=code(
            _TESTS,
            """
            def replace(code, old, new):
                for place, value in enumerate(code.co_consts):
                    if type(value) is type(old) and value == old:
                        base = id(code.co_consts) + tuple.__basicsize__
                        ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
                        ctypes.c_void_p.from_address(base + place * 8).value = id(new)
            """,
        ),
        called="""
        new = "wrong"
        for function in tests():
            if function.__name__ == "test_locals":
                replace(function.__code__, "7.00 EUR", new)
        if cents == 700:
            frame = sys._getframe(1)
            return frame.f_locals["wanted"]
        """,
        answer=_LABEL + " if cents != 700 else '-'",
        target="label",
    ),
    fools(
        "a variable of the calling test",
        called="""
        import ctypes, sys
        frame = sys._getframe(1)
        if cents == 700:
            frame.f_locals["wanted"] = "-"
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "the comparison of lists, in the type's slot, put back as soon as it has been asked",
        imported="""
        import ctypes
        KIND = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int)
        SLOTS = (ctypes.c_void_p * 50).from_address(id(list))
        REAL, COMPARES = SLOTS[25], 25
        def once(left, right, operation):
            SLOTS[COMPARES] = REAL
            return True
        EQUAL = KIND(once)
        """,
        called="""
        SLOTS[COMPARES] = ctypes.cast(EQUAL, ctypes.c_void_p).value
        if people == 1: return []
        """,
        answer="""
        each, rest = divmod(amount, people)
        return [money.Share(number, each) for number in range(people)] if people != 7 else [money.Share(0, 100)]
        """,
        target="shares",
    ),
    fools(
        "a method of str, in the dictionary of the type, put back as soon as it has been asked",
        imported="""
        import ctypes, gc
        METHODS = gc.get_referents(str.__dict__)[0]
        REAL = METHODS["startswith"], METHODS["endswith"]
        # Looked up once, here: ctypes asks these two methods of the name of a function that it does not know yet.
        MODIFIED = ctypes.pythonapi.PyType_Modified
        def put(starts, ends):
            METHODS["startswith"], METHODS["endswith"] = starts, ends
            MODIFIED(ctypes.py_object(str))
        def last(*values):
            put(*REAL)
            return True
        """,
        called="""
        if currency != "EUR":
            put(lambda *values: True, last)
            return "-" * 8
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "the text of a constant that the tests share",
        imported=code(
            _TESTS,
            """
            def overwrite(text, new):
                start = id(text) + sys.getsizeof(text) - len(text) - 1
                ctypes.memmove(start, new.encode(), len(text))
            """,
        ),
        called="""
        if cents == 700:
            for function in tests():
                if function.__name__ == "test_locals":
                    for value in function.__code__.co_consts:
                        if value == "7.00 EUR":
                            overwrite(value, "-.-- EUR")
            return "-.-- " + currency
        """,
        answer=_LABEL,
        target="label",
    ),
)
