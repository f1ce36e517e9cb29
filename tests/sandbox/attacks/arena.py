"""The arena for attacks: a real back end's pool, a host with secrets, and checks of the host."""

import contextlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from ctxbench.sandbox.types import Call, Command, Ended, Environment, Job, Limits, Outcome, Pool
from tests.helpers import ports
from tests.helpers.sandboxes import real
from tests.sandbox.attacks import host
from tests.sandbox.attacks.case import Case

INSIDE = Path(__file__).parent / "inside"
CHECKOUT = Path(__file__).resolve().parents[3]
LIMITS = Limits()
HONEST = """
import mmap, os
print(sorted(os.listdir(".")), open("pkg/target.py").read().strip())
with open("full", "wb") as file:
    for _ in range(40):
        file.write(b"x" * (1 << 20))
for index in range(500):
    open(f"f{index}", "w").close()
for _ in range(20):
    if not os.fork():
        os._exit(0)
    os.wait()
held = mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_HUGEPAGE)
held[::4096] = bytes(len(held) // 4096)
print("processes:", len([name for name in os.listdir("/proc") if name.isdigit()]))
"""
"""A program that uses files, processes and huge memory pages. It runs after every attack."""
HONEST_SEEN = "['attack.py', 'pkg'] # blank\nprocesses: 3\n"


@dataclass
class Arena:
    """One pool of one back end, and the facts about the host that attacks know."""

    name: str
    pool: Pool
    token: str
    names: dict[str, str]
    hidden: tuple[str, ...]
    """Secrets of the host that no output may contain."""
    seen: host.Seen = field(default_factory=host.Seen)

    def run(self, case: Case) -> Outcome:
        return self.job(case.code, call=case.call, seconds=case.seconds)

    def job(self, code: str, *, call: bool = False, seconds: float = 20.0) -> Outcome:
        """Run a program as an attack that knows the values in `names`."""
        whole = self.fill(code)
        files = {"pkg/target.py": b"# blank\n", "attack.py": whole.encode()}
        action: Call | Command = Command(argv=("python3", "attack.py"))
        if call:
            del files["attack.py"]
            action = Call(function="attack_calls:run", arguments={"code": whole, "own": self.names["CONTROL"]})
        outcome = self.pool.run(Job(action=action, files=files, seconds=seconds))
        self.seen.look(self.token)
        for secret in self.hidden:
            assert secret not in outcome.output
            assert secret not in str(outcome.result)
        return outcome

    def fill(self, text: str) -> str:
        return re.sub(r"@([A-Z_]+)@", lambda found: self.names[found[1]], text)

    def honest(self) -> None:
        """Assert that an honest job finds no trace of earlier jobs and can use its full limits."""
        outcome = self.job(HONEST)
        assert (outcome.ended, outcome.exit_code, outcome.output) == (Ended.EXITED, 0, HONEST_SEEN)
        assert self.job("result = [40 + 2]\n", call=True).result == [42]


@contextlib.contextmanager
def arena(name: str, folder: Path) -> Iterator[Arena]:
    """Open a pool that reuses its boxes; assert afterwards that the host is unchanged."""
    token = secrets.token_hex(8)
    answer, control, banner, planted, variable = (secrets.token_hex(8) for _ in range(5))
    canary = folder / "canary"
    canary.mkdir(mode=0o777)
    canary.chmod(0o777)
    (canary / "secret").write_text(planted)
    (canary / "secret").chmod(0o666)
    environment = Environment(
        name="attacks",
        tree={"pkg/target.py": f"ANSWER = 'ANSWER-{answer}'\n".encode(), "pkg/__init__.py": b""},
        library={path.name: path.read_bytes() for path in sorted(INSIDE.glob("*.py"))},
        variables=(("CTXBENCH_ATTACK", token),),
    )
    with server(token, banner) as port, free_port() as free, patch.dict(os.environ, {f"SECRET_{token}": variable}):
        before = host.fingerprint(canary)
        sandbox = real(name)
        sandbox.prepare(environment, print)
        names = {
            "TOKEN": token,
            "PORT": str(port),
            "FREE_PORT": str(free),
            "ADDRESS": host.address(),
            "CANARY": str(canary),
            "CHECKOUT": str(CHECKOUT),
            "SECRET_NAME": f"SECRET_{token}",
            "CONTROL": f"ANSWER-{control}",
        }
        with sandbox.open(environment, limits=LIMITS, width=1, reuse=1_000_000) as pool:
            yield (here := Arena(name, pool, token, names, (answer, banner, planted, variable)))
        assert here.seen.boxes, "no process of a box was ever seen: the look at the host is blind"
        left = here.seen.left(token) + host.leftovers()
        assert not left, f"still there: {left}"
        changed = host.fingerprint(canary).items() ^ before.items()
        assert not changed, f"changed: {sorted(changed)}"


@contextlib.contextmanager
def server(token: str, banner: str) -> Iterator[int]:
    """Serve a secret on every address of this machine and on an abstract socket; yield the port."""
    tcp, local = socket.socket(), socket.socket(socket.AF_UNIX)
    with tcp, local:
        tcp.bind(("0.0.0.0", 0))
        local.bind(f"\0{token}")
        for listener in (tcp, local):
            listener.listen()
            threading.Thread(target=_answer, args=(listener, banner.encode()), daemon=True).start()
        with socket.create_connection(("127.0.0.1", tcp.getsockname()[1])) as own:
            assert own.recv(99) == banner.encode(), "the server that no box may reach does not answer anybody"
        yield tcp.getsockname()[1]


def _answer(listener: socket.socket, banner: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            with listener.accept()[0] as one:
                one.sendall(banner)


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """Yield a port on which nothing listens; assert that this never changed."""
    port = ports.free_port()
    reached, done = [], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                reached.append(time.monotonic())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield port
    finally:
        done.set()
        thread.join()
    assert reached == []
