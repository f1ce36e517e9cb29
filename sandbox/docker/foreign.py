"""Boxes of an image that is taken as it stands: nothing of ours in it but what the engine adds from outside.

Such an image may hold an old Python or none, so no guest of ours runs there. A job is one command in a
fresh container, under every limit that other boxes have. The container's first process only waits for the end of its
stdin; the job is a second program that the engine starts there, as another user. The tree and the job's files come as
a tar over that one's stdin into a file system in memory at `Environment.folder`, which covers what the image has
there; the program starts after that, and its time with it. The image needs ``sh``, ``head`` and ``tar``.

How a job ended is the engine's word, never the output's.
"""

from __future__ import annotations

import contextlib
import math
import posixpath
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxbench.sandbox.docker.box import DockerBox, Late, StreamEnded, executed
from ctxbench.sandbox.docker.engine import Client, engine_faults
from ctxbench.sandbox.docker.images import find
from ctxbench.sandbox.docker.launcher import SHM, EngineFacts, hardened, in_memory, started
from ctxbench.sandbox.docker.tars import archive
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.guest.capture import Output
from ctxbench.sandbox.link import check_paths
from ctxbench.sandbox.ownership import owner
from ctxbench.sandbox.pool import tried
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Limits, Outcome, Pool, digest_of

_PROBE = Job(action=Command(argv=("true",)), seconds=20.0)
SETUP_SECONDS = 180.0
"""Until a container has started and holds its tree, on a busy machine."""
_PROMPT_SECONDS = 10.0
"""Within which an engine answers that has passed on what a program said until its time was over."""
_SETTLED_SECONDS = 60.0
"""For the engine to say what a program that has ended, or hung up, ended with."""
_MOST_WORDS = 4096
_HOLD = "exec 3<&0; head -c 1 <&3 >/dev/null & wait $!"
"""Ends with the container's stdin, and so when ctxbench dies, or when a byte comes; the kernel then ends all others.
What did so as a job's own user the job could kill or stop, or keep its stdin open. A shell that waits reaps what a job
leaves."""
_SCRIPT = """exec 2>&1
head -c "$3" | tar -xf - -C "$1" && cd "$1" || exit 125
printf %s "$2"
end=$4
shift 4
"$@" </dev/null
code=$?
printf %s "$end"
exit $code
"""
"""Folder, mark, bytes of the tar, last mark, program. ``head`` stops where the tar does: tar itself would wait for
the end of stdin. The last mark says that the program has ended, whoever holds its output open."""


def key(client: Client, environment: Environment) -> str:
    """Return the digest of everything that a job finds: the image's id and the environment.

    Raises:
        SandboxUnavailable: if the image is not here, or declares volumes.
        ValueError: if the environment wants something installed.
    """
    parts = ["foreign", _inspected(client, environment)["Id"], environment.digest]
    return digest_of(parts)


@contextlib.contextmanager
def opened(client: Client, environment: Environment, limits: Limits, width: int, runtime: str = "") -> Iterator[Pool]:
    """Open a pool; end every box on leaving.

    Raises:
        SandboxUnavailable: if no box can be started, or the tree does not fit into it.
    """
    if width < 1:
        raise ValueError("a pool needs a width of at least 1")
    pool = ForeignPool(client, environment, limits, width, runtime)
    try:
        pool.begin()
        yield pool
    finally:
        pool.close()


class ForeignPool:
    """See `sandbox.types.Pool`; every job has a container of its own, and only commands run."""

    def __init__(self, client: Client, environment: Environment, limits: Limits, width: int, runtime: str) -> None:
        """Start nothing yet."""
        self.image = key(client, environment)
        check_paths(environment.tree)
        self._client, self._limits, self._folder = client, limits, environment.folder
        self._tree = archive(environment.tree)
        self._image, self._variables = str(_inspected(client, environment)["Id"]), variables(environment)
        self._engine = EngineFacts.of(client, runtime)
        self._slots = threading.BoundedSemaphore(width)
        self._lock = threading.Lock()
        self._boxes: set[DockerBox] = set()
        self._closed = False

    def begin(self) -> None:
        """Run a trivial job.

        Raises:
            SandboxUnavailable: if that cannot be done.
        """
        try:
            ended = self._once(_PROBE)
        except SandboxLost as lost:
            raise SandboxUnavailable(
                lost.what, where=lost.where, cure=lost.cure or "the image must have sh, head and tar"
            ) from lost
        if ended.exit_code != 0:
            raise SandboxUnavailable(f"`true` ends there with {ended.exit_code}", where=f"image {self.image[:12]}")

    def run(self, job: Job) -> Outcome:
        """Run a command; see `sandbox.types.Pool.run`.

        Raises:
            SandboxLost: if three boxes were lost under it, and a trivial job's box too.
            ValueError: if the job is no command, or is none at all.
        """
        _argv(job)
        with self._slots:
            return tried(lambda _: self._once(job), lambda: self._once(_PROBE))

    def close(self) -> None:
        """End every box."""
        with self._lock:
            self._closed = True
            boxes = list(self._boxes)
        for box in boxes:
            box.end()

    def _settings(self, user: int) -> dict[str, Any]:
        limits, holder = self._limits, self._engine.users.stop
        mounts = {
            self._folder: in_memory("exec", limits.disk, limits.inodes, user),
            "/tmp": in_memory("exec", limits.disk, limits.inodes, user),  # noqa: S108 - the box's own
            SHM: in_memory("noexec", 16 << 20, 1024, user),
        }
        # Kept until its state was read; `doctor --clean` removes it if that never happens.
        host = {**hardened(limits, self._engine, user), "tmpfs": mounts, "auto_remove": False}
        return {
            "image": self._image,
            "entrypoint": ["/bin/sh", "-c", _HOLD],
            "user": f"{holder}:{holder}",
            "environment": self._variables,
            "hostname": "box",
            "working_dir": "/",
            "stdin_open": True,
            "detach": False,
            "healthcheck": {"test": ["NONE"]},
            "labels": {"ctxbench.owner": owner()},
            "host_config": self._client.api.create_host_config(**host),
        }

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SandboxLost("the pool is closed", cure="run jobs before it is left")

    def _once(self, job: Job) -> Outcome:
        planned = ForeignJob(self._folder, self._tree + archive(job.files, ended=True), _argv(job))
        self._refuse_closed()
        box = started(self._client, self._engine, self._settings)
        try:
            with self._lock:
                self._refuse_closed()
                self._boxes.add(box)
            return planned.run(self._client, box, job.seconds, self._limits.output)
        finally:
            box.end()
            with self._lock:
                self._boxes.discard(box)


def variables(environment: Environment) -> list[str]:
    """Return the variables added to the image's own; the user has no name there, so it gets one here."""
    ours = {"HOME": "/tmp", "USER": "nobody", "LOGNAME": "nobody"}  # noqa: S108 - the box's own
    return [f"{name}={value}" for name, value in (ours | dict(environment.variables)).items()]


def _inspected(client: Client, environment: Environment) -> Mapping[str, Any]:
    additions = (environment.requirements, environment.project, environment.programs, environment.library)
    if any(additions) or environment.path or environment.preload:
        raise ValueError("an image that is taken as it stands has a tree and variables, and nothing of ours in it")
    folder = environment.folder
    if not folder.startswith("/") or posixpath.normpath(folder) != folder or folder == "/" or set(folder) & set(":,"):
        raise ValueError(f"{folder!r} is no folder that a file system can be mounted at")
    image = find(client, environment.image)
    if image is None:
        raise SandboxUnavailable(
            "no image of that name or id is here",
            where=environment.image,
            cure="see `docker images`; `docker load` or `docker import` brings one in from a file",
        )
    if volumes := image["Config"].get("Volumes"):
        raise SandboxUnavailable(
            f"it declares the volume {min(volumes)}, which would lie on this machine's disk without a limit",
            where=environment.image,
            cure="make one without: `docker export CONTAINER | docker import - NAME`",
        )
    return image


def _argv(job: Job) -> tuple[str, ...]:
    """Return a job's program with its arguments; see `ForeignPool.run` for what is refused."""
    if not isinstance(job.action, Command):
        raise ValueError("an image that is taken as it stands runs commands only")
    if not job.action.argv:
        raise ValueError("a command needs a program")
    if not 0 < job.seconds < math.inf:
        raise ValueError(f"a job cannot take {job.seconds} seconds")
    check_paths(job.files)
    return job.action.argv


class ForeignJob:
    """One job: the program that the engine starts in its container, and the talk with it."""

    def __init__(self, folder: str, data: bytes, argv: Sequence[str]) -> None:
        """Plan a job: a program, started in `folder`, into which a whole tar is unpacked first."""
        self._data = data
        self._first, self._last = (f"<{secrets.token_hex(16)}>".encode() for _ in range(2))
        marks = [self._first.decode(), str(len(data)), self._last.decode()]
        self._argv = ["/bin/sh", "-c", _SCRIPT, "ctxbench", folder, *marks, *argv]

    def run(self, client: Client, box: DockerBox, seconds: float, most: int) -> Outcome:
        """Start the program in a box, unpack the files, follow it to its end, or that of its time.

        Its seconds count from the moment when the files are there; `most` bytes of its output are kept.

        Raises:
            SandboxLost: if the files cannot be unpacked, the container is ended by anything but the program, or the
                engine does not confirm at the end of its time that the program runs.
        """
        with engine_faults(SandboxLost, f"box {box.name[:12]}"):
            number, stream = executed(client, box, self._argv)
        talk = DockerBox(client, box.name, stream)
        try:
            output = Output(most)
            planted = self._planted(talk)
            began = time.monotonic()
            late = not self._read(talk, planted, output, began + seconds)
            took = time.monotonic() - began
            if late:
                _confirm_running(client, box, number)
                return Outcome(ended=Ended.TIMED_OUT, seconds=took, **_decoded(output))
            return _ended(client, box, number, seconds=took, **_decoded(output))
        finally:
            talk.hang_up()

    def _planted(self, box: DockerBox) -> bytes:
        """Send the files; return what came after the mark that says that they are there."""
        deadline = time.monotonic() + SETUP_SECONDS
        output, mark = b"", self._first
        try:
            box.send(self._data, deadline)
            while mark not in output:
                output = output[-_MOST_WORDS:] + box.receive(deadline)
        except SandboxLost as lost:
            with contextlib.suppress(SandboxError):
                while True:
                    output = output[-_MOST_WORDS:] + box.receive(time.monotonic() + 1)
            words = " ".join(output.decode("utf-8", "replace").split())[-300:]
            why = f"its files cannot be unpacked: {words}" if words else lost.what
            raise SandboxLost(why, where=lost.where, cure="the image must have sh, head and tar") from lost
        return output.partition(mark)[2]

    def _read(self, talk: DockerBox, unread: bytes, output: Output, deadline: float) -> bool:
        """Take output until the program has ended, after what is `unread`; False if the deadline came first."""
        ended = late = False
        # Asked each time: what speaks without a pause never lets a wait run out.
        while not (ended or late or self._last in unread):
            beginning = unread[-len(self._last) :]  # perhaps of the mark
            output.add(unread[: -len(beginning)] if beginning else b"")
            unread = beginning
            try:
                late = time.monotonic() >= deadline
                unread += b"" if late else talk.receive(deadline)
            except StreamEnded:
                ended = True
            except Late:
                late = True
        output.add(unread.partition(self._last)[0])
        return not late


def _confirm_running(client: Client, box: DockerBox, number: str) -> None:
    """Ask the engine whether a program whose time is over runs: silence may as well be the engine's, or the line's.

    Raises:
        SandboxLost: if it does not, or if the engine does not say so promptly.
    """
    began, where = time.monotonic(), f"box {box.name[:12]}"
    with engine_faults(SandboxLost, where):
        status = client.api.inspect_container(box.name)["State"]["Status"]
        running = client.api.exec_inspect(number)["Running"]
    if time.monotonic() - began > _PROMPT_SECONDS:
        raise SandboxLost("its time was over while the engine hung", where=where)
    if status != "running" or not running:
        raise SandboxLost(f"its time was over, and it is {'ended' if status == 'running' else status}", where=where)


def _ended(client: Client, box: DockerBox, number: str, **measured: Any) -> Outcome:
    """End a container whose program has ended; return how that did.

    Raises:
        SandboxLost: if the container was ended from outside, or the engine does not say.
    """
    where, deadline = f"box {box.name[:12]}", time.monotonic() + _SETTLED_SECONDS
    with engine_faults(SandboxLost, where):
        while (program := client.api.exec_inspect(number))["Running"]:
            if time.monotonic() > deadline:
                raise SandboxLost("its program hung up and goes on", where=where)
            time.sleep(0.01)
        with contextlib.suppress(SandboxLost):  # it may have ended
            box.send(b"\n", deadline)
        client.api.wait(box.name, timeout=SETUP_SECONDS)
        state: Mapping[str, Any] = client.api.inspect_container(box.name)["State"]
    code, full = program["ExitCode"], bool(state["OOMKilled"])
    if code is None or (state["ExitCode"] and not full):
        raise SandboxLost(f"it was ended from outside, with {state['ExitCode']}", where=where)
    # A shell's way to tell a signal; a program that ends with such a number by itself cannot be told from it.
    signalled = 128 < code <= 128 + signal.NSIG
    return Outcome(
        ended=Ended.KILLED if signalled else Ended.EXITED,
        exit_code=None if signalled else code,
        signal=code - 128 if signalled else None,
        out_of_memory=full,
        **measured,
    )


def _decoded(output: Output) -> dict[str, Any]:
    tail, left_out = output.tail, output.left_out
    if not left_out:
        return {"output": (bytes(output.head) + tail).decode("utf-8", "replace"), "truncated": False}
    head, end = (part.decode("utf-8", "replace") for part in (bytes(output.head), tail))
    return {"output": f"{head}\n[{left_out} bytes are left out here]\n{end}", "truncated": True}
