"""`ctxbench dashboard` shows stored runs as web pages; `report` and `site-board` write leaderboards as files."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.leaderboard import board_options
from ctxbench.harness.cli.options import db_option, home_option
from ctxbench.harness.query import BoardQuery

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board
    from ctxbench.harness.store.work import RunWork

_LOCAL = "127.0.0.1"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8501,
    show_default=True,
    help="Port to listen on; 0 takes any free port.",
)
@click.option(
    "--host",
    default=_LOCAL,
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Any address that is not local shows the results to everyone who can reach it.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="URL of the pages behind a proxy, e.g. https://lab.example/ctxbench. The proxy must keep the path.",
)
@home_option
@db_option
def dashboard(*, port: int, host: str, public_url: str | None, home: Home, db: str | None) -> None:
    """Show the stored runs as web pages on this machine; stop with Ctrl-C."""
    if importlib.util.find_spec("streamlit") is None:
        cure = "run `pip install 'ctxbench[dashboard]'`"
        raise InputFault("the dashboard needs Streamlit, which is not installed", cure=cure)
    from ctxbench.harness.store.store import open_reader

    public = None if public_url is None else _public(public_url, "--public-url")
    open_reader(db or home.database).close()
    port = _free(host, port)
    # The pages run in this process; `dashboard.data` reads the command's options from these variables.
    os.environ["CTXBENCH_HOME"] = str(home.root)
    os.environ["CTXBENCH_DB"] = db or home.database
    bracketed = f"[{host}]" if ":" in host else host
    path = "" if public is None else public.path.rstrip("/")
    click.echo(f"http://{bracketed}:{port}{path}  (stop with Ctrl-C)")
    serve(_options(host, port, public))


def _public(url: str, option: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        valid = False
    if (
        not valid
        or parts.query
        or parts.fragment
        or parts.username
        or not re.fullmatch(r"[\w./~-]*", parts.path, re.ASCII)
    ):
        raise InputFault(
            f"{url!r} is not the URL of a site", where=option, cure="write it as https://lab.example/ctxbench"
        )
    return parts


def _free(host: str, port: int) -> int:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            # The server also treats a port that was just released as free.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
            return int(tried.getsockname()[1])
    except OSError as error:
        cure = "give another --host or --port; --port 0 takes any free port"
        raise InputFault(
            f"cannot listen on this address ({error.strerror or error})", where=f"{host}:{port}", cure=cure
        ) from None


def _options(host: str, port: int, public: SplitResult | None = None) -> dict[str, Any]:
    """Return Streamlit's options: open no browser, watch no files, send no statistics, offer no deployment."""
    local = host in {_LOCAL, "localhost", "::1"}
    outside = [] if public is None else [str(public.hostname)]
    proxied = (
        {
            "server_baseUrlPath": public.path.strip("/"),
            # Without this option, the server looks up its own address in the network before it accepts a foreign
            # origin.
            "browser_serverAddress": str(public.hostname),
            "server_corsAllowedOrigins": [f"{public.scheme}://{public.netloc}"],
        }
        if public is not None
        else {}
    )
    return {
        "server_headless": True,
        "server_address": host,
        "server_port": port,
        "server_fileWatcherType": "none",
        "server_runOnSave": False,
        "server_enableXsrfProtection": True,
        "server_enableCORS": True,
        # A foreign name that is made to resolve to this machine must not read the results.
        "server_allowedHosts": [_LOCAL, "localhost", "[::1]", *outside] if local else None,
        "browser_gatherUsageStats": False,
        "client_toolbarMode": "viewer",
        "client_showErrorDetails": "none",
        "client_showErrorLinks": False,
        "global_developmentMode": False,
        "logger_hideWelcomeMessage": True,
        "logger_level": "warning",
        "theme_base": str(Path(__file__).parents[1] / "theme.toml"),
        **proxied,
    }


def serve(options: dict[str, Any]) -> None:
    """Serve the pages until a signal stops the server. `options` are options of Streamlit."""
    from streamlit.web import bootstrap

    script = str(Path(__file__).parents[1] / "start" / "main.py")
    bootstrap.load_config_options(options)
    # Once started, the server ends at either signal. Before that, both must end the process just as quietly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The server prints a message on stdout when it ends, and would hang if no process reads it.
    with (
        contextlib.suppress(KeyboardInterrupt),
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        bootstrap.run(script, False, [], options)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@board_options
def report(*, query: BoardQuery, out: Path) -> None:
    """Write the leaderboard as one self-contained HTML file, with the commands that repeat its rows.

    The numbers equal those of `ctxbench leaderboard` with the same options, which also prints LaTeX, Markdown, CSV and
    JSON. Reports of the same runs are identical.
    """
    from ctxbench.bench.files import write_atomic
    from ctxbench.dashboard import report as reports

    _check(out)
    board = query.board()
    write_atomic(out, reports.html(reports.report(board, _works(board, query.url), full=bool(query.by_level))))
    click.echo(f"{out}: {len(board.rows)} rows, tables: {len(board.groups)}", err=True)


def _check(out: Path) -> None:
    if out.is_dir():
        raise InputFault("the path is a folder", where=str(out), cure="give --out the path of a file")
    if out.suffix != ".html":
        cure = "give --out a name with .html; `ctxbench leaderboard --format` prints other formats"
        raise InputFault("the name does not end with .html, but a report is an HTML file", where=str(out), cure=cure)
    if not out.absolute().parent.is_dir():
        raise InputFault(
            "the folder does not exist", where=str(out.absolute().parent), cure="create it, or give --out another path"
        )


def _works(board: Board, url: str) -> dict[str, RunWork]:
    from ctxbench.harness.store.store import open_reader
    from ctxbench.harness.store.work import run_works

    if not board.rows:
        return {}
    with open_reader(url) as store:
        return {work.id: work for work in run_works(store, {id_ for row in board.rows for id_ in row.run.ids})}


@click.command("site-board")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="SITE", help="The folder to write.")
@click.option("--title", default="Public board", show_default=True, metavar="TEXT", help="Title of the site.")
@click.option("--url", default="", metavar="URL", help="Public address of the site, for the links in its feed.")
def site_board(*, folder: Path, out: Path, title: str, url: str) -> None:
    """Write a public board of the packages in FOLDER as a static site: boards, submissions, badges and a feed.

    The pages need neither a network nor a server. A package that is refused is left out, and the command ends with exit
    code 1. Equal packages produce equal sites; SITE must be new, empty or an earlier site.
    """
    import shutil

    from ctxbench.bench.escaping import visible
    from ctxbench.bench.files import explained
    from ctxbench.dashboard import site
    from ctxbench.harness.cli.terminal import progress
    from ctxbench.harness.submissions.boards import read_entries

    if url:
        _public(url, "--url")
    if out.is_dir() and any(out.iterdir()) and not (out / site.FEED).is_file():
        raise InputFault(
            "the folder contains other files", where=str(out), cure="give --out an empty folder, or an earlier site"
        )
    entries, refused = read_entries(folder, progress)
    files = site.pages(entries, title=title, url=url)
    with explained(out):
        for name in site.FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
            (out / name).mkdir(parents=True)
        for path, text in files.items():
            (out / path).write_text(text, encoding="utf-8")
    large = [path for path, text in files.items() if len(text.encode("utf-8")) > site.MOST_BYTES]
    click.echo(f"{out / 'index.html'}: {len(entries)} submissions, {len(files)} files")
    for path in large:
        click.echo(f"{path} is larger than {site.MOST_BYTES} bytes: split the folder by sample set", err=True)
    for fault in refused:
        click.echo(visible(f"left out: {fault}"), err=True)
    if refused:
        raise InputFault(f"packages refused: {len(refused)}", where=str(folder), cure="repair or remove them")
