"""Writes how strategies differ from their papers into docs/fidelity.md: ``python -m scripts.fidelity_page``.

With checkouts of the authors' programs, it counts again how many prompts are equal:

    python -m scripts.fidelity_page --repocoder CodeT --infercom InferCom --p50k p50k_base.json --home HOME

The programs run in their own processes over samples of a set in HOME. Fixed drafts, summaries and vectors replace
models and services on both sides. Only the counts are stored, in ``fidelity_counts.json`` in this folder.

Check out InferCom's first commit. Later commits cannot read the block positions that RepoCoder's program writes, but
are otherwise equal.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import glob
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ctxbench.bench import samples as sample_sets
from ctxbench.bench.apis import SYSTEM, ask_with, released_templates, summary_prompt
from ctxbench.bench.code_tokens import P50kBase
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.masking import blanked
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import view
from ctxbench.bench.retrieval.encoders import get as encoder_named
from ctxbench.bench.retrieval.rankers import DIGITS
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.retrieval.units import Unit, cutter
from ctxbench.bench.types import Sample
from ctxbench.bench.windows import code_lines
from ctxbench.harness.papers.presets import Fidelity, methods
from ctxbench.harness.run.spec import planned_samples
from ctxbench.strategies import layout
from ctxbench.strategies.registry import resolve

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
COUNTS = Path(__file__).with_name("fidelity_counts.json")
BEGIN, END = "<!-- python -m scripts.fidelity_page -->\n", "<!-- end -->"
_COUNTED_HEAD = """\
### Prompts counted

The authors' programs ran beside ctxbench over the same samples of `ctxbench-2-lite`, with the same drafts, summaries
and vectors. The table counts prompts that are equal byte for byte. With your checkouts of the programs,
`python -m scripts.fidelity_page` counts again. `scripts/fidelity_counts.json` lists commits and inputs.

`lc.infercom` differs from the release in two points: its usage examples follow the paper (`ue_quirks=on` follows the
release), and no view shows functions after the cursor. Brackets count differing prompts by the part that differs.
"""


def written(text: str) -> str:
    """Return the text of a page, with this script's section between its marker lines."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{_section()}\n{END}{rest.partition(END)[2]}"


def _section() -> str:
    differing: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for method in methods():
        for row in method.differs:
            differing[row.what, _code(row.switch), "<br>".join(row.comes_to)].append(f"`{method.title}`")
    equal = "".join(_equal(method) for method in methods())
    differs = "".join(f"| {', '.join(names)} | {' | '.join(cells)} |\n" for cells, names in differing.items())
    return (
        "### What is equal\n\n| strategy | paper | released program | equal |\n|---|---|---|---|\n"
        f"{equal}\n### What differs\n\n| strategy | differs | switch | changes |\n|---|---|---|---|\n"
        f"{differs}\n{_counted()}"
    )


def _equal(method: Fidelity) -> str:
    names = ", ".join(f"`{name}`" for name in (method.title, *method.also))
    measured = "".join(f"<br>changes: {text}" for text in method.measured)
    return f"| {names} | {method.paper} | {method.program or 'none'} | {method.equal}{measured} |\n"


def _code(switch: str) -> str:
    return f"`{switch}`" if switch else "none"


def _counted() -> str:
    stored = json.loads(COUNTS.read_text(encoding="utf-8"))
    rows = "".join(
        f"| {row['ours']} | {row['program']} | {_share(row, 'python')} | {_share(row, 'java')} |\n"
        for row in stored["rows"]
    )
    return f"{_COUNTED_HEAD}\n| ours | the program | Python | Java |\n|---|---|---|---|\n{rows}"


def _share(row: Mapping[str, Any], language: str) -> str:
    share = row["counts"].get(language)
    if share is None:
        return "no count"
    reasons = "; ".join(f"{number}: {part}" for part, number in share["differ"].items())
    return f"{share['equal']} of {share['of']}" + f" ({reasons})" * bool(reasons)


# Both sides


@dataclass(frozen=True, slots=True)
class _Task:
    sample: Sample
    snapshot: Snapshot

    @property
    def whole(self) -> str:
        lines = self.snapshot.texts[self.sample.path].split("\n")
        return "\n".join(blanked(lines, self.sample.masked))

    @property
    def draft(self) -> str:
        """The code after the cursor, as long as a draft: the end of its line and nine more lines."""
        lines = self.whole.split("\n")[self.sample.cursor.line :][:10]
        return "\n".join(lines)[self.sample.cursor.column :]

    def for_programs(self) -> dict[str, Any]:
        """Return the task as JSON data, with lines counted as the programs count them."""
        query = self.sample.query()
        before = code_lines(f"{query.prefix}.")[0]
        first_shown = layout.first_shown_line(query, layout.HALF)
        rows = code_lines(self.whole)[1]
        drafted = [line.strip() for line in self.draft.splitlines() if line.strip()] or [""]
        return {
            "id": self.sample.id,
            "repo": self.sample.repo,
            "path": self.sample.path,
            "whole": self.whole,
            "hidden": [path for path in self.snapshot.texts if path not in self._visible],
            "line": len(before) - 1,
            "column": len(before[-1]) - 1,
            "last_line": query.prefix.rstrip().count("\n"),
            "start": sum(row < first_shown for row in rows),
            "prompt": layout.build_infile(query.prefix, layout.HALF),
            "draft": self.draft,
            # RepoCoder's program reads a draft from the line's start; InferCom's keeps the first line, stripped.
            "drafts": {"all": self.draft, "joined": before[-1][:-1] + self.draft, "first": drafted[0]},
        }

    @property
    def _visible(self) -> frozenset[str]:
        return frozenset(view(self.snapshot, self.sample.query(), self.sample.masked, self.sample.hidden).files())


def given_summary(prompt: str) -> str:
    """Return a summary in place of a model's: words of the prompt's code, and four digits of the prompt's digest."""
    words = re.findall(r"[^\W\d_]{3,}", prompt.rpartition("code:\n")[2].rpartition("summary:")[0])
    return " ".join([*dict.fromkeys(word.lower() for word in words[:12]), sha256(prompt)[:4]])


class _Given:
    instructs = summarises = True

    def __init__(self, draft: str) -> None:
        self._draft = draft

    def __call__(self, prompt: Any, *, role: str = "draft", max_tokens: int = 128) -> str:
        return given_summary(prompt.text) if role == "summary" else self._draft


_OURS = {
    "infile": "lc.infile",
    "first": "lc.repocoder(iterations=1)",
    "second": "lc.repocoder(q2_partial=drop)",
    "joined": "lc.repocoder",
    "infercom": "lc.infercom(encoder=hashed)",
    "releaseB": "lc.infercom(encoder=hashed, ue_quirks=on, q2_lines=first, q2_partial=drop)",
}
"""Compared part -> ctxbench's strategy."""
_RELEASED = "`lc.infercom(ue_quirks=on, q2_lines=first, q2_partial=drop)`"
_ROWS = {
    "infile": ("`lc.infile`", "InferCom, `build_infile.py`"),
    "first": ("`lc.repocoder(iterations=1)`", "RepoCoder, first stage"),
    "second": ("`lc.repocoder(q2_partial=drop)`", "RepoCoder, second stage"),
    "joined": ("`lc.repocoder`", "RepoCoder, second stage, with the draft after the start of its line"),
    "infercom": ("`lc.infercom`", "InferCom, with RepoCoder's blocks for such a draft"),
    "infercom whole": ("`lc.infercom`", "the same, with functions after the cursor among the candidates"),
    "releaseB": (_RELEASED, "InferCom, with RepoCoder's blocks for the draft's first line"),
    "releaseB whole": (_RELEASED, "the same, with functions after the cursor among the candidates"),
    "summaries": ("the prompt for a summary, `--summary-template`", "InferCom, per function, with its system message"),
}
"""Compared part -> the page's names for ctxbench's and the authors' side."""


def ours(task: _Task, retrieval: Retrieval) -> dict[str, str]:
    """Return the task's id and ctxbench's prompts for it, by compared part."""
    query = task.sample.query()
    repo = view(task.snapshot, query, task.sample.masked, task.sample.hidden, retrieval)
    return {"id": task.sample.id} | {
        name: resolve(spec)(query, repo, _Given(task.draft), None).text for name, spec in _OURS.items()
    }


# The authors' side: this part runs in its own process.


class _InOrder:
    """Replaces a pool of processes. Results are in the order of the calls."""

    def __init__(self, **_: Any) -> None:
        pass

    def __enter__(self) -> _InOrder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


def _sorted_glob(suffix: str) -> SimpleNamespace:
    """Return a `glob` for the files of a language whose results are sorted by path."""

    def paths(pattern: str, *, recursive: bool = False) -> list[str]:
        pattern = pattern.removesuffix(".py").removesuffix(".java") + suffix
        return sorted(glob.glob(pattern, recursive=recursive))  # noqa: PTH207 - called by the programs

    return SimpleNamespace(glob=paths)


def _imported(name: str) -> Any:
    return importlib.import_module(name)


def _stand_in(name: str, **content: Any) -> None:
    module = ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module


@functools.lru_cache(100_000)
def _vector(text: str) -> Any:
    import torch  # noqa: PLC0415 - only their process needs it

    return torch.from_numpy(encoder_named("hashed").encode([text])).double()


def _rounded(compare: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """Round scores as ctxbench does, so that ties are equal on both sides."""
    return lambda query, matrix: [round(score, DIGITS) for score in compare(query, matrix)]


_UNUSED = (
    *("AutoTokenizer", "AutoModel", "AutoModelForCausalLM", "GenerationConfig"),
    *("RobertaTokenizer", "RobertaModel", "RobertaConfig"),
)
"""Names that the programs import from transformers and do not need for the counts."""


def _prepare(job: Mapping[str, Any], folder: str) -> None:
    encoding = P50kBase(Path(job["p50k"]))._encoding
    sys.modules["tiktoken"].get_encoding = lambda _: encoding  # type: ignore[attr-defined]
    nothing = dict.fromkeys(_UNUSED)
    _stand_in("transformers", **nothing)
    os.chdir(job["folder"])
    sys.path.insert(0, str(Path(job["checkout"]) / folder))


def _place(task: Mapping[str, Any]) -> None:
    repo = Path("files", task["repo"])
    for path in task["hidden"]:
        repo.joinpath(path).unlink(missing_ok=True)
    repo.joinpath(task["path"]).write_text(task["whole"], encoding="utf-8")


def _metadata(task: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task_id": f"{task['repo']}/0",
        "fpath_tuple": [task["repo"], *task["path"].split("/")],
        "line_no": task["line"],
        "col": task["column"],
        "context_start_lineno": task["start"],
    }


def _lines(path: str, *records: Mapping[str, Any]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


class _RepoCoder:
    def __init__(self, job: Mapping[str, Any]) -> None:
        _prepare(job, "RepoCoder")
        names = ("utils", "make_window", "build_vector", "search_code", "build_prompt")
        self.utils, self.window, self.vector, self.search, self.prompt = map(_imported, names)
        self.utils.glob = _sorted_glob(job["suffix"])
        self.utils.FilePathBuilder.repo_base_dir = "files"
        self.utils.Tools.tokenize = functools.lru_cache(300_000)(self.utils.Tools.tokenize)
        self.vector.ProcessPoolExecutor, self.vector.as_completed = _InOrder, list

    def begin(self, task: Mapping[str, Any]) -> None:
        pass

    def __call__(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first prompt, and for each kind of draft the second prompt and its blocks."""
        repo, paths = task["repo"], self.utils.FilePathBuilder
        record = {"prompt": task["prompt"], "metadata": _metadata(task)}
        self.window.RepoWindowMaker(repo, 20, 2).build_windows()
        self.vector.BagOfWords(paths.repo_windows_path(repo, 20, 2)).build()
        self.window.BaselineWindowMaker("lines", repo, 20, [record]).build_window()
        answer = {"undrafted": self._prompt(record, paths.search_first_window_path("lines", "r-g", repo, 20), "r-g")}
        for kind, text in task["drafts"].items():
            predictions = _lines(f"predictions/{kind}.0.jsonl", {**record, "choices": [{"text": text}]})
            build = functools.partial(paths.gen_first_window_path, "lines", "r-g-r-g")
            self.window.PredictionWindowMaker(repo, 20, predictions, build).build_window()
            answer[kind] = self._prompt(record, build(predictions, repo, 20), "r-g-r-g")
        return answer

    def _prompt(self, record: Mapping[str, Any], windows: str, mode: str) -> Any:
        paths, tools = self.utils.FilePathBuilder, self.utils.Tools
        self.vector.BagOfWords(windows).build()
        repo = paths.repo_windows_path(record["metadata"]["task_id"].partition("/")[0], 20, 2)
        both = [tools.load_pickle(paths.one_gram_vector_path(path)) for path in (repo, windows)]
        score = self.search.SimilarityScore.jaccard_similarity
        self.search.CodeSearchWorker(*both, "found.pkl", score, 20, "").run()
        tasks = _lines("tasks.jsonl", record)
        builder = self.prompt.PromptBuilder(tools.load_pickle("found.pkl"), tasks, "", self.utils.CodexTokenizer)
        return next(iter(builder.build_2nd_stage_input_file(mode)), None)


class _Asked:
    """Replaces the summarising model's service, and records its messages."""

    messages: list[Any] = []  # noqa: RUF012 - shared by all clients of the process

    def __init__(self, **_: Any) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, messages: Any, **_: Any) -> Any:
        self.messages.append(messages)
        content = given_summary(messages[-1]["content"])
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=content))])


class _InferCom:
    def __init__(self, job: Mapping[str, Any]) -> None:
        import tree_sitter  # noqa: PLC0415 - as below

        grammar = _imported(f"tree_sitter_{job['language']}")
        language = tree_sitter.Language(grammar.language())
        _stand_in("vllm", LLM=None, SamplingParams=None)
        _stand_in("openai", OpenAI=_Asked)
        parsers = {"get_language": lambda _: language, "get_parser": lambda _: tree_sitter.Parser(language)}
        _stand_in("tree_sitter_languages", **parsers)
        _prepare(job, "")
        Path("utils").symlink_to(Path(job["checkout"]).absolute() / "utils")
        Path("cache/func_base").mkdir(parents=True)
        Path("cache/func_retrieval").mkdir()
        names = ("run", "build_infile", "build_func_prompt", "build_py_func_base", "build_j_func_base")
        self.run, self.infile, self.functions, python, java = map(_imported, names)
        utils, summaries = _imported("utils.utils"), _imported("utils.summarize_code")
        self.tools, self.summaries = utils.Utils, summaries
        encoder = lambda _: SimpleNamespace(encode_text=_vector)  # noqa: E731 - replaces their class
        summaries.UnixCoder = self.functions.UnixCoder = encoder
        utils.Similarity.cossim_tensors = staticmethod(_rounded(utils.Similarity.cossim_tensors))
        self.base, self.language = python if job["language"] == "python" else java, job["language"]
        self.base.glob = _sorted_glob(job["suffix"])
        self.bases: dict[str, list[Any]] = {}
        self.asked: list[Any] = []

    def begin(self, task: Mapping[str, Any]) -> None:
        self.asked = self._api_base(task["repo"])

    def __call__(self, task: Mapping[str, Any]) -> dict[str, Any]:
        record = {"prompt": task["prompt"], "metadata": _metadata(task)}
        shown = self.infile.InFileContextProcessor("files").get_infile_context
        answer: dict[str, Any] = {"infile": shown(record, 4096)}
        record |= {"prompt": shown(record, 2048), "pred_res": task["draft"]}
        record["old_prompt"] = record["prompt"]  # its first release looks for the in-file text here
        answer["asked"] = self.asked
        for view_of, cut in (("seen", True), ("whole", False)):
            self.tools.dump_pickle(self._records(task, cut=cut), f"cache/func_base/sample_{task['repo']}_encoded.pkl")
            arguments = ([task["repo"]], "sample", self.language)
            builder = self.functions.FuncPromptBuilder(*arguments, summary_cuda=-1, encode_cuda="cpu")
            for kind, blocks in task["blocks"].items():
                example = builder.process_example(json.loads(json.dumps(record)), k=4)
                answer[f"{kind} {view_of}"] = self._combined(example, blocks, task)
        return answer

    def _records(self, task: Mapping[str, Any], *, cut: bool) -> list[Any]:
        hidden, target = set(task["hidden"]), task["path"]

        def is_seen(record: Any) -> bool:
            path, metadata = "/".join(record["fpath"][1:]), record["metadata"]
            last = metadata["lineno"] + metadata["func_body"].count("\n")
            return path not in hidden and (not cut or path != target or last < task["last_line"])

        return list(filter(is_seen, self.bases[task["repo"]]))

    def _api_base(self, repo: str) -> list[Any]:
        if repo in self.bases:
            return []
        self.base.FuncBaseBuilder([repo], "files").build(benchmark="all")
        records = self.tools.load_pickle(f"cache/func_base/all_{repo}.pkl")
        records.sort(key=lambda record: (record["fpath"], record["metadata"]["lineno"]))
        self.tools.dump_pickle(records, f"cache/func_base/all_{repo}.pkl")
        _Asked.messages.clear()
        self.summaries.summary_codes([repo], self.language, benchmark="all", summary_cuda=-1)
        self.summaries.encode_texts([repo], "cpu", benchmark="all")
        self.bases[repo] = self.tools.load_pickle(f"cache/func_base/all_{repo}_encoded.pkl")
        return list(_Asked.messages)

    def _combined(self, example: Any, blocks: Any, task: Mapping[str, Any]) -> str:
        self.tools.dump_pickle([example], f"cache/func_retrieval/sample_{self.language}.pkl")
        similar = _lines("similar.jsonl", {"metadata": {**_metadata(task), "top_k_context": blocks}})
        named = {"benchmark": "sample", "lang": self.language, "rc_file": similar, "prompt_output": "prompts.jsonl"}
        self.run.combine_rc_and_api(SimpleNamespace(uer=1, fsr=1, **named))
        return str(self.tools.load_jsonl("prompts.jsonl")[0]["prompt"])


def _drive(path: str) -> None:
    """Run a program over the tasks of a job in this process, and write its answers next to the job's file."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    programs: dict[str, Any] = {"repocoder": _RepoCoder, "infercom": _InferCom}
    program = programs[job["program"]](job)
    answers = []
    for task in job["tasks"]:
        changed = {task["path"], *task["hidden"]}
        before = {name: Path("files", task["repo"], name).read_text(encoding="utf-8") for name in changed}
        program.begin(task)
        _place(task)
        answers.append(program(task))
        for name, text in before.items():
            Path("files", task["repo"], name).write_text(text, encoding="utf-8")
    Path(job["answers"]).write_text(json.dumps(answers), encoding="utf-8")


# Counting


@dataclass(slots=True)
class _Tally:
    equal: int = 0
    of: int = 0
    differ: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, mine: str, theirs: str | None) -> None:
        """Count one pair. `theirs` is None if the program skips the task."""
        self.of += 1
        if mine == theirs:
            self.equal += 1
        else:
            self.differ[_difference(mine, theirs)] += 1

    @property
    def data(self) -> dict[str, Any]:
        return {"equal": self.equal, "of": self.of, "differ": dict(sorted(self.differ.items()))}


def _difference(mine: str, theirs: str | None) -> str:
    """Return the first part that differs, from the prompt's end."""
    if theirs is None:
        return "the program leaves the task out"
    mark = "# Here are some APIs that may be used from other files\n"
    (similar, _, rest), (other, _, others) = mine.rpartition(mark), theirs.rpartition(mark)
    if rest == others:
        return "similar code"
    return "APIs" if similar == other else "APIs and similar code"


def _tasks(home: Home, name: str, language: str, most: int) -> list[_Task]:
    sample_set = sample_sets.load(home, name)
    eligible = [sample for sample in sample_set.samples if str(sample.language) == language]
    snapshots = sample_sets.snapshots(home, sample_set, {sample.repo for sample in eligible})
    return [_Task(sample, snapshots[sample.repo]) for sample in planned_samples(eligible, most)]


def _driven(program: str, options: argparse.Namespace, tasks: Sequence[_Task], data: Any) -> list[dict[str, Any]]:
    """Return a program's answers to the tasks, from its own process; empty without a checkout."""
    checkout = getattr(options, program)
    if checkout is None:
        print(f"{program}: not counted; give a checkout with --{program} FOLDER")
        return []
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            for path, text in task.snapshot.texts.items():
                place = Path(folder, "files", task.sample.repo, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
        language = str(tasks[0].sample.language)
        job = {
            "program": program,
            "checkout": str(checkout.absolute()),
            "p50k": str(options.p50k.absolute()),
            "folder": folder,
            "answers": f"{folder}/answers.json",
            "tasks": data,
            "language": language,
            "suffix": {"python": ".py", "java": ".java"}[language],
        }
        job_file = Path(folder, "job.json")
        job_file.write_text(json.dumps(job), encoding="utf-8")
        quiet = {**os.environ, "TQDM_DISABLE": "1"}
        command = [sys.executable, "-m", "scripts.fidelity_page", "--job", str(job_file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
        if done.returncode:
            print(f"{program}: the released program failed: {done.stderr[-3000:]}")
            return []
        answers: list[dict[str, Any]] = json.loads(Path(job["answers"]).read_text(encoding="utf-8"))
        return answers


def _count(options: argparse.Namespace, language: str, most: int) -> dict[str, dict[str, Any]]:
    if not most:
        return {}
    tasks = _tasks(Home(options.home), options.samples, language, most)
    retrieval = _retrieval(options.p50k)
    ask_with(released_templates(options.infercom) if options.infercom else {})
    prompts = [ours(task, retrieval) for task in tasks]
    data = [task.for_programs() for task in tasks]
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    first = _driven("repocoder", options, tasks, data)
    for mine, theirs in zip(prompts, first, strict=False):
        for name, kind in (("first", "undrafted"), ("second", "all"), ("joined", "joined")):
            prompt = theirs[kind] and theirs[kind]["prompt"]
            tallies[name].add(mine[name], prompt)
            _keep(options.keep, f"{name} {mine['id']}", mine[name], prompt)
    blocks = {"infercom": "joined", "releaseB": "first"}
    for record, theirs in zip(data, first, strict=False):
        record["blocks"] = {
            name: theirs[kind]["metadata"]["top_k_context"] if theirs[kind] else [] for name, kind in blocks.items()
        }
    answers = _driven("infercom", options, tasks, data) if first else []
    for task, mine, theirs in zip(tasks, prompts, answers, strict=False):
        tallies["infile"].add(mine["infile"], theirs["infile"])
        for name in blocks:
            for kind in ("", " whole"):
                prompt = theirs[f"{name}{kind or ' seen'}"]
                tallies[f"{name}{kind}"].add(mine[name], prompt)
                _keep(options.keep, f"{name}{kind} {mine['id']}", mine[name], prompt)
        if theirs["asked"]:
            _add_summaries(tallies["summaries"], task, theirs["asked"])
    return {name: tally.data for name, tally in tallies.items()}


def _add_summaries(tally: _Tally, task: _Task, messages: Sequence[Any]) -> None:
    theirs = Counter((system["content"], user["content"]) for system, user in messages)
    cut, language = cutter("summary(quirks=on)"), task.sample.language
    units = (unit for path, text in task.snapshot.texts.items() for unit in cut(path, text, language))
    mine = Counter((SYSTEM, summary_prompt(unit.code, language)) for unit in units)
    tally.of += theirs.total()
    tally.equal += (mine & theirs).total()


def _keep(folder: Path | None, at: str, mine: str, theirs: str | None) -> None:
    if folder is not None and mine != theirs:
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.#-]+", "_", at)
        (folder / f"{name}.ours").write_text(mine, encoding="utf-8")
        (folder / f"{name}.theirs").write_text(theirs or "", encoding="utf-8")


def _retrieval(p50k: Path) -> Retrieval:
    tokens = P50kBase(p50k)
    layout.count_in(tokens)

    def summarise(language: Language, units: Sequence[Unit]) -> list[str]:
        return [given_summary(summary_prompt(unit.code, language)) for unit in units]

    return Retrieval(summarise=summarise, tokens=tokens.ids)


def _commit(checkout: Path | None) -> str:
    if checkout is None:
        return "not run"
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _record(options: argparse.Namespace, counts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    checkouts = f"microsoft/CodeT {_commit(options.repocoder)}, MethodJiao/InferCom {_commit(options.infercom)}"
    names = [name for name in _ROWS if any(name in of for of in counts.values())]
    return {
        "notes": [
            f"programs: {checkouts}",
            f"samples: from `{options.samples}`, chosen as by `--limit`; budgets and windows in tokens of p50k_base",
            "equal inputs of both sides: the draft (ten lines of code behind the cursor), summaries (words of the "
            "summary's prompt, with its digest), vectors (`hashed`), scores rounded to five digits",
            "changed for the comparison: the programs read files and windows in the order of paths, not of the disk or "
            "of ending processes; InferCom gets only the functions of the target file that a view shows, unless a row "
            "names others",
        ],
        "rows": [
            {
                "ours": _ROWS[name][0],
                "program": _ROWS[name][1],
                "counts": {language: of[name] for language, of in counts.items() if name in of},
            }
            for name in names
        ],
    }


def main() -> None:
    """Write docs/fidelity.md, with new counts if checkouts are given."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repocoder", type=Path, help="a checkout of microsoft/CodeT")
    parser.add_argument("--infercom", type=Path, help="a checkout of InferCom's release")
    parser.add_argument("--p50k", type=Path, help="the vocabulary of p50k_base (see docs/strategies.md)")
    parser.add_argument("--home", type=Path, help="the home with the samples and their repositories")
    parser.add_argument("--samples", default="ctxbench-2-lite", help="the sample set")
    parser.add_argument("--python", type=int, default=30, help="number of Python samples")
    parser.add_argument("--java", type=int, default=20, help="number of Java samples")
    parser.add_argument("--keep", type=Path, help="a folder for prompts that differ")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        _drive(options.job)
        return
    if options.repocoder or options.infercom:
        if options.p50k is None or options.home is None:
            parser.error("counting needs --p50k and --home")
        limits = {"python": options.python, "java": options.java}
        counts = {language: _count(options, language, most) for language, most in limits.items()}
        COUNTS.write_text(json.dumps(_record(options, counts), indent=1) + "\n", encoding="utf-8")
    else:
        print("no checkout was given (--repocoder, --infercom), so the stored counts stay")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
