"""The site as a whole: its pages, its command, and its messages when it has nothing to show."""

import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.app import PAGES, icon
from ctxbench.dashboard.cli.dashboard import _options
from ctxbench.dashboard.views import SERIES
from ctxbench.harness.store import open_store
from tests.dashboard.browser import app
from tests.harness.store.making import make_samples, make_spec
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.databases import set_schema

NAMES = [page.name for page in PAGES]


def test_every_page_is_a_module_with_a_page_function() -> None:
    for name in NAMES:
        assert callable(importlib.import_module(f"ctxbench.dashboard.pages.{name}").page), name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_page_without_runs_says_what_to_run(name: str, empty_home: Home) -> None:
    test = app(name, empty_home.root)
    assert not test.exception, test.exception
    commands = [code.value for code in test.code]
    assert any("ctxbench quickstart" in command for command in commands) and not test.dataframe, commands


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_unreadable_database_is_reported_in_one_line(name: str, tmp_path: Path) -> None:
    old, broken = Home(tmp_path / "old"), Home(tmp_path / "broken")
    with open_store(old.database) as store:
        store.add_run(make_spec(), make_samples(1))
    set_schema(old.root / "results.db", 9999)
    broken.root.mkdir()
    (broken.root / "results.db").write_bytes(b"no database at all" * 100)
    for home, words in ((old, "another version of ctxbench"), (broken, "is not a database")):
        test = app(name, home.root)
        assert not test.exception, test.exception
        assert len(test.error) == 1 and words in test.error[0].value


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_run_without_results_raises_no_exception(name: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    with open_store(home.database) as store:
        store.add_run(make_spec(), make_samples(2))
    test = app(name, home.root)
    assert not test.exception, test.exception


def dashboard(*arguments: str) -> tuple[str, ...]:
    program = "from ctxbench.harness.cli.main import main; main()"
    return (sys.executable, "-c", program, "dashboard", *arguments)


def test_a_missing_database_is_reported_in_one_line(tmp_path: Path) -> None:
    assert_fault(run_cli("dashboard", "--home", str(tmp_path / "none")), "no results yet", "ctxbench quickstart")
    assert not (tmp_path / "none").exists()


def test_a_port_in_use_is_reported_in_one_line(empty_home: Home) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        result = run_cli("dashboard", "--home", str(empty_home.root), "--port", port)
    assert_fault(result, f"127.0.0.1:{port}", "--port")


def test_an_address_of_another_machine_is_reported_in_one_line(empty_home: Home) -> None:
    assert_fault(run_cli("dashboard", "--home", str(empty_home.root), "--host", "192.0.2.77"), "192.0.2.77", "--port")


def test_a_missing_extra_is_reported_in_one_line(empty_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_fault(run_cli("dashboard", "--home", str(empty_home.root)), "Streamlit", "pip install")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_dashboard_prints_its_address_and_ends_on_a_signal(number: signal.Signals, empty_home: Home) -> None:
    command = dashboard("--home", str(empty_home.root), "--port", "0")
    log = empty_home.root / "log"
    with log.open("w") as err, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:") and "Ctrl-C" in line
            _until_answered(int(line.split()[0].rpartition(":")[2]))
            # The reader of the address may have ended already: `ctxbench dashboard | head -1`.
            process.stdout.close()
            time.sleep(1)
            process.send_signal(number)
            assert process.wait(60) == 0
            assert "Traceback" not in log.read_text()
        finally:
            process.kill()


def _until_answered(port: int) -> None:
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("nobody answers")


def test_the_site_sends_no_statistics_and_serves_only_this_machine() -> None:
    options = _options("127.0.0.1", 1)
    assert options["browser_gatherUsageStats"] is False and options["server_headless"] is True
    assert options["server_enableXsrfProtection"] is True and options["server_fileWatcherType"] == "none"
    assert options["server_allowedHosts"] == ["127.0.0.1", "localhost", "[::1]"]
    assert _options("0.0.0.0", 1)["server_allowedHosts"] is None
    assert Path(options["theme_base"]).is_file()


def test_the_icon_is_drawn_and_series_colours_are_distinct() -> None:
    assert icon().size == (32, 32) and len({*SERIES}) == len(SERIES)


def test_help_needs_no_extra() -> None:
    code = (
        "import sys; from ctxbench.harness.cli.main import run; run(['dashboard', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('streamlit', 'altair', 'pandas', 'sqlalchemy')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env=os.environ, capture_output=True).returncode == 0
    )
