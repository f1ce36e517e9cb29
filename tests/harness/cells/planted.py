"""A strategy that reads everything it can reach, and writes the secrets that it finds into its prompt.

It looks for words that begin with a mark. Only the test knows the whole words. Each probe has a name, so that the test
can say which probes succeed without isolation.
"""

import builtins
import contextlib
import ctypes
import gc
import glob
import inspect
import itertools
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from ctxbench.strategies import Block, BlockKind, Prompt, Query, Repository, strategy
from ctxbench.strategies.api import Generate

KEPT: list[str] = []


MOST = 400_000
"""The maximum number of objects that one search visits, so that a large heap takes only seconds."""


def _texts(roots, depth=4):
    """Yield every string that some objects reference, directly or indirectly."""
    seen, level = set(), list(roots)
    for _ in range(depth):
        following = []
        for item in level:
            if id(item) in seen or len(seen) > MOST:
                continue
            seen.add(id(item))
            if isinstance(item, str):
                yield item
            elif isinstance(item, bytes | bytearray):
                yield bytes(item).decode("utf-8", "replace")
            else:
                following += gc.get_referents(item)
        level = following


def attributes(query, repo, generate, home):
    yield from _texts([repo, generate, query], depth=7)
    for name in dir(repo):
        with contextlib.suppress(Exception):
            yield repr(getattr(repo, name))


def garbage_collector(query, repo, generate, home):
    yield from _texts(gc.get_objects(), depth=3)


def frames(query, repo, generate, home):
    stacks = [info.frame for info in inspect.stack()] + list(sys._current_frames().values())
    for frame in stacks:
        yield from _texts(list(frame.f_locals.values()), depth=6)
    for thread in threading.enumerate():
        yield from _texts([thread.__dict__], depth=6)


def modules(query, repo, generate, home):
    for module in list(sys.modules.values()):
        with contextlib.suppress(Exception):
            yield from _texts([vars(module)], depth=5)


def closures(query, repo, generate, home):
    for function in (generate, repo.read, repo.files, repo.similar_windows):
        for cell in getattr(function, "__closure__", None) or ():
            yield from _texts([cell.cell_contents], depth=7)
        yield from _texts([getattr(function, "__self__", None), getattr(function, "__globals__", {})], depth=5)


def home_files(query, repo, generate, home):
    for folder, _, names in os.walk(home):
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(folder, name).read_bytes().decode("utf-8", "replace")
    for name in ("samples/set/references.jsonl", "results.db", "repos/demo/key/shop/checkout.py"):
        for path in (f"{home}/{name}", f"/proc/self/root{home}/{name}", f"{home}/../{Path(home).name}/{name}"):
            with contextlib.suppress(OSError):
                yield Path(path).read_bytes().decode("utf-8", "replace")


def links(query, repo, generate, home):
    with contextlib.suppress(OSError):
        link = Path(tempfile.mkdtemp(), "link")
        link.symlink_to(home)
        yield (link / "samples/set/references.jsonl").read_text()
    with contextlib.suppress(OSError):
        os.chdir(home)
        yield Path("samples/set/references.jsonl").read_text()
    with contextlib.suppress(OSError):
        hard = Path(tempfile.mkdtemp(), "hard")
        os.link(f"{home}/samples/set/references.jsonl", hard)
        yield hard.read_text()


def other_processes(query, repo, generate, home):
    for pid in _ancestors():
        for name in ("environ", "cmdline", "maps", "cwd/samples/set/references.jsonl"):
            with contextlib.suppress(OSError):
                yield Path(f"/proc/{pid}/{name}").read_bytes().decode("utf-8", "replace")
        for path in glob.glob(f"/proc/{pid}/fd/*"):
            with contextlib.suppress(OSError):
                if os.path.isfile(path):
                    yield Path(path).read_bytes()[:1_000_000].decode("utf-8", "replace")


def _ancestors():
    """Return the fork server and the trusted process. The probes touch no other processes."""
    pids, pid = [], os.getpid()
    for _ in range(2):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        pids.append(pid)
    return pids


def _memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if not rights.startswith("rw") or end - start > 200_000_000:
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                yield memory.read(end - start).decode("latin-1")


def own_memory(query, repo, generate, home):
    with contextlib.suppress(OSError):
        yield from _memory("self")


def memory_of_others(query, repo, generate, home):
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in _ancestors():
        with contextlib.suppress(OSError):
            yield from _memory(pid)
        if libc.ptrace(16, pid, 0, 0) == 0:  # PTRACE_ATTACH
            yield "_".join(["zqx", "attached"])
            libc.ptrace(17, pid, 0, 0)


def environment(query, repo, generate, home):
    yield repr(dict(os.environ))
    with contextlib.suppress(OSError):
        yield subprocess.run(["env"], check=False, capture_output=True, text=True).stdout


def open_descriptors(query, repo, generate, home):
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        with contextlib.suppress(OSError):
            yield os.readlink(f"/proc/self/fd/{number}")
        with contextlib.suppress(OSError):
            if os.path.isfile(f"/proc/self/fd/{number}"):
                yield os.pread(number, 1_000_000, 0).decode("utf-8", "replace")


def path_tricks(query, repo, generate, home):
    path = query.path
    folder, _, name = path.rpartition("/")
    tricks = [
        f"./{path}",
        f"{folder}/./{name}",
        f"{folder}/../{path}",
        f"{folder}//{name}",
        path.upper(),
        path.title(),
        f"/{path}",
        f"{home}/repos/demo/key/{path}",
        f"../../../{home}/samples/set/references.jsonl",
        path + " ",
        path + "\0",
        path.replace("/", "\\"),
        path,
        "",
    ]
    for trick in tricks:
        with contextlib.suppress(Exception):
            yield repo.read(trick)
    for name in repo.files():
        yield repo.read(name)


def similar_windows(query, repo, generate, home):
    guesses = ["zqx", "answer", "cart.total, rate", query.prefix[-400:], "return total", "import"]
    for guess in guesses:
        for size, stride in ((20, 10), (2, 1), (1, 1), (200, 100)):
            with contextlib.suppress(Exception):
                for hit in repo.similar_windows(guess, top=10_000, size=size, stride=stride):
                    yield hit.text


def searches(query, repo, generate, home):
    """Try every unit with every ranker, to reach indices, cached vectors and summaries."""
    guesses = ["zqx", "later checkout cart.total rate", query.prefix[-400:], "the end of the file", query.id]
    units = ("function", "usage", "summary", "chunk(lines=1)", "mini-block", "words(count=3)", "usage(quirks=on)")
    for guess, unit, ranker in itertools.product(guesses, units, ("bm25", "jaccard", "hashed")):
        with contextlib.suppress(Exception):
            for hit in repo.search(guess, unit=unit, ranker=ranker, top=10_000):
                yield f"{hit.text} {hit.name} {hit.matched}"
    for pattern in ("zqx", "z|q|x", "_.*_", "e"):
        with contextlib.suppress(Exception):
            for hit in repo.grep(pattern, top=10_000):
                yield hit.text
    for ranker in (f"minilm(path={home})", f"minilm(path='{home}/samples/set/references.jsonl')", "mpnet(revision=x)"):
        try:
            repo.similarity("x", ["y"], ranker=ranker)
            yield "_".join(["zqx", "opened", "ranker"])
        except Exception as error:  # noqa: BLE001
            yield str(error)


def left_by_others(query, repo, generate, home):
    yield from KEPT
    yield from getattr(builtins, "kept_by_planted", [])
    places = [
        tempfile.gettempdir(),
        os.path.dirname(tempfile.gettempdir()),
        "/tmp",
        "/dev/shm",
        "/var/tmp",
        os.getcwd(),
    ]
    for place in places:
        for path in glob.glob(f"{place}/*/zqnote*") + glob.glob(f"{place}/zqnote*"):
            with contextlib.suppress(OSError):
                yield Path(path).read_text()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(1)
        peer.connect("\0zqnote")
        yield peer.recv(1_000_000).decode()


def network(query, repo, generate, home):
    port = int(Path(__file__).with_name("port").read_text())
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as peer:
        yield peer.recv(10_000).decode()


def devices(query, repo, generate, home):
    disks = [path for path in glob.glob("/dev/*") if Path(path).is_block_device()]
    for path in [*disks, "/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/1/environ", f"/proc/{os.getppid()}/cmdline"]:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            yield "_".join(["zqx", "opened", path.replace("/", "_")])


PROBES = (
    own_memory,  # first, before the other probes leave their findings in memory
    attributes,
    garbage_collector,
    frames,
    modules,
    closures,
    home_files,
    links,
    other_processes,
    environment,
    open_descriptors,
    path_tricks,
    similar_windows,
    searches,
    left_by_others,
    network,
    memory_of_others,
    devices,
)
ONLY_IN_A_CELL = (memory_of_others, devices)
"""Probes that could harm a process outside a cell."""


def _leave(note):
    """Leave a text for later cells, by every known way."""
    KEPT.append(note)
    builtins.kept_by_planted = [*getattr(builtins, "kept_by_planted", []), note]
    for place in (tempfile.gettempdir(), os.path.dirname(tempfile.gettempdir()), "/tmp", "/dev/shm", os.getcwd()):
        with contextlib.suppress(OSError):
            Path(place, f"zqnote{os.getpid()}").write_text(note)
    with contextlib.suppress(OSError):
        server = socket.socket(socket.AF_UNIX)
        server.bind("\0zqnote")
        server.listen()
        if os.fork() == 0:
            os.setsid()
            while True:
                peer, _ = server.accept()
                peer.sendall(note.encode())
                peer.close()


@strategy("planted")
def planted(
    query: Query, repo: Repository, generate: Generate, *, home: str = "", leave: bool = False, cell: bool = True
) -> Prompt:
    """Look for everything that must stay hidden."""
    if leave:
        _leave(repo.read(query.path))
        return Prompt(blocks=(Block(kind=BlockKind.TEXT, text="left"),))
    found = []
    for probe in PROBES:
        if not cell and probe in ONLY_IN_A_CELL:
            continue
        words = set()
        try:
            for text in probe(query, repo, generate, home):
                words.update(re.findall(r"zqx_\w+", text))
        except Exception as error:  # noqa: BLE001
            words.add(f"refused {type(error).__name__}: {error}")
        found.append(f"{probe.__name__}: {sorted(words)}\n")
    text = "".join(found)
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=text), Block(kind=BlockKind.INFILE, text=query.prefix)))
