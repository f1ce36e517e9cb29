"""Guards for every test: no default home, no network outside `network` tests."""

import gc
import importlib
import itertools
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.databases import close_all, made_once
from tests.helpers.extras import absent

# The command line sets this too. On a busy machine, BLAS threads wait for each other longer than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Hypothesis draws and runs examples slowly on a busy machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

pytest_plugins = ("tests.helpers.browsers", "tests.helpers.cells", "tests.helpers.homes", "tests.helpers.sandboxes")

SHARED = Path(os.environ.get("CTXBENCH_SHARED") or Path(__file__).resolve().parents[2] / "shared")
"""Official outputs and released files of other people, which are not part of the project."""


_HOMES = itertools.count()
LONGEST = (
    "tests/test_quickstart.py",
    "tests/dashboard/test_accessible.py",
    "tests/bench/functions/test_java_real.py",
    "tests/sandbox/forgeries/test_forgeries.py",
    "tests/bench/judging/test_java_suite.py",
    "tests/bench/codereval/test_rebuild.py",
    "tests/harness/generators/test_hf.py",
    "tests/harness/cells/hostile/test_hostile.py",
    "tests/sandbox/attacks/test_attacks.py",
    "tests/harness/test_ray.py",
    "tests/harness/test_run_survives.py",
    "tests/harness/cells/test_mistakes.py",
    "tests/harness/cells/test_bounds.py",
    "tests/dashboard/test_live.py",
    "tests/bench/functions/test_real.py",
    "tests/sandbox/docker/test_images.py",
    "tests/sandbox/test_robust.py",
    "tests/test_install.py",
    "tests/test_plugin.py",
    "tests/harness/cli/test_interrupts.py",
    "tests/test_processors.py",
    "tests/test_notebook.py",
)
"""Files that take minutes, the longest first. A worker that starts such a file last would delay the end."""
WITH_MODELS = {"test_hf.py", "test_serve.py", "test_torch_model.py"}
"""Files that import torch and transformers, which takes seconds. All of their tests are slow."""
WITH_JAVA = {"test_java_real.py", "test_java_suite.py", "test_rebuild_java.py"}
"""Files that install a JDK into an image, for half a minute on a new machine."""
WITH_PAGES = {f"test_{name}_page.py" for name in ("benchmark", "compare", "cost", "runs")}
WITH_PAGES |= {"test_accessible.py", "test_samples_browser.py", "test_untrusted.py"}
"""Files that test the same site, whose database, server and browser take many seconds."""
GROUPS = {"models": WITH_MODELS, "java": WITH_JAVA, "pages": WITH_PAGES}


LEAVES_OUT: dict[str, Callable[[str], object]] = {
    "not slow and not network": re.compile(
        r"^pytestmark = (?:\[\s*)?pytest\.mark\.(?:slow|network)\b", re.MULTILINE
    ).search,
    "(slow or network) and not long": lambda text: not re.search(r"\bmark\.(?:slow|network)\b", text),
    "long": lambda text: "mark.long" not in text,
}
"""The Makefile's selections, and whether a file with this text has no selected test."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a selected test, because each worker needs many seconds to import them all."""
    leaves_out = LEAVES_OUT.get(config.option.markexpr)
    if leaves_out is None or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    return True if leaves_out(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Send the files of a group to one worker. Another worker would do the same work at the same time, or wait."""
    if config.getvalue("dist") != "loadfile":
        return None
    scheduling = importlib.import_module("xdist.scheduler").LoadFileScheduling(config, log)
    scheduling._split_scope = group_of
    return scheduling


def group_of(test: str) -> str:
    """Return the name of a unit of work: the group of a test's file, or the file."""
    file = test.partition("::")[0]
    groups = (name for name, files in GROUPS.items() if Path(file).name in files)
    return next(groups, file)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Switch the garbage collector off during collection, which creates millions of lasting objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _made_once() -> Iterator[None]:
    with made_once():
        yield


@pytest.fixture(autouse=True, scope="session")
def _model_in_this_process() -> Iterator[None]:
    """Run the built-in model in this process, because starting worker processes takes longer than most tests.

    Tests of the worker processes set their number.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("ctxbench.harness.generators.incontext"), "cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def _databases_closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(autouse=True)
def _own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep every test out of the working directory's home and the user's models. Most tests need no folder."""
    if "tmp_path" in request.fixturenames:
        folder: Path = request.getfixturevalue("tmp_path")
    else:
        folder = tmp_path_factory.getbasetemp() / "homes" / str(next(_HOMES))
    monkeypatch.setenv("CTXBENCH_HOME", str(folder / "home"))
    monkeypatch.setenv("CTXBENCH_MODELS", str(folder / "models"))
    monkeypatch.delenv("CTXBENCH_DB", raising=False)


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines, unless the test is marked `network`."""
    if request.node.get_closest_marker("network"):
        return
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0] if isinstance(address, tuple) else ""
            if host not in ("127.0.0.1", "::1", "localhost"):
                raise AssertionError(f"a unit test connects to {address}; mark it `network`")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def shared() -> Path:
    """Return the folder of other people's files. Tests of these files run only if it exists."""
    if not SHARED.is_dir():
        absent(f"no folder {SHARED} (CTXBENCH_SHARED): tests against official outputs are not run here")
    return SHARED
