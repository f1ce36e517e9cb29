"""Images that are taken as they stand: commands only, hardened as other boxes are, and told apart how they end."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.sandbox import leftovers
from ctxbench.sandbox.bubblewrap import BubblewrapSandbox
from ctxbench.sandbox.docker import DockerSandbox, images
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.docker.foreign import key
from ctxbench.sandbox.docker.launcher import USERS
from ctxbench.sandbox.docker.tars import archive
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.fake import FakeSandbox
from ctxbench.sandbox.types import MIB, Call, Command, Ended, Environment, Job, Limits, Outcome, Pool

FOLDER = "/home/travis/builds/repos"
PLAIN = Environment(name="foreign", image="nobody/has:this", folder=FOLDER)


def job(code: str, seconds: float = 20.0, **files: bytes) -> Job:
    argv = ("python3", "-c", textwrap.dedent(code))
    return Job(action=Command(argv=argv), seconds=seconds, files={f"{name}.py": data for name, data in files.items()})


@pytest.fixture(scope="session")
def foreign(engine: Client) -> Environment:
    base = images.local_base(engine, os.environ.get("CTXBENCH_BASE_IMAGE") or images.OFFICIAL)
    assert base is not None
    return dataclasses.replace(PLAIN, image=base, tree={"a/b.py": b"SECRET = 1\n"}, variables=(("OURS", "1"),))


@pytest.fixture(scope="module")
def pool(docker_sandbox: DockerSandbox, foreign: Environment) -> Iterator[Pool]:
    docker_sandbox.prepare(foreign, lambda _: None)
    limits = Limits(memory=256 * MIB, disk=8 * MIB, inodes=500, output=4096)
    with docker_sandbox.open(foreign, limits=limits, width=2) as opened:
        yield opened


def containers(engine: Client) -> list[dict[str, Any]]:
    """Return this process's boxes."""
    found = engine.api.containers(all=True, filters={"label": "ctxbench.owner"})
    return [each for each in found if each["Labels"]["ctxbench.owner"].startswith(f"{os.getpid()}:")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requirements": ("pytest",)}, "nothing of ours"),
        ({"library": {"a.py": b""}}, "nothing of ours"),
        ({"preload": ("json",)}, "nothing of ours"),
        ({"folder": "work"}, "no folder"),
        ({"folder": "/"}, "no folder"),
        ({"folder": "/a/../b"}, "no folder"),
        ({"folder": "/a:b"}, "no folder"),
    ],
    ids=str,
)
def test_nothing_is_installed_and_the_folder_is_one(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        key(None, dataclasses.replace(PLAIN, **change))


def test_other_back_ends_refuse_in_one_line(tmp_path: Path) -> None:
    def never(_: Job) -> Outcome:
        raise AssertionError

    with pytest.raises(SandboxUnavailable, match="use --sandbox docker"):
        BubblewrapSandbox(tmp_path)._image(PLAIN, print)
    with pytest.raises(SandboxUnavailable, match="use --sandbox docker"):
        FakeSandbox(never).prepare(PLAIN, print)


def test_the_same_image_at_another_folder_or_with_another_tree_is_another_environment() -> None:
    others = [{"folder": "/b"}, {"image": "other"}, {"tree": {"a": b""}}, {"variables": (("A", "1"),)}]
    digests = {dataclasses.replace(PLAIN, **change).digest for change in others} | {PLAIN.digest}  # type: ignore[arg-type]
    assert len(digests) == 5


def test_equal_files_give_equal_bytes() -> None:
    assert archive({"b": b"1", "a": b"2"}) == archive({"a": b"2", "b": b"1"})
    assert len(archive({"a": b"2"}, ended=True)) == len(archive({"a": b"2"})) + 1024


@pytest.mark.slow
def test_an_image_that_is_not_here_or_has_no_shell_is_refused(docker_sandbox: DockerSandbox, engine: Client) -> None:
    with pytest.raises(SandboxUnavailable, match=r"nobody/has:this: no image .* is here; see `docker images`"):
        docker_sandbox.prepare(PLAIN, print)
    name = f"ctxbench-empty-{uuid.uuid4().hex}"
    engine.api.import_image_from_data(archive({"file": b"1"}, ended=True), repository=name)
    try:
        empty = dataclasses.replace(PLAIN, image=name)
        with pytest.raises(SandboxUnavailable) as caught, docker_sandbox.open(empty, limits=Limits()):
            pass
        assert "/bin/sh" in str(caught.value) and "\n" not in str(caught.value)
    finally:
        engine.api.remove_image(name, force=True)


@pytest.mark.slow
def test_a_volume_would_have_no_limit(docker_sandbox: DockerSandbox, engine: Client) -> None:
    name = f"ctxbench-volume-{uuid.uuid4().hex}"
    changes = ["VOLUME /data"]
    engine.api.import_image_from_data(archive({"file": b"1"}, ended=True), repository=name, changes=changes)
    try:
        with pytest.raises(SandboxUnavailable, match="declares the volume /data"):
            docker_sandbox.prepare(dataclasses.replace(PLAIN, image=name), print)
    finally:
        engine.api.remove_image(name, force=True)


@pytest.mark.slow
def test_only_commands_run(pool: Pool) -> None:
    with pytest.raises(ValueError, match="commands only"):
        pool.run(Job(action=Call(function="os:getcwd", arguments={})))
    with pytest.raises(ValueError, match="cannot be called"):
        pool.run(Job(action=Command(argv=("true",)), files={"../a": b""}))


@pytest.mark.slow
def test_it_is_nobody_without_rights_or_network(pool: Pool) -> None:
    outcome = pool.run(
        job(
            """
        import os, socket
        print(open("/proc/self/status").read())
        print(os.getcwd(), sorted(os.listdir(".")), open("a/b.py").read(), open("more.py").read())
        print("names", os.listdir("/sys/class/net"))
        tries = {path: lambda path=path: open(path, "w") for path in ("/etc/x", "/home/travis/x", "/root/x")}
        tries["root"] = lambda: os.setuid(0)
        tries["network"] = lambda: socket.create_connection(("172.17.0.1", 53), 5)
        for name, call in tries.items():
            try:
                call()
                print("done:", name)
            except OSError as error:
                print("refused:", name)
        print(os.environ["OURS"], os.environ["HOME"], "SECRET" in str(os.environ))
        """,
            more=b"later",
        )
    )
    fields = dict(line.split(":\t") for line in outcome.output.splitlines() if ":\t" in line)
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    user, *others = {int(number) for number in f"{fields['Uid']} {fields['Gid']}".split()}
    assert user in USERS and not others
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert f"{FOLDER} ['a', 'more.py'] SECRET = 1\n later" in outcome.output
    assert "names ['lo']" in outcome.output
    assert "done:" not in outcome.output and outcome.output.count("refused:") == 5
    assert outcome.output.rstrip().endswith("1 /tmp False")
    assert (outcome.ended, outcome.exit_code, outcome.truncated) == (Ended.EXITED, 0, False)


@pytest.mark.slow
def test_how_it_ends_is_told_apart(pool: Pool) -> None:
    ended = pool.run(job("print('said'); raise SystemExit(3)"))
    assert (ended.ended, ended.exit_code, ended.output) == (Ended.EXITED, 3, "said\n")
    killed = pool.run(job("import os; os.kill(os.getpid(), 11)"))
    assert (killed.ended, killed.signal, killed.exit_code, killed.out_of_memory) == (Ended.KILLED, 11, None, False)
    eaten = pool.run(job("kept = bytearray(1 << 30)"))
    assert (eaten.ended, eaten.signal, eaten.out_of_memory) == (Ended.KILLED, 9, True)
    # What speaks without a pause must not outlive its time.
    late = pool.run(job("while True: print('x' * 1000)", seconds=1.0))
    assert late.ended is Ended.TIMED_OUT and late.truncated and 1.0 <= late.seconds < 10.0
    assert len(late.output) < 5000
    assert pool.run(Job(action=Command(argv=("no-such-program",)))).exit_code == 127
    assert pool.run(Job(action=Command(argv=("sh", "-c", "exit 255")))).exit_code == 255


@pytest.mark.slow
def test_a_job_that_kills_all_it_can_has_killed_itself(pool: Pool) -> None:
    """Not the first process of its container, which is another user's."""
    outcome = pool.run(job("import os; print('said', flush=True); os.kill(-1, 9)"))
    assert (outcome.ended, outcome.signal, outcome.output) == (Ended.KILLED, 9, "said\n")


@pytest.mark.slow
def test_what_a_job_leaves_behind_is_reaped(pool: Pool) -> None:
    """More processes than there may be at once, whose parents are gone."""
    outcome = pool.run(
        job("""
        import os, time
        for _ in range(100):
            child = os.fork()
            if not child:
                os.fork()
                os._exit(0)
            os.waitpid(child, 0)
            while len([name for name in os.listdir("/proc") if name.isdigit()]) > 30:
                time.sleep(0.01)
        print("all gone")
        """)
    )
    assert (outcome.ended, outcome.output) == (Ended.EXITED, "all gone\n")


@pytest.mark.slow
def test_limits_hold_and_nothing_is_left_for_the_next(pool: Pool) -> None:
    filled = pool.run(job("open('left', 'w').write('x'); open('/tmp/a', 'wb').write(bytes(9 << 20))"))
    assert filled.exit_code == 1 and "No space left" in filled.output
    many = pool.run(
        job("""
        import os, sys
        print(sorted(os.listdir(".")))
        try:
            for n in range(600): open(f"{n}", "w").close()
        except OSError as error:
            print(error.strerror)
        pids = []
        try:
            while len(pids) < 200:
                pid = os.fork()
                if not pid: os.read(0, 1); import signal; signal.pause()
                pids.append(pid)
        except OSError:
            print("forks", len(pids) < 64)
        sys.stdout.flush()
        os.kill(-1, 9)
        """)
    )
    assert many.output.splitlines()[:3] == ["['a']", "No space left on device", "forks True"]


@pytest.mark.slow
def test_a_box_that_is_removed_from_outside_is_lost_and_tried_again(pool: Pool, engine: Client) -> None:
    done: list[Outcome] = []
    thread = threading.Thread(target=lambda: done.append(pool.run(job("import time; time.sleep(3); print('whole')"))))
    thread.start()
    deadline = time.monotonic() + 60
    while not (found := [each for each in containers(engine) if each["State"] == "running"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    engine.api.kill(found[0]["Id"])
    thread.join(120)
    assert [(each.ended, each.exit_code, each.output) for each in done] == [(Ended.EXITED, 0, "whole\n")]
    assert containers(engine) == []


@pytest.mark.slow
def test_a_pool_that_is_left_ends_its_boxes(
    docker_sandbox: DockerSandbox, foreign: Environment, engine: Client
) -> None:
    faults: list[Exception] = []

    def run(opened: Pool) -> None:
        try:
            opened.run(job("import time; time.sleep(60)", seconds=60))
        except SandboxLost as lost:
            faults.append(lost)

    with docker_sandbox.open(foreign, limits=Limits()) as opened:
        thread = threading.Thread(target=run, args=(opened,))
        thread.start()
        while not containers(engine):
            time.sleep(0.05)
    thread.join(60)
    assert len(faults) == 1 and containers(engine) == []


_STAYS = """
import os, signal, time
for handle in ("0", "1", "3"):
    try: os.open("/proc/1/fd/" + handle, os.O_RDWR)
    except OSError: pass
for number in (signal.SIGSTOP, signal.SIGKILL):
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try: os.kill(int(name), number)
            except OSError: pass
time.sleep(600)
"""
"""It keeps open what would tell that ctxbench has died, and stops and kills whatever would look."""


@pytest.mark.slow
@pytest.mark.parametrize("argv", [("sleep", "600"), ("python3", "-c", _STAYS)], ids=["honest", "wants to stay"])
def test_a_killed_process_leaves_a_container_that_ends_and_is_found(
    foreign: Environment, engine: Client, argv: tuple[str, ...]
) -> None:
    code = f"""
from pathlib import Path
from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.types import *
environment = Environment(name="foreign", image={foreign.image!r}, folder={FOLDER!r})
with DockerSandbox(Path("/nowhere")).open(environment, limits=Limits()) as pool:
    print("open", flush=True)
    pool.run(Job(action=Command(argv={argv!r}), seconds=600.0))
"""

    def theirs(pid: int) -> list[dict[str, Any]]:
        found = engine.api.containers(all=True, filters={"label": "ctxbench.owner"})
        return [each for each in found if each["Labels"]["ctxbench.owner"].startswith(f"{pid}:")]

    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        deadline = time.monotonic() + 60
        while not [each for each in theirs(process.pid) if each["State"] == "running"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        process.kill()
    while theirs(process.pid)[0]["State"] != "exited":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    ours = theirs(process.pid)[0]["Id"][:12]
    (found,) = [each for each in leftovers.containers() if each.what == f"container {ours}"]
    found.remove()
    assert theirs(process.pid) == []
