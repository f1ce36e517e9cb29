"""The ``git`` source: the files of one commit, exactly as they are stored, without history.

The user's and the machine's git configuration, hooks, attributes and filters have no say, so that a
commit gives the same files everywhere; certificates and proxies of the environment are honoured.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

from ctxbench.bench.repositories.sources import Destination, GitSource, run_program, unpack

_SECONDS = 900.0
_PASSED_ON = ("GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH")
# These win over the .gitattributes of the tree: `git archive` must leave nothing out (many projects mark
# their tests export-ignore) and rewrite nothing.
_ATTRIBUTES = "* -export-ignore -export-subst -text !eol -ident !filter !working-tree-encoding\n"


def fetch(source: GitSource, to: Destination) -> date:
    """Fetch the commit, depth one, and lay out its files; submodules are left out.

    Returns:
        The day (UTC) of the commit.

    Raises:
        Unreachable: if git is not installed, the server cannot be reached or does not have the commit.
    """
    bare, archive = to.scratch / "bare", to.scratch / "tree.tar"
    fetch_commit(bare, source.url, source.commit, "--depth=1", source=source)
    git(bare, "archive", "--format=tar", f"--output={archive}", source.commit, source=source)
    dropped = unpack(archive, to.tree, strip=False)
    if dropped:
        to.report(f"{source}: {dropped} links left out")
    seconds = int(git(bare, "show", "--no-patch", "--format=%ct", source.commit, source=source))
    return datetime.fromtimestamp(seconds, UTC).date()


def fetch_commit(bare: Path, url: str, commit: str, *options: str, source: object) -> None:
    """Make a bare repository and fetch a commit into it, with its history unless the options say otherwise.

    Raises:
        Unreachable: if git is not installed, the server cannot be reached or does not have the commit.
    """
    git(bare, "init", "--quiet", "--bare", "--template=", str(bare), source=source)
    (bare / "info").mkdir(exist_ok=True)
    (bare / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    how = ("--quiet", "--no-tags", "--no-recurse-submodules", *options)
    git(bare, "fetch", *how, "--", url, commit, source=source)


def git(bare: Path, *arguments: str, source: object) -> str:
    """Run git on a bare repository and return what it prints.

    Args:
        bare: the repository.
        arguments: of git.
        source: for messages.

    Raises:
        Unreachable: if git is not installed, or fails.
    """
    return run_program(
        ["git", "-c", "core.hooksPath=/dev/null", "--git-dir", str(bare), *arguments],
        folder=bare.parent,
        environment=_environment(),
        seconds=_SECONDS,
        source=source,
    )


def _environment() -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_PASSED_ON)}
    return inherited | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": inherited.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        "LC_ALL": "C",
    }
