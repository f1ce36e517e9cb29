"""Secrets reach only their own server, and appear in no spec, store, message or log."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import Response
from tests.harness.generators.test_openai import ask, fault, model, one
from tests.harness.generators.test_openai_run import Bench, right
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.openai_server import Fault, Server, serving

KEY = "sk-5Zq8-secret-of-the-user-7Wd2"
PLAIN_KEY = "5Zq8Wd2aB3cD4eF5gH6iJ7"
"""A key without a recognisable form."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SERVER_KEY", PLAIN_KEY)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def sent(server: Server, at: int = 0) -> dict[str, str]:
    return {name.lower(): value for name, value in server.headers[at].items()}


# Secrets in specs


@pytest.mark.parametrize(
    "given",
    [
        f'extra=\'{{"api_key": "{PLAIN_KEY}"}}\'',
        f'extra=\'{{"a": {{"b": [{{"password": "{PLAIN_KEY}"}}]}}}}\'',
        f'extra=\'{{"keys": ["{PLAIN_KEY}"]}}\'',
        f'extra=\'{{"user": "{KEY}"}}\'',
        f'extra=\'{{"note": "Bearer {PLAIN_KEY}"}}\'',
        'extra=\'{"user": "\\\\u0073k-5Zq8-secret-of-the-user-7Wd2"}\'',
        'extra=\'{"api_key": "$SERVER_KEY", "user": "5Zq8"}\'',
        f'headers=\'{{"Authorization": "Bearer {PLAIN_KEY}"}}\'',
        f'headers=\'{{"X-Custom": "{KEY}"}}\'',
        f"revision={KEY}",
        f"key_env={KEY}",
        f"tokenizer=/data/{KEY}",
    ],
)
def test_a_spec_with_a_secret_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(InputFault) as caught:
        base.resolve(f"openai:tiny@http://127.0.0.1:1({given})")
    assert "5Zq8" not in f"{caught.value!r} {caught.value}" and caught.value.cure


@pytest.mark.parametrize(
    "spec",
    [
        f"openai:tiny@http://user:{PLAIN_KEY}@host/v1",
        f"openai:tiny@http://{PLAIN_KEY}@host/v1",
        f"openai:tiny@http://host/v1?api-key={PLAIN_KEY}",
        f"openai:{KEY}@http://host/v1",
        f"openai(model=tiny, url='https://host/v1#{PLAIN_KEY}')",
        f"openai:tiny@ftp://user:{PLAIN_KEY}@host/v1",
        f"openai(model=tiny, key_env=a{PLAIN_KEY})",
        f"openai(model=tiny, key={PLAIN_KEY})",
        f"openai(model=tiny, api_key={PLAIN_KEY}, url=)",
        f"hf(model=/data/tiny, revision={'hf_' + PLAIN_KEY})",
        f"vllm(model={'hf_' + PLAIN_KEY})",
        f"scripted(text='{KEY}')",
    ],
)
def test_no_part_of_a_generator_spec_accepts_a_secret(spec: str) -> None:
    result = run_cli("generator", "check", spec)
    assert_fault(result)
    assert "5Zq8" not in result.err + result.out


@pytest.mark.slow
def test_a_spec_contains_the_variables_of_its_secrets_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = '{"X-Api-Key": "$SERVER_KEY", "cf-aig-authorization": "Bearer $SERVER_KEY", "X-Title": "a"}'
    with serving(answer=right) as server:
        bench = Bench(tmp_path, server)
        summary = bench.run(f"headers='{headers}'")
        assert summary.missing == 0
        found = sent(server)
        assert (found["x-api-key"], found["cf-aig-authorization"]) == (PLAIN_KEY, f"Bearer {PLAIN_KEY}")
        assert "authorization" not in found and found["x-title"] == "a"
        [(spec,)] = bench.rows("SELECT generator FROM run")
        assert "$SERVER_KEY" in spec
        bench.store.close()
    files = [path for path in bench.home.root.rglob("*") if path.is_file()]
    assert not [path for path in files if PLAIN_KEY.encode() in path.read_bytes()]
    monkeypatch.delenv("SERVER_KEY")
    with pytest.raises(InputFault, match="SERVER_KEY is not set"):
        openai.openai(model="tiny", url=server.url, headers=headers).generate([ask()])


# Secrets and other servers


def test_the_key_of_one_service_is_not_sent_to_another() -> None:
    with serving() as server, model(server) as made:
        assert one(made).text == "answer"
        assert KEY not in str(server.headers)
    with serving(key="another") as server, model(server) as made, pytest.raises(InputFault) as caught:
        made.generate([ask()])
    assert "none was sent" in str(caught.value) and "key_env=" in caught.value.cure
    with serving(key=KEY) as server, model(server, key_env="OPENAI_API_KEY") as made:
        assert one(made).text == "answer"
    for url in ("https://api.openai.com/v1", "https://API.OpenAI.com"):
        assert base.resolve(f"openai:m@{url}")._settings.key_variable == "OPENAI_API_KEY"  # type: ignore[attr-defined]
    for url in (
        "https://api.openai.com.evil.test",
        "https://api.openai.co",
        "https://xapi.openai.com",
        "http://127.0.0.1",
    ):
        assert base.resolve(f"openai:m@{url}")._settings.key_variable == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com@evil.test",
        "https://evil.test\\@api.openai.com",
        "https://api.openai.com:443@evil.test/v1",
        "https://api.openai.com#@evil.test",
        "https://api。openai。com/v1",
    ],
)
def test_addresses_that_only_look_like_the_service_are_refused(url: str) -> None:
    with pytest.raises(InputFault):
        openai.openai(model="m", url=url)


@pytest.mark.parametrize("given", [{"key_env": "SERVER_KEY"}, {"headers": '{"X-Api-Key": "$SERVER_KEY"}'}])
def test_no_secret_is_sent_over_plain_http_to_another_machine(given: dict[str, Any]) -> None:
    for url in ("http://10.0.0.1:8000", "http://gpu.example", "http://localhost.example", "http://0.0.0.0:1"):
        with pytest.raises(InputFault) as caught:
            openai.openai(model="tiny", url=url, **given)
        assert "plain http" in str(caught.value) and "insecure=on" in caught.value.cure
        openai.openai(model="tiny", url=url, insecure=True, **given)
        openai.openai(model="tiny", url=url.replace("http:", "https:"), **given)
        openai.openai(model="tiny", url=url)
    for url in ("http://127.0.0.1:1", "http://127.8.8.8", "http://[::1]:1", "http://localhost:1"):
        openai.openai(model="tiny", url=url, **given)
    assert base.canonical("openai:m@http://h(insecure=on)") == "openai(model=m, url=http://h)"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with serving(key=KEY) as elsewhere, serving() as server:
        for place in (f"{elsewhere.url}/completions", f"{server.url}/completions"):
            server.faults = [*server.faults, Fault(status=status, headers=(("Location", place),))]
            with model(server, key_env="OPENAI_API_KEY") as made, pytest.raises(InputFault) as caught:
                made.generate([ask()])
            assert place in str(caught.value)
    assert not elsewhere.calls and len(server.calls) == 2


def test_no_login_of_this_machine_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password 5Zq8\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with serving() as server, model(server) as made:
        assert one(made).text == "answer"
    assert "authorization" not in sent(server)


# Proxies


@contextmanager
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """Start a proxy that refuses all requests; yield its address and the received bytes."""
    told: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        told.append(connection.recv(65536))
                        connection.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}", told
        finally:
            server.shutdown(socket.SHUT_RDWR)


def test_a_proxy_never_receives_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as (place, told):
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://me:5Zq8pass@{place}")
        # Through a tunnel, the proxy receives only the server's name.
        refused = answer(url="https://gpu.invalid", key_env="SERVER_KEY")
        assert len(told) == 1 and told[0].startswith(b"CONNECT gpu.invalid:443") and PLAIN_KEY.encode() not in told[0]
        assert isinstance(refused, MachineFault) and "5Zq8" not in str(refused)
        # Plain http may use the proxy, but not with a secret and not to this machine.
        answer(url="http://gpu.invalid")
        assert len(told) == 2 and told[1].startswith(b"POST http://gpu.invalid")
        assert "cannot be reached" in str(answer(url="http://gpu.invalid", key_env="SERVER_KEY", insecure=True))
        with serving() as server:
            assert isinstance(answer(url=server.url, key_env="SERVER_KEY"), Response) and len(told) == 2
        monkeypatch.setenv("no_proxy", "gpu.invalid")
        answer(url="http://gpu.invalid")
        assert len(told) == 2


def answer(**given: Any) -> Response | MachineFault:
    """Return the outcome of one request."""
    with closing(openai.openai(model="tiny", retries=0, timeout=20, **given)) as made:
        [found] = made.generate([ask()])
    return found


@pytest.mark.parametrize(
    "address",
    [
        "ftp://me:5Zq8pass@p:1",
        "http://me:5Zq8pass@p:99999",
        "http://me:5Zq8pass@[p",
        "socks9://me:5Zq8pass@p",
        "://me:5Zq8pass@p",
    ],
)
def test_an_invalid_proxy_is_a_one_line_fault(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(InputFault, match="the environment's proxy cannot be used") as caught:
        openai.openai(model="tiny", url="https://gpu.invalid", retries=0).generate([ask()])
    assert "5Zq8" not in str(caught.value)


# Secrets in a server's answers


def test_a_key_that_a_server_repeats_is_removed_and_remarked(tmp_path: Path) -> None:
    def repeat(prompt: str, body: object) -> str:
        return f"{right(prompt, body)} # {PLAIN_KEY}"

    with serving(answer=repeat) as server:
        bench = Bench(tmp_path, server)
        bench.run("key_env=SERVER_KEY")
        texts = [text for (text,) in bench.rows("SELECT text FROM generation")]
        assert texts and all(text.endswith(" # …") for text in texts)
        [(remark,)] = bench.rows("SELECT text FROM remark")
        assert "repeats the key in its answers" in remark
        bench.store.close()
    files = [path for path in bench.home.root.rglob("*") if path.is_file()]
    assert not [path for path in files if PLAIN_KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("key", ["EMPTY", "none", "x", "password", "dummy"])
def test_a_placeholder_key_is_not_removed_from_answers(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", key)
    with serving(key=key, answer=lambda *_: f"x = {key}") as server, model(server, key_env="SERVER_KEY") as made:
        assert one(made).text == f"x = {key}" and made.served == ()


def test_a_refusal_after_an_answer_fails_only_its_request() -> None:
    refusals = [Fault(status=status) for status in (401, 404, 302)]
    with serving(faults=[None, *refusals]) as server, model(server) as made:
        assert one(made).text == "answer"
        assert [f"status {status}" in str(fault(made)) for status in (401, 404, 302)] == [True] * 3
        assert one(made).text == "answer"


def test_a_generators_own_description_contains_no_secret() -> None:
    made = openai.openai(model="tiny", url="http://127.0.0.1:1", key_env="SERVER_KEY", retries=0)
    made.generate([ask()])
    client = made._client
    assert PLAIN_KEY not in f"{made!r} {client!r} {client._credentials!r} {made.version} {json.dumps(str(vars(made)))}"


@pytest.mark.slow
def test_a_secret_stored_by_an_older_version_is_not_shown(tmp_path: Path) -> None:
    with serving(answer=right) as server:
        bench = Bench(tmp_path, server)
        run = bench.run().run
        spelled = f'openai(extra=\'{{"api_key": "{PLAIN_KEY}", "note": "{KEY}"}}\', model=tiny, url={server.url})'
        guards = bench.rows("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'run'")
        for (name,) in guards:
            bench.store.settle(lambda rows, name=name: rows.execute(text(f"DROP TRIGGER {name}")))
        bench.store.settle(lambda rows: rows.execute(text("UPDATE run SET generator = :spec"), {"spec": spelled}))
        bench.store.close()
    place = ("--home", str(bench.home.root))
    board, export = tmp_path / "board.html", tmp_path / "export.jsonl"
    for words in (
        ("leaderboard",),
        ("leaderboard", "--format", "json"),
        ("runs",),
        ("results", "export", run, "--format", "ctxbench", "--out", str(export)),
        ("report", "--out", str(board)),
    ):
        result = run_cli(*words, *place)
        assert result.code == 0, result.err
        assert "5Zq8" not in result.out + result.err
    assert "5Zq8" not in board.read_text() + export.read_text()
