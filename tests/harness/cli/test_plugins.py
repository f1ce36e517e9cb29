"""`ctxbench strategy`, `engine` and `generator`: how they list, show, check and measure plug-ins."""

import re
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators.base import Capabilities, Request
from ctxbench.harness.generators.conformance import abilities
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.sandbox.guest import landlock
from ctxbench.sandbox.types import Sandbox
from tests.bench.engines import rooms
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.cli import run_cli as run
from tests.helpers.extras import missing
from tests.helpers.openai_server import OPENAI, serving
from tests.helpers.sets import make_set

GOOD = '''\
from ctxbench.strategies import Context, Query, Repository, Snippet, strategy


@strategy("first-files")
def first_files(query: Query, repo: Repository, *, limit: int = 2) -> Context:
    """Show the first files.

    Whatever they hold.
    """
    paths = [path for path in repo.files() if path != query.path][:limit]
    return Context(tuple(Snippet(path=path, text=repo.read(path)) for path in paths))
'''
WRAPPERS = "Wrappers of another strategy, as in aim(lc.repocoder)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def groups(text: str) -> dict[str, dict[str, str]]:
    """Return a listing as heading -> name -> summary."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("  "):
            # Other tests may have registered strategies without a docstring in this process.
            name, _, summary = line.strip().partition(" ")
            found[list(found)[-1]][name] = summary.strip()
        else:
            found[line] = {}
    return found


@pytest.mark.slow
def test_list_groups_strategies_by_purpose() -> None:
    result = run_cli("strategy", "list")
    assert result.code == 0 and result.err == ""
    found = {heading.partition(":")[0]: names for heading, names in groups(result.out).items()}
    assert list(found) == ["For lines", "For functions", "For lines and functions", WRAPPERS, "Controls", "Presets"]
    assert {"lc.infercom", "lc.repofuse"} <= set(found["For lines"])
    assert {"icl.direct", "icl.rag_s", "icl.selfdoc_ragot_s", "base.rlcoder"} <= set(found["For functions"])
    assert found["For lines and functions"]["lc.infile"] == "Show the target file up to the cursor and nothing else."
    assert "aim" in found[WRAPPERS] and set(found["Controls"]) == {"gold", "blank", "oracle-context", "oracle-stored"}
    assert "Presets: 156 rows" in result.out


def test_list_filters_strategies_by_a_text() -> None:
    result = run_cli("strategy", "list", "LC.REPOCODER")
    assert "lc.repocoder " in result.out and "lc.infile " not in result.out and "Presets" not in result.out


def test_presets_are_listed_with_their_strategy_and_paper() -> None:
    lines = run_cli("strategy", "list", "--presets").out.splitlines()
    assert len(lines) == 156
    cells = {line.split("  ")[0]: line for line in lines}
    for word in ("icl.rag(encoder=codet5p-110m)", "Llama3.1-8B-Instruct", "icl-table1"):
        assert word in cells["icl-t1-rag"]
    assert "external" in cells["icl-t3-codegen-350m"]
    assert "Llama3-8B-Instruct" in cells["ic-t4-projbench-py-uer"] and "Llama3-8B" not in cells["ic-t6-repocoder"]
    some = run_cli("strategy", "list", "--presets", "REPOFUSE-aim").out
    assert [line.split()[0] for line in some.splitlines()] == [
        f"ic-t5-{benchmark}-{language}-repofuse-aim"
        for benchmark in ("projbench", "cceval")
        for language in ("py", "java")
    ]


def test_show_describes_presets_controls_and_the_papers_rows() -> None:
    preset = run_cli("strategy", "show", "ic-t4-projbench-py-uer(encoder=hashed)").out.splitlines()
    assert preset[0] == "lc.infercom(encoder=hashed, fsr=false)"
    assert preset[1].startswith("preset: ") and "infercom-table4, row 3: +UER, DeepSeekCoder-6.7B" in preset[1]
    assert preset[2] == "summaries in the paper: by Llama3-8B-Instruct (--summariser)"
    assert "in the papers: InferCom paper, Table 4 (Base; +FSR; +UER)" in preset
    assert "  encoder = hashed  (text)" in preset and "  fsr = false  (true or false)" in preset
    control = run_cli("strategy", "show", "gold")
    assert control.code == 0 and "never ranked" in control.out and "The completion is the reference" in control.out
    assert_fault(run_cli("strategy", "show", "icl-t1-rug"), "did you mean icl-t1-rag", "strategy list --presets")


def install(folder: Path, name: str, module: str, code: str = "") -> None:
    """Install a package with one strategy into a folder, as pip does."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ctxbench.strategies]\n{name} = {module}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an import folder where a test can install packages."""
    from ctxbench.strategies.registry import _REGISTRY

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_REGISTRY, "_declared", None)
    monkeypatch.setattr(_REGISTRY, "_clashes", {})
    return tmp_path


BAD_IMPORTS = {
    "hangs": "import time\ntime.sleep(9999)\n",
    "leaves": "import os\nos._exit(0)\n",
    "exits": "import sys\nsys.exit(0)\n",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "floods": "while True: print('\\x1b[2J' * 10000)\n",
    "kills": "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\nraise ValueError('shot')\n",
    "long": "raise ValueError('x' * 10**8)\n",
    "other": GOOD,
    "odd": GOOD.replace("limit: int = 2", "limit: int = 10**400").replace("first-files", "zq.odd"),
}


@pytest.mark.slow
def test_a_broken_plugin_does_not_stop_a_listing(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.cells import pool

    monkeypatch.setattr(pool, "IMPORT_TIMEOUT", 3.0)
    written = packages / "written"
    install(packages, "first-files", "zq_good", f"open({str(written)!r}, 'w').close()\n" + GOOD)
    for name, code in BAD_IMPORTS.items():
        install(packages, f"zq.{name}", f"zq_{name}", code)
    result = run_cli("strategy", "list")
    assert result.code == 0 and "lc.infile" in result.out and "icl.rag" in result.out
    lines = [line for line in result.err.splitlines() if line.startswith("left out: ")]
    for name in BAD_IMPORTS:
        [line] = [line for line in lines if f"zq.{name}" in line]
        assert len(line) < 6000 and (
            "correct the strategy's file" in line or "repair" in line or "make the entry point" in line
        ), line
    if landlock.abi():
        # A plug-in that writes outside its folder fails during its import.
        assert not written.exists() and len(lines) == len(BAD_IMPORTS) + 1


@pytest.mark.slow
def test_commands_import_no_plugin_into_their_own_process(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    install(packages, "first-files", "zq_good", GOOD)
    assert "Show the first files." in run_cli("strategy", "list").out
    assert "  limit = 2  (a whole number)" in run_cli("strategy", "show", "first-files").out
    assert run_cli("strategy", "check", "first-files(limit=1)").code == 0
    assert "zq_good" not in sys.modules


def test_a_package_with_a_built_in_name_does_not_stop_a_listing(packages: Path) -> None:
    install(packages, "lc.infile", "zq_thief", GOOD)
    result = run_cli("strategy", "list")
    assert result.code == 0 and "lc.repocoder" in result.out
    assert "two packages provide" in result.err and "uninstall one" in result.err


@pytest.mark.slow
def test_show_prints_the_source_and_the_parameters(file: Path) -> None:
    result = run_cli("strategy", "show", f"{file}@first-files(limit=7)")
    assert result.code == 0
    for line in (
        f"{file}@first-files(limit=7)",
        "kinds: line",
        "languages: all",
        "asks the model for drafts: no",
        "  limit = 7  (a whole number)",
        "Whatever they hold.",
    ):
        assert line in result.out.splitlines(), result.out
    assert str(file) in result.out and "version " in result.out
    builtin = run_cli("strategy", "show", "lc.repocoder").out
    assert "  empty_header = false  (true or false)" in builtin and "asks the model for drafts: yes" in builtin


@pytest.mark.slow
def test_check_hides_installed_copies_of_target_files(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not landlock.abi():
        missing("no Landlock on this kernel")
    site, home = tmp_path / "lib" / "site-packages", Home(tmp_path / "home")
    target = make_set(home, repos=1).samples[0].path
    (site / target).parent.mkdir(parents=True)
    (site / target).write_text("ANSWER = 1\n")
    monkeypatch.syspath_prepend(str(site))
    reads = f"open({str(site / target)!r}).read()"
    file.write_text(GOOD.replace("repo.read(path)", reads))
    command = ("strategy", "check", f"{file}@first-files", "--home", str(home.root))
    assert "pass  line: runs" in run_cli(*command).out
    result = run_cli(*command, "--samples", "demo")
    assert result.code == 1 and re.search("FAIL  line: runs .*(PermissionError|FileNotFoundError)", result.out), result
    assert_fault(run_cli(*command, "--samples", "nowhere"), "nowhere", "ctxbench samples")


@pytest.mark.slow
def test_the_error_of_a_checked_strategy_stays_on_its_line(file: Path) -> None:
    raising = r'raise ValueError("half \ud800 \x1b[31mred\nsecond line")'
    file.write_text(GOOD.replace("paths = [", f"{raising}\n    paths = ["))
    result = run_cli("strategy", "check", f"{file}@first-files")
    assert result.code == 1 and "ValueError: half ⟨U+D800⟩ ␛[31mred second line (mine.py" in result.out, result


@pytest.mark.slow
def test_a_failed_check_exits_with_code_1(file: Path) -> None:
    file.write_text("import os\n" + GOOD.replace("repo.read(path)", "os.urandom(9).hex()"))
    result = run_cli("strategy", "check", f"{file}@first-files")
    assert result.code == 1 and "FAIL  line: is deterministic" in result.out
    lines = result.out.splitlines()
    failed = sum(line.startswith("FAIL") for line in lines)
    assert lines[-1] == f"{len(lines) - 1 - failed} of {len(lines) - 1} checks passed"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("lc.repocodr", ["did you mean lc.repocoder", "ctxbench strategy list"]),
        ("zzz", ["known:", "icl.direct", "more"]),
        ("lc.infile(limit=ten)", ["limit=ten", "whole number"]),
        ("lc.infile(limits=10)", ["has no parameter 'limits'", "limit"]),
        ("lc.infile(limit=10", ["key=value"]),
        ("lc.infile limit=10", ["key=value"]),
        ("nowhere.py@first-files", ["no such file", "check the path"]),
        ("{folder}@first-files", ["folder", "give the path of a file"]),
        ("{file}@first-file", ["did you mean first-files"]),
        ("{broken}@first-files", ["SyntaxError", "correct the file"]),
        ("{text}@first-files", ["not a Python file", ".py"]),
    ],
)
@pytest.mark.parametrize("command", ["show", "check"])
def test_an_invalid_strategy_spec_is_a_one_line_fault_with_its_cure(
    file: Path, tmp_path: Path, command: str, spec: str, words: list[str]
) -> None:
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "text.txt").write_text(GOOD)
    places = {"file": file, "folder": tmp_path, "broken": tmp_path / "broken.py", "text": tmp_path / "text.txt"}
    assert_fault(run_cli("strategy", command, spec.format(**places)), *words)


def test_check_reports_what_a_served_model_can_do() -> None:
    with serving(answer=lambda *_: "width * height", shape=OPENAI, model="Qwen2.5-Coder-7B", delay=0.02) as server:
        result = run_cli("generator", "check", f"openai:Qwen2.5-Coder-7B@{server.url}(concurrency=4)")
        calls = len(server.calls)
    assert result.code == 0 and "11 of 11 checks passed\n\n" in result.out, result.out
    assert re.search(r"^instructions  continues text; ctxbench asks it for no plans$", result.out, re.M)
    assert re.search(r"^context gain  not measured; the built-in copy model measures copyable bits$", result.out, re.M)
    assert re.search(r"^window        unknown", result.out, re.M)
    assert re.search(r"^--fim         fills in the middle, with the tokens of qwen$", result.out, re.M)
    assert re.search(r"^at once       4 requests, each answered separately$", result.out, re.M)
    assert re.search(r"^answered by   Qwen2.5-Coder-7B \(fp_1\)$", result.out, re.M)
    assert calls == 2 + 2 + 1 + 3 + 4 + 1


@pytest.mark.slow
def test_check_reports_what_the_built_in_model_can_do() -> None:
    result = run_cli("generator", "check", "incontext")
    assert result.code == 0 and re.search(r"^context gain  measures texts itself$", result.out, re.M)
    assert re.search(r"^--fim         cannot fill in the middle$", result.out, re.M) and "answered by" not in result.out


def test_check_recognises_a_chat_model() -> None:
    with serving() as server:
        result = run_cli("generator", "check", f"openai:tiny@{server.url}(endpoint=chat)")
    assert re.search(r"^instructions  follows instructions$", result.out, re.M)
    assert re.search(r"^--fim         no: the model is used as a chat model", result.out, re.M)


def test_the_abilities_include_the_window() -> None:
    class Windowed(Scripted):
        capabilities = Capabilities(batch_size=16, instructs=True, counts=True)
        window = 4096

        def count(self, request: Request) -> int:
            return 1

    assert dict(abilities(Windowed(lambda _: "")))["window"] == "4,096 tokens; prompts are cut to it"


@pytest.fixture
def boxes(bubblewrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.harness.run.execution.back_end", lambda *_: bubblewrap_sandbox)
    monkeypatch.setattr("ctxbench.harness.run.resources.back_end", lambda *_: bubblewrap_sandbox)


def test_engines_are_listed_and_shown_without_running_them() -> None:
    listed = run("engine", "list")
    assert listed.code == 0
    names = {row.split()[0] for row in listed.out.splitlines()}
    assert {"ripgrep", "ctags", "jedi", "repomap", "tantivy", "mcp", "command"} <= names
    shown = run("engine", "show", "ripgrep(window=10, mode=shared)")
    assert "mode: shared" in shown.out and "ripgrep==" in shown.out and "window = 10" in shown.out


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ripgerp", "did you mean ripgrep"),
        ("ripgrep(size=1)", "no parameter 'size'"),
        ("ripgrep(mode=both)", "give per-file or shared"),
        ("absent.py@Engine", "no such file"),
        ("absent.toml", "no such file"),
        (rooms.spy("Absent"), "no engine is called 'Absent'"),
    ],
)
def test_an_invalid_engine_spec_is_refused_in_one_line(spec: str, words: str) -> None:
    shown = run("engine", "show", spec)
    assert_fault(shown, words)


def test_an_engine_is_checked_in_a_box(boxes: None, tmp_path: Path) -> None:
    refused = run("engine", "check", rooms.spy("Absolute"), "--home", str(tmp_path))
    assert refused.code == 1 and "an absolute path" in refused.out
    passed = run("engine", "check", "repomap", "--home", str(tmp_path))
    assert passed.code == 0 and "7 of 7 checks passed" in passed.out, passed.out


@pytest.mark.slow
def test_the_error_of_a_checked_engine_stays_on_its_line(boxes: None, tmp_path: Path) -> None:
    checked = run("engine", "check", rooms.spy("RaisesOddly"), "--home", str(tmp_path))
    assert checked.code == 1 and checked.out.splitlines()[-1] == "1 of 7 checks passed", checked
    assert checked.out.count("the engine raised ValueError: half ⟨U+D800⟩ ␛[31mred second line\n") == 6, checked.out


@pytest.mark.slow
def test_a_remote_engine_has_only_one_mode(tmp_path: Path) -> None:
    file = tmp_path / "far.toml"
    file.write_text('protocol = "http"\nurl = "http://127.0.0.1:9/"\n')
    refused = run("engine", "measure-leak", f"{file}(remote=on)", "--samples", "demo", "--home", str(tmp_path))
    assert_fault(refused, "has only one mode", "name an engine that runs in a box")


@pytest.mark.slow
def test_an_engines_memory_of_other_samples_is_measured_as_a_leak(boxes: None, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    rooms.make_set(home, repos=6, per_file=3)
    command = ("engine", "measure-leak", rooms.spy("Remembers"), "--samples", "demo", "--home", str(home.root))
    leaking = run(*command)
    assert leaking.code == 0, leaking.err
    assert "shared mode scores higher: a likely leak" in leaking.out.splitlines()[-1], leaking.out
    honest = run(*(word.replace("Remembers", "Honest") for word in command))
    assert "no leak is visible" in honest.out.splitlines()[-1], honest.out
