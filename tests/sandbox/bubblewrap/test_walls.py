"""What the first process of a box can see and do, before the guest confines itself and its jobs further."""

import os
import socket
import sys
import textwrap
from pathlib import Path

import pytest

from tests.sandbox.bubblewrap.conftest import Driver

MIB = 1 << 20


def code(text: str) -> str:
    return "import json, os, socket, subprocess, sys\n" + textwrap.dedent(text)


def test_the_first_process_has_no_privileges(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
        mapped = open("/proc/self/uid_map").read().split()
        print(json.dumps([os.getpid(), os.getresuid(), os.getgroups(), mapped, status]))
        """)
    )
    pid, users, groups, mapped, status = found
    assert pid == 1 and users == [1000, 1000, 1000] and groups == []
    assert mapped[0] == "1000" and mapped[2] == "1"  # the box has no other user
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    # Except the signals that Python ignores, and two of the C library's signals that programs cannot set.
    assert int(status["SigIgn"], 16) & ~0x1001000 & ~0x180000000 == 0


@pytest.mark.slow
def test_on_the_host_each_box_is_a_different_user_and_never_root(run_as: Driver) -> None:
    seen = [
        run_as.say(code("print(json.dumps([os.stat('/work').st_uid, open('/proc/self/mounts').read()]))"))
        for _ in range(2)
    ]
    # The mount table shows the owner of a tmpfs by the host's user ID.
    owners = [text.partition(" /work tmpfs ")[2].partition("uid=")[2].partition(",")[0] for _, text in seen]
    assert [inside for inside, _ in seen] == [1000, 1000]
    if run_as.root:
        assert all(int(owner) >= 0x70000000 for owner in owners) and owners[0] != owners[1]
    else:
        assert "0" not in owners


@pytest.mark.slow
def test_jobs_get_exactly_the_declared_environment(run_as: Driver) -> None:
    asked = {"environment": {"variables": [["MPLBACKEND", "agg"]]}}
    found = run_as(jobs=[["cat", "/proc/1/environ"], ["env"]], **asked)
    # Jobs cannot read the guest's environment. They get only these variables.
    assert "of-the-host" not in str(found)
    values = dict(line.split("=", 1) for line in found["outcomes"][1]["output"].splitlines())
    assert values == {
        "PATH": "/ctxbench/bin:/ctxbench/site/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": values["HOME"],
        "TMPDIR": values["TMPDIR"],
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": "/ctxbench/lib:/ctxbench/site",
        "MPLBACKEND": "agg",
    }


def test_the_hosts_environment_is_not_visible_in_proc(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        pids = [p for p in os.listdir("/proc") if p.isdigit()]
        print(json.dumps({p: open(f"/proc/{p}/environ").read() for p in pids}))
        """)
    )
    assert list(found) == ["1"] and "SECRET" not in found["1"] and "PATH=/ctxbench/bin" in found["1"]


def test_the_first_process_inherits_only_pipes(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        handles = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        print(json.dumps({name: os.readlink(name) for name in handles if os.path.lexists(name)}))
        """)
    )
    assert set(found) == {f"/proc/self/fd/{number}" for number in range(3)}
    assert all(target.startswith("pipe:") for target in found.values())


def test_the_box_contains_only_the_host_files_that_it_needs(run_as: Driver) -> None:
    root, etc, home, passwd, mounts = run_as.say(
        code("""
        home = [entry for place in ("/root", "/home", "/var", "/run", "/tmp", "/opt", "/mnt", "/srv", "/boot", "/media")
                for _, _, files in os.walk(place) for entry in files]
        texts = [open(name).read() for name in ("/etc/passwd", "/proc/self/mounts")]
        print(json.dumps([os.listdir("/"), os.listdir("/etc"), home, *texts]))
        """)
    )
    system = {"bin", "ctxbench", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr", "work"}
    # The root may also contain the first folder of the interpreter's path, for a link.
    assert set(root) - system <= {Path(sys.base_prefix).parts[1]}
    assert home == []
    assert not {"shadow", "hostname", "resolv.conf", "machine-id", "ssh", "gshadow", "sudoers"} & set(etc)
    assert passwd.splitlines()[1].startswith("ctxbench:x:1000:1000:") and len(passwd.splitlines()) == 3
    kept = [line.split() for line in mounts.splitlines()]
    writable = {where for _, where, _, options, *_ in kept if "rw" in options.split(",")}
    assert writable <= {
        "/proc",
        "/dev/shm",
        "/work",
        "/dev/pts",
        *(f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")),
    }
    assert all("nosuid" in options for _, _, _, options, *_ in kept)
    assert all("nodev" in options for _, where, kind, options, *_ in kept if where in ("/work", "/dev/shm", "/"))


def test_only_the_working_folder_and_shared_memory_are_writable(run_as: Driver) -> None:
    refused = run_as.say(
        code("""
        places = ["/x", "/dev/x", "/etc/x", "/etc/passwd", "/usr/x", "/usr/bin/x", "/sys/x", "/proc/x",
                  "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/memory.max",
                  "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/ctxbench/x", "/ctxbench/lib/x",
                  "/ctxbench/site/x", "/ctxbench/bin/x", "/ctxbench/python/x", "/work/x", "/dev/shm/x"]
        def wrong(place):
            try:
                open(place, "a").write("x")
            except OSError:
                return None
            return place
        print(json.dumps([place for place in places if wrong(place)]))
        """)
    )
    assert refused == ["/work/x", "/dev/shm/x"]


def test_files_are_bounded_in_bytes_and_in_number(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        def fill(folder):
            number = size = 0
            try:
                for number in range(10**6):
                    open(f"{folder}/{number}", "w").close()
            except OSError as error:
                reason = error.strerror
            for n in range(number):
                os.unlink(f"{folder}/{n}")
            try:
                with open(f"{folder}/big", "wb", 0) as big:
                    while True:
                        size += big.write(bytes(1 << 16))
            except OSError as error:
                return [number, reason, size, error.strerror]
        print(json.dumps([fill("/work"), fill("/dev/shm")]))
        """),
        limits={"disk": 8 * MIB, "inodes": 500},
    )
    full = "No space left on device"
    assert found == [[499, full, 8 * MIB, full], [999, full, 16 * MIB, full]]


def test_the_network_and_the_hosts_sockets_are_unreachable(run_as: Driver, tmp_path: Path) -> None:
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        name = f"\0ctxbench-test-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        interfaces, results = run_as.say(
            code(f"""
            def reach(family, address):
                try:
                    with socket.socket(family) as s:
                        s.settimeout(2)
                        s.connect(address)
                except OSError as error:
                    return type(error).__name__
                return "reached"
            names = [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]]
            print(json.dumps([names, [
                reach(socket.AF_INET, ("127.0.0.1", {tcp.getsockname()[1]})), reach(socket.AF_INET, ("192.0.2.1", 80)),
                reach(socket.AF_UNIX, {name!r}), reach(socket.AF_UNIX, "/var/run/docker.sock")]]))
            """)
        )
    assert interfaces == ["lo"]
    assert results == ["ConnectionRefusedError", "OSError", "ConnectionRefusedError", "FileNotFoundError"]


def test_namespaces_and_mounts_cannot_be_created(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def says(result):
            return ctypes.get_errno() if result else 0
        made = {flag: says(libc.unshare(flag)) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000)}
        made["remount"] = says(libc.mount(None, b"/", None, ctypes.c_ulong(32), None))
        made["mount"] = says(libc.mount(b"tmpfs", b"/work", b"tmpfs", ctypes.c_ulong(0), None))
        made["umount"] = says(libc.umount2(b"/usr", 2))
        made["chroot"] = says(libc.chroot(b"/work"))
        made["sethostname"] = says(libc.sethostname(b"x", 1))
        print(json.dumps(made))
        """)
    )
    assert all(found.values()), found


def test_the_first_process_sees_only_itself(run_as: Driver) -> None:
    assert run_as.say(code("print(json.dumps([p for p in os.listdir('/proc') if p.isdigit()]))")) == ["1"]


@pytest.mark.slow
def test_the_interpreter_runs_without_variables_and_without_the_hosts_packages(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        import importlib.metadata
        def run(*argv, **more):
            done = subprocess.run(argv, capture_output=True, text=True, **more)
            return done.stdout + done.stderr
        found = [run(sys.executable, "-c", "import sys, ssl, sqlite3; print(sys.prefix)", env={}),
                 run("python", "-c", "import sys; print(sys.version_info >= (3, 11))")]
        print(json.dumps([*found, [d.name for d in importlib.metadata.distributions()], sys.path]))
        """)
    )
    assert found[0].strip() in ("/usr", "/usr/local", "/ctxbench/python") and found[1] == "True\n"
    assert found[2] == []
    assert found[3][:2] == ["/ctxbench/lib", "/ctxbench/site"]


def test_socket_buffers_are_limited_and_the_loopback_works(run_as: Driver) -> None:
    found = run_as.say(
        code("""
        sizes = [open(f"/proc/sys/net/ipv4/{name}").read().split()[2] for name in ("tcp_rmem", "tcp_wmem")]
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            client.sendall(b"hello")
            sizes.append(server.accept()[0].recv(5).decode())
        try:
            open("/proc/sys/net/ipv4/tcp_rmem", "w").write("4096 131072 33554432")
        except OSError as error:
            sizes.append(error.strerror)
        print(json.dumps(sizes))
        """)
    )
    assert found[:3] == ["262144", "262144", "hello"]
    assert found[3] in ("Permission denied", "Read-only file system")
