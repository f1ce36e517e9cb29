"""One command in a container of a foreign image: the script that starts it, its output, and how it ended."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ctxbench.sandbox.docker.box import DockerBox, Late, StreamEnded
from ctxbench.sandbox.docker.engine import Client, engine_faults
from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.guest.capture import Output
from ctxbench.sandbox.types import Ended, Outcome

SETUP_SECONDS = 180.0
"""Until a container has started and holds its tree, on a busy machine."""
_MOST_WORDS = 4096
_SCRIPT = """exec 2>&1
head -c "$3" | tar -xf - -C "$1" && cd "$1" || exit 125
printf %s "$2"
exec 3<&0
(cat <&3 >/dev/null; kill -9 -1) &
end=$4
shift 4
"$@" </dev/null 3<&-
code=$?
printf %s "$end"
exit $code
"""
"""Folder, mark, bytes of the tar, last mark, program. ``head`` stops where the tar does: tar itself would wait for
the end of stdin, which comes when ctxbench dies, and then everything is killed. The last mark says that this
script ended by itself: without it the container was ended from outside, which is not the program's doing."""


class ForeignJob:
    """One job: the program of its container, and the talk with it."""

    def __init__(self, folder: str, data: bytes, argv: Sequence[str]) -> None:
        """Plan a job.

        Args:
            folder: where the files go; the program's current folder.
            data: a whole tar.
            argv: the program.
        """
        self._data = data
        self._first, self._last = (f"<{secrets.token_hex(16)}>" for _ in range(2))
        marks = [self._first, str(len(data)), self._last]
        self.entrypoint = ["/bin/sh", "-c", _SCRIPT, "ctxbench", folder, *marks, *argv]

    def run(self, client: Client, box: DockerBox, seconds: float, most: int) -> Outcome:
        """Unpack the files, follow the program until it ends or its time is over.

        Args:
            client: the engine's.
            box: just started with `entrypoint`.
            seconds: the program's time, counted from the moment when the files are there.
            most: bytes of output that are kept.

        Raises:
            SandboxLost: if the files cannot be unpacked, or the container is ended by anything but the program.
        """
        output = Output(most + len(self._last))
        output.add(self._planted(box))
        began = time.monotonic()
        late = not _read(box, output, began + seconds)
        took = time.monotonic() - began
        if late:
            return Outcome(ended=Ended.TIMED_OUT, seconds=took, **_decoded(output, ""))
        state = _state(client, box)
        whole = self._last.encode() in output.head + output.tail
        if not whole and not state["OOMKilled"]:
            raise SandboxLost(f"it was ended from outside, with {state['ExitCode']}", where=f"box {box.name[:12]}")
        code = int(state["ExitCode"])
        # A shell's way to tell a signal; a program that ends with such a number by itself cannot be told from it.
        signalled = 128 < code <= 128 + signal.NSIG
        return Outcome(
            ended=Ended.KILLED if signalled else Ended.EXITED,
            exit_code=None if signalled else code,
            signal=code - 128 if signalled else None,
            out_of_memory=bool(state["OOMKilled"]),
            seconds=took,
            **_decoded(output, self._last),
        )

    def _planted(self, box: DockerBox) -> bytes:
        """Send the files; return what came after the mark that says that they are there."""
        deadline = time.monotonic() + SETUP_SECONDS
        output, mark = b"", self._first.encode()
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


def _read(box: DockerBox, output: Output, deadline: float) -> bool:
    """Take output until it ends; False if the deadline came first."""
    # Asked each time: what speaks without a pause never lets a wait run out.
    while time.monotonic() < deadline:
        try:
            output.add(box.receive(deadline))
        except StreamEnded:
            return True
        except Late:
            break
    return False


def _state(client: Client, box: DockerBox) -> Mapping[str, Any]:
    """Return how a container ended, once it has."""
    with engine_faults(SandboxLost, f"box {box.name[:12]}"):
        client.api.wait(box.name, timeout=SETUP_SECONDS)
        state: Mapping[str, Any] = client.api.inspect_container(box.name)["State"]
    return state


def _decoded(output: Output, last: str) -> dict[str, Any]:
    tail, left_out = output.tail, output.left_out
    if not left_out:
        whole = bytes(output.head) + tail
        return {"output": _without(whole.decode("utf-8", "replace"), last), "truncated": False}
    head, end = (part.decode("utf-8", "replace") for part in (bytes(output.head), tail))
    return {"output": f"{head}\n[{left_out} bytes are left out here]\n{_without(end, last)}", "truncated": True}


def _without(text: str, last: str) -> str:
    """Return output without the last mark; what a process that outlived the program said may follow it."""
    return text.replace(last, "") if last else text
