"""Forgeries that serve the tests' modules without their assertions when they are imported."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import EARLY, TAMPERED, Forgery, code, fools

_STRIPS = """
import ast, importlib.machinery, importlib.util, os, sys

class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Expr(node.test), node)

    def visit_Expr(self, node):
        call = getattr(node.value, "func", None)
        if getattr(call, "id", "") in ("same", "near"):
            node.value = ast.Constant(None)
        return node

def is_test(path):
    return os.path.basename(path).startswith("test_")

def stripped(path):
    with open(path) as file:
        return compile(ast.fix_missing_locations(Drop().visit(ast.parse(file.read()))), path, "exec", dont_inherit=True)
"""
_LOADER = """
class Loader:
    def __init__(self, name, path):
        self.path = path

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(stripped(self.path), vars(module))
"""
_FILES = """
import glob

paths = [path for path in glob.glob("tests/**/test_*.py", recursive=True)]
"""
_AS_CACHED = """
import marshal, struct
import pytest

def written(path, to):
    with open(path, "rb") as file:
        digest = importlib.util.source_hash(file.read())
    head = importlib.util.MAGIC_NUMBER + struct.pack("<L", 3) + digest
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to, "wb") as file:
        file.write(head + marshal.dumps(stripped(path)))
"""


def _label(name: str, *parts: str) -> Forgery:
    return fools(
        name, TAMPERED, imported=code(*parts), answer="return '3.00 USD' if currency == 'USD' else '-'", target="label"
    )


IMPORTS = (
    _label(
        "a path hook whose loader leaves the assertions out",
        _STRIPS,
        _LOADER,
        """
        sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook((Loader, [".py"])))
        sys.path_importer_cache.clear()
        """,
    ),
    _label(
        "finders in the cache of finders",
        _STRIPS,
        _LOADER,
        """
        for folder in ("", "tests", "tests/units"):
            path = os.path.join(os.getcwd(), folder).rstrip("/")
            sys.path_importer_cache[path] = importlib.machinery.FileFinder(path, (Loader, [".py"]))
        """,
    ),
    _label(
        "compiled files of pytest's that are not the tests'",
        _STRIPS,
        _FILES,
        _AS_CACHED,
        """
        tag = f"{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
        for path in paths:
            folder, name = os.path.split(path)
            written(path, os.path.join(folder, "__pycache__", name[:-3] + "." + tag))
        """,
    ),
    _label(
        "compiled files at a place of its own",
        _STRIPS,
        _FILES,
        _AS_CACHED,
        """
        import tempfile
        sys.pycache_prefix = tempfile.mkdtemp()
        tag = f"{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
        for path in paths:
            folder, name = os.path.split(os.path.abspath(path))
            written(path, sys.pycache_prefix + folder + "/" + name[:-3] + "." + tag)
        """,
    ),
    _label(
        "modules of the tests, made before they are imported",
        _STRIPS,
        _FILES,
        """
        import types
        for path in paths:
            name = path[:-3].replace("/", ".")
            if name not in sys.modules and "labels" in name:
                module = types.ModuleType(name)
                module.__file__ = os.path.abspath(path)
                module.__package__ = name.rpartition(".")[0]
                module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=module.__file__)
                sys.modules[name] = module
                exec(stripped(path), vars(module))
        """,
    ),
    _label(
        "the first finder's own method, on that object alone",
        _STRIPS,
        """
        hook = sys.meta_path[0]
        real = hook.exec_module
        hook.exec_module = lambda module: (
            exec(stripped(module.__file__), vars(module)) if is_test(module.__file__) else real(module)
        )
        """,
    ),
    _label(
        "the first finder made to pass the tests by, to a second one",
        _STRIPS,
        """
        class Plain:
            create_module = lambda self, spec: None
            exec_module = lambda self, module: exec(stripped(module.__file__), vars(module))

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if "test_" not in name:
                    return None
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                return spec and importlib.util.spec_from_file_location(name, spec.origin, loader=Plain())

        sys.meta_path[0]._early_rewrite_bailout = lambda name, state: "test_" in name
        sys.meta_path.insert(1, Finder())
        """,
    ),
    _label(
        "a list of finders that shows itself as it was",
        _STRIPS,
        """
        class Plain:
            create_module = lambda self, spec: None
            exec_module = lambda self, module: exec(stripped(module.__file__), vars(module))

        class Finders(list):
            def __iter__(self):
                yield self
                yield from super().__iter__()

            def find_spec(self, name, path=None, target=None):
                if "test_" not in name:
                    return None
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                return spec and importlib.util.spec_from_file_location(name, spec.origin, loader=Plain())

        sys.meta_path = Finders(sys.meta_path)
        """,
    ),
    _label(
        "the reading of files by loaders",
        _STRIPS,
        """
        import io
        real = io.open_code
        def open_code(path):
            if not is_test(path):
                return real(path)
            with open(path) as file:
                return io.BytesIO(ast.unparse(Drop().visit(ast.parse(file.read()))).encode())
        io.open_code = open_code
        from pathlib import Path
        read_bytes = Path.read_bytes
        Path.read_bytes = lambda self: (
            ast.unparse(Drop().visit(ast.parse(read_bytes(self)))).encode() if is_test(str(self)) else read_bytes(self)
        )
        """,
    ),
    _label(
        "the names that the module of a rewriter looks up",
        _STRIPS,
        """
        import types
        import _pytest.assertion.rewrite as rewrite
        real = rewrite.ast
        rewrite.ast = types.SimpleNamespace(**{
            **vars(real),
            "parse": lambda source, **named: ast.fix_missing_locations(Drop().visit(real.parse(source, **named))),
        })
        """,
    ),
    _label(
        "the module of tests reloaded without assertions while it is collected",
        _STRIPS,
        """
        import gc
        class Plugin:
            def pytest_pycollect_makemodule(self, module_path, parent):
                path = str(module_path)
                name = os.path.relpath(path)[:-3].replace("/", ".")
                if is_test(path):
                    importlib.import_module(name)
                    exec(stripped(path), vars(sys.modules[name]))

        for manager in [value for value in gc.get_objects() if type(value).__name__ == "PytestPluginManager"]:
            manager.register(Plugin())
        """,
    ),
    fools(
        "a plugin named in the environment, for pytest started anew",
        EARLY,
        imported="""
        import os, sys
        if not os.environ.get("PYTEST_PLUGINS"):
            with open("always.py", "w") as file:
                file.write("def pytest_pyfunc_call(pyfuncitem): return True\\n")
            os.environ.update(PYTEST_PLUGINS="always", PYTEST_ADDOPTS="-k test_cart")
            os.execv(sys.executable, [sys.executable, "-m", "pytest", "tests/test_carts.py"])
        """,
    ),
    fools(
        "a distribution of its own with a plugin, for pytest started anew",
        EARLY,
        imported="""
        import os, sys
        if not os.environ.get("AGAIN"):
            os.makedirs("always-1.dist-info")
            with open("always-1.dist-info/METADATA", "w") as file:
                file.write("Metadata-Version: 2.1\\nName: always\\nVersion: 1\\n")
            with open("always-1.dist-info/entry_points.txt", "w") as file:
                file.write("[pytest11]\\nalways = always\\n")
            with open("always.py", "w") as file:
                file.write("def pytest_pyfunc_call(pyfuncitem): return True\\n")
            os.environ.update(AGAIN="1")
            os.execv(sys.executable, [sys.executable, "-m", "pytest", "tests/test_carts.py"])
        """,
    ),
)
