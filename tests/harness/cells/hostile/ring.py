"""Create the world of the corpus, and run it as root or as a plain user, with or without namespaces."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.harness.cells.confined import text_without
from tests.harness.cells.hostile.case import ACTS, CHANNELS

PLAIN = 54321
"""A user id that no process of this machine uses."""
ANSWERS = '{"id": "a", "target": "zqANSWERzq"}\n'
_CHECKOUT = Path(__file__).resolve().parents[4]
_SETTLED = 10**9
"""Access time of all files in the world, in seconds since 1970. They were modified one second later."""


def make(root: Path, owner: int) -> None:
    """Fill a folder with the strategy, the 32 quiet files and a home with answers."""
    strategies, home = root / "strategies", root / "home"
    (strategies / "quiet").mkdir(parents=True)
    home.mkdir()
    shutil.copy(Path(__file__).with_name("inside.py"), strategies)
    parts = {case.name: {"leave": case.leave, "look": case.look} for case in CHANNELS}
    parts |= {act.name: {"act": act.code} for act in ACTS}
    (strategies / "cases.json").write_text(json.dumps(parts))
    (home / "references.jsonl").write_text(ANSWERS)
    (strategies / "link").symlink_to(home)
    for at in range(32):
        path = strategies / "quiet" / f"{at:02d}"
        path.write_bytes(b"quiet" * 1000)
        os.setxattr(path, "user.there", b"1")
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            os.utime(path, (_SETTLED, _SETTLED + 1))
            path.chmod(0o755 if path.is_dir() else 0o644)
            if os.geteuid() == 0:
                os.chown(path, owner, owner)


def run(user: str, confined: str, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run the corpus.

    Args:
        user: ``root`` or ``plain``.
        confined: ``namespaces``, or ``landlock`` for cells without namespaces.
        only: names of cases; empty means all.
    """
    root = Path(tempfile.mkdtemp(prefix="ctxbench-hostile-"))
    try:
        make(root, PLAIN if _becomes_plain(user) else os.geteuid())
        done = start("tests.harness.cells.hostile.corpus", root, user, confined, *only)
        return {
            **json.loads(done.stdout),
            "stderr": done.stderr,
            "references": (root / "home/references.jsonl").read_text(),
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)


def started(module: str, user: str) -> subprocess.CompletedProcess[str]:
    """Run a module with a new folder, as root or as a plain user, and return the finished process."""
    root = Path(tempfile.mkdtemp(prefix="ctxbench-hostile-"))
    try:
        if _becomes_plain(user):
            os.chown(root, PLAIN, PLAIN)
        return start(module, root, user, "namespaces")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def start(module: str, root: Path, user: str, confined: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module on a folder that the user owns.

    Raises:
        AssertionError: if it fails.
    """
    less = root / "less"
    less.mkdir()
    (less / "sitecustomize.py").write_text(text_without(namespaces=confined == "landlock"))
    command = [sys.executable, "-m", module, str(root), *arguments]
    if _becomes_plain(user):
        command = _as_plain(command, root)
    elif os.geteuid() == 0:
        # The mounts that cells see must not change when another program's container starts or ends.
        command = ["unshare", "--mount", *command]
    environment = {**os.environ, "PYTHONPATH": f"{less}{os.pathsep}{_CHECKOUT}", "HOME": str(root)}
    done = subprocess.run(
        command, cwd=_CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise AssertionError(done.stderr[-5000:])
    return done


def _becomes_plain(user: str) -> bool:
    return user == "plain" and os.geteuid() == 0


def _as_plain(command: list[str], root: Path) -> list[str]:
    """Return a command that runs another as a plain user who can enter the folders of Python and the checkout.

    Root's own folder is closed to other users. A mount namespace replaces it with a folder that contains only the
    needed paths.
    """
    needed = [path for path in (Path(sys.base_prefix), Path(sys.prefix), _CHECKOUT) if _closed(path)]
    lines = ["set -e", "mount --make-rprivate /"]
    for at, path in enumerate(needed):
        lines += [f"mkdir {root}/needed{at}", f"mount --bind {path} {root}/needed{at}"]
    lines += [f"mount -t tmpfs -o mode=755 none {top}" for top in sorted({str(_closed(path)) for path in needed})]
    for at, path in enumerate(needed):
        lines += [f"mkdir -p {path}", f"mount --bind {root}/needed{at} {path}"]
    lines.append(f'exec setpriv --reuid {PLAIN} --regid {PLAIN} --clear-groups "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *command]


def _closed(path: Path) -> Path | None:
    """Return the topmost folder of a path that other users cannot enter."""
    return next((folder for folder in reversed([path, *path.parents]) if not folder.stat().st_mode & 1), None)
