"""Containers as boxes: their permissions, communication and removal."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.docker.box import DockerBox, remove
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.docker.launcher import USERS, DockerLauncher, EngineFacts, started
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Environment
from tests.sandbox.docker.standin import run

pytestmark = pytest.mark.slow
SOON = 30.0


def wait_until_removed(client: Client, name: str, seconds: float = SOON) -> bool:
    deadline = time.monotonic() + seconds
    while client.api.containers(all=True, filters={"id": name}):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_the_first_process_has_no_privileges(box: DockerBox) -> None:
    fields = dict(line.split(":\t") for line in run(box, "value = open('/proc/self/status').read()").splitlines())
    assert (fields["Pid"], fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "1", "2")
    user, *others = {int(number) for number in f"{fields['Uid']} {fields['Gid']}".split()}
    assert user in USERS and not others
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}


def test_each_box_has_its_own_user_with_a_name(launcher: DockerLauncher) -> None:
    boxes = [launcher.start() for _ in range(3)]
    try:
        asked = "import grp, os, pwd; value = [os.getuid(), os.getgid(), pwd.getpwuid(os.getuid())[0]]"
        asked += "; value.append(grp.getgrgid(os.getgid())[0])"
        users = [run(box, asked) for box in boxes]
    finally:
        for box in boxes:
            box.end()
    assert len({user for user, *_ in users}) == 3
    assert all(user == group and names == ["nobody", "nogroup"] for user, group, *names in users)


def test_a_user_id_taken_by_another_process_is_not_reused(engine: Client, launcher: DockerLauncher) -> None:
    free, taken = USERS[-2:]
    settings = launcher._settings(taken)
    other = engine.api.create_container(name=f"ctxbench-box-{taken}", **settings)["Id"]
    try:
        few = EngineFacts(launcher._engine.processors, range(free, taken + 1))
        boxes = [started(engine, few, launcher._settings)]
        try:
            assert run(boxes[0], "import os; value = os.getuid()") == free
            with pytest.raises(SandboxLost, match="2 boxes, the maximum.*doctor --clean"):
                boxes.append(started(engine, few, launcher._settings))
        finally:
            for box in boxes:
                box.end()
    finally:
        remove(engine, other)


@pytest.mark.parametrize("option", ["name=userns", "name=rootless", "name=seccomp,profile=default"])
def test_an_engine_that_maps_users_gets_user_ids_below_65536(option: str) -> None:
    api = SimpleNamespace(info=lambda: {"NCPU": 3, "SecurityOptions": [option]})
    engine = EngineFacts.of(SimpleNamespace(api=api))
    assert engine.processors == 3
    assert (engine.users == USERS) == ("seccomp" in option)
    assert engine.users[-1] < 65536 or engine.users == USERS


def test_socket_buffers_are_limited(box: DockerBox) -> None:
    read = "value = [open('/proc/sys/net/ipv4/' + name).read().split()[2] for name in ('tcp_rmem', 'tcp_wmem')]"
    assert run(box, read) == ["262144", "262144"]


def test_closed_connections_are_not_kept(box: DockerBox) -> None:
    assert run(box, "value = open('/proc/sys/net/ipv4/tcp_max_tw_buckets').read()") == "0\n"


def test_the_environment_contains_only_declared_variables(box: DockerBox) -> None:
    assert run(box, "import os; value = dict(os.environ)") == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/work",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": "/ctxbench/lib:/ctxbench/site",
        "LIMIT": "3",
    }


def test_only_the_boxs_own_folders_are_writable(box: DockerBox) -> None:
    code = """
import os
value = []
for top, folders, files in os.walk("/"):
    if top.startswith(("/proc", "/work", "/dev/pts")):
        folders.clear()
        continue
    for path in [top, *(os.path.join(top, name) for name in files)]:
        if os.access(path, os.W_OK) and not os.path.islink(path):
            value.append(path)
"""
    writable = set(run(box, code))
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx")}
    assert writable - devices == {"/dev/shm", "/dev/mqueue"}
    assert run(box, "open('/dev/mqueue/left', 'w')").startswith("OSError")


def test_a_box_does_not_contain_the_answers(box: DockerBox) -> None:
    code = "import subprocess; value = subprocess.run(['grep', '-rlI', 'SECRET = 1', '/ctxbench', '/work', '/etc', \
'/home', '/opt', '/root', '/srv', '/var'], capture_output=True, text=True).stdout"
    assert run(box, code, 120) == ""


def test_limits_on_disk_open_files_and_processes_are_enforced(box: DockerBox) -> None:
    fill = "open('/work/a', 'wb').write(bytes(9 << 20))"
    assert "No space left" in run(box, fill)
    assert "No space left" in run(box, "import os\nos.remove('/work/a')\nfor n in range(600): open(f'/work/{n}', 'w')")
    assert "Too many open files" in run(box, "kept = [open('/dev/null') for n in range(300)]")
    forks = """
import os, signal
pids = []
try:
    while len(pids) < 200:
        pid = os.fork()
        if not pid:
            signal.pause()
        pids.append(pid)
except OSError:
    pass
value = len(pids)
os.kill(-1, signal.SIGKILL)
for pid in pids:
    os.waitpid(pid, 0)
"""
    assert 50 < run(box, forks) < 64


def test_a_box_has_no_network(box: DockerBox) -> None:
    assert run(box, "import socket; value = [name for _, name in socket.if_nameindex()]").startswith("Permission") or (
        run(box, "import os; value = os.listdir('/sys/class/net')") == ["lo"]
    )
    reach = "import socket; socket.create_connection(('{}', 53), 5)"
    for host in ("172.17.0.1", "1.1.1.1"):
        assert "unreachable" in run(box, reach.format(host))
    # By default, the engine would copy the machine's name servers and search domains.
    lines = run(box, "value = open('/etc/resolv.conf').read().splitlines()")
    assert [line for line in lines if line and not line.startswith("#")] == ["nameserver 127.0.0.1"]
    assert not any("ExtServers" in line for line in lines)


def test_large_messages_pass_in_both_directions(box: DockerBox) -> None:
    text = "x" * 6_000_000
    assert run(box, f"value = len('{text}') * 'y'", 60) == "y" * len(text)


def test_receiving_stops_at_the_deadline(box: DockerBox) -> None:
    begun = time.monotonic()
    with pytest.raises(SandboxLost, match="did not answer in time"):
        box.receive(begun + 0.5)
    assert 0.4 < time.monotonic() - begun < 5


def test_sending_to_a_guest_that_does_not_read_stops_at_the_deadline(box: DockerBox) -> None:
    box.send(b"\0\0\0\x10import time\nwhile 1: time.sleep(9)"[:20], time.monotonic() + 5)
    box.send(b"\0\0\0\x22import time; time.sleep(600); a = 1", time.monotonic() + 5)
    with pytest.raises(SandboxLost, match="did not answer in time"):
        box.send(bytes(64 << 20), time.monotonic() + 2)


def test_ending_a_box_removes_its_container_and_may_be_repeated(engine: Client, launcher: DockerLauncher) -> None:
    box = launcher.start()
    assert run(box, "value = 1") == 1
    assert box.end() == ""
    assert wait_until_removed(engine, box.name, 0)
    assert box.end() == ""
    for use in (lambda: box.send(b"x", time.monotonic() + 1), lambda: box.receive(time.monotonic() + 1)):
        with pytest.raises(SandboxLost):
            use()


def test_ending_a_box_wakes_a_waiting_receiver(launcher: DockerLauncher) -> None:
    box, met = launcher.start(), []

    def wait() -> None:
        try:
            box.receive(time.monotonic() + 60)
        except SandboxLost as lost:
            met.append(lost)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    assert box.end() == ""
    thread.join(10)
    assert len(met) == 1 and not thread.is_alive()


def test_ending_a_box_returns_how_its_guest_ended(launcher: DockerLauncher) -> None:
    def why(code: str) -> str:
        box = launcher.start()
        with pytest.raises(SandboxLost):
            run(box, code)
        return box.end()

    assert why("import sys; sys.exit('my last words')") == "it exited with 1; its last output: my last words"
    assert why("import os; os._exit(7)") == "it exited with 7"
    assert why("kept = bytearray(1 << 30)").startswith("it exited with 137, out of memory")


def test_a_removed_container_is_lost_and_ends_without_an_error(engine: Client, launcher: DockerLauncher) -> None:
    box = launcher.start()
    assert run(box, "value = 1") == 1
    engine.api.remove_container(box.name, force=True)
    with pytest.raises(SandboxLost):
        run(box, "value = 1")
    assert "137" in box.end()


def test_a_failed_start_raises_sandbox_lost_and_leaves_no_container(
    engine: Client, launcher: DockerLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one["Id"] for one in engine.api.containers(all=True)}
    api = launcher._client.api
    real, made = api.create_container, []

    def remembered(**settings: Any) -> Any:
        made.append(real(**{**settings, "entrypoint": ["/no/such/program"]}))
        return made[-1]

    monkeypatch.setattr(api, "create_container", remembered)
    with pytest.raises(SandboxLost, match="no such file"):
        launcher.start()
    assert made and made[0]["Id"] not in before
    assert wait_until_removed(engine, made[0]["Id"], 0)


KILLED = """
import os, sys
from pathlib import Path
from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.types import Environment, Limits
from tests.sandbox.docker.standin import GUEST, run
library = {{"sandbox/guest/__main__.py": GUEST, "name.txt": {name!r}.encode()}}
environment = Environment(name={name!r}, library=library, variables=(("LIMIT", "3"),))
with DockerSandbox(Path({cache!r}), base_image={base!r}).launcher(environment, Limits()) as launcher:
    boxes = [launcher.start() for _ in range(3)]
    assert [run(box, "value = 5") for box in boxes] == [5] * 3
    print(*[box.name for box in boxes], flush=True)
    sys.stdin.read()
"""


def test_a_killed_harness_leaves_no_container(
    engine: Client, docker_sandbox: DockerSandbox, environment: Environment, launcher: DockerLauncher, cache: Path
) -> None:
    code = KILLED.format(name=environment.name, cache=str(cache), base=docker_sandbox.base_image)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        names = harness.stdout.readline().decode().split()
        assert len(names) == 3
        labels = [engine.api.inspect_container(name)["Config"]["Labels"]["ctxbench.owner"] for name in names]
        assert {label.partition(":")[0] for label in labels} == {str(harness.pid)}
        os.kill(harness.pid, signal.SIGKILL)
    assert all(wait_until_removed(engine, name) for name in names)
