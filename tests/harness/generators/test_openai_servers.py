"""Replay documented server replies: answers, thoughts, token counts and refusals. Each case names its server."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import CutShort, Request, Response, Sampling, TooLong
from ctxbench.harness.generators.conformance import abilities, check
from ctxbench.strategies.api import Prompt, text_block
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolParameter
from tests.harness.generators.test_openai import model
from tests.helpers.openai_server import Body, Fault, Server, raw, serving
from tests.helpers.requests import make_request as ask

Change = Callable[[Body], object]
THOUGHTS = {"completion_tokens_details": {"reasoning_tokens": 128}}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


chat_model = functools.partial(model, endpoint="chat")


def replied(*replies: Change | Fault, request: Request | None = None, **changes: Any) -> Response | MachineFault:
    """Return the response or fault of one request to a server that sends these faults or changed replies."""
    faults = [one if isinstance(one, Fault) else Fault(change=one) for one in replies]
    with serving(faults=faults) as server, chat_model(server, retries=1, **changes) as made:
        [found] = made.generate([request or ask()])
    return found


def text_of(*replies: Change | Fault, **changes: Any) -> str:
    found = replied(*replies, **changes)
    assert isinstance(found, Response), found
    return found.text


def fault_of(*replies: Change | Fault, **changes: Any) -> MachineFault:
    found = replied(*replies, **changes)
    assert isinstance(found, MachineFault) and "\n" not in str(found) and found.cure, found
    return found


def says(finish: str = "stop", usage: Body | None = None, **message: Any) -> Change:
    """Return a change to a reply's message, finish reason and token usage."""

    def change(body: Body) -> None:
        body["choices"][0] |= {"message": {"role": "assistant", **message}, "finish_reason": finish}
        body["usage"] |= usage or {}

    return change


def account(**usage: Any) -> Change:
    return lambda body: body.update(usage=usage)


# Answers that come with thoughts


@pytest.mark.parametrize(
    "message",
    [
        # vLLM, SGLang, llama.cpp, DeepSeek; vLLM since 0.11, OpenRouter, Ollama; servers without a parser
        {"content": "1", "reasoning_content": "Say <output_start>2<output_end>?"},
        {"content": "1", "reasoning": "2?"},
        {"content": "1", "reasoning": None, "reasoning_content": ""},
        {"content": "<think>\nSay <output_start>2<output_end>?\n</think>\n\n<output_start>1<output_end>"},
        {"content": "Say <output_start>2<output_end>?</think><output_start>1<output_end>"},
        {"content": "<think></think>1"},
        # Mistral's Magistral
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "<output_start>2<output_end>"}]},
                {"type": "text", "text": "<output_start>1"},
                {"type": "text", "text": "<output_end>"},
            ]
        },
    ],
)
def test_thoughts_are_removed_from_the_answer(message: Body) -> None:
    assert text_of(says(**message)) == "1"


FENCED = """\
```python
def answer_of(text):
    # What stands behind </think>.
    return text.split("</think>")[-1]
```"""


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("x = '<think>' + y + '</think>'", None),
        ('text.split("</think>")[-1].strip()', None),
        ("re.sub(r'^.*?</think>\\s*', '', text)", None),
        (FENCED, FENCED.removeprefix("```python\n").removesuffix("```")),
        ("<output_start>strip(text)  # up to </think><output_end>", "strip(text)  # up to </think>"),
        ("[CODE]\nreturn text  # with </think>\n[/CODE]", None),
    ],
)
def test_think_tags_inside_an_answer_stay_in_it(content: str, answer: str | None, finish: str) -> None:
    found = replied(says(content=content, finish=finish))
    assert isinstance(found, Response) and (found.text, found.finish) == (answer or content, finish)


@pytest.mark.parametrize(
    "thoughts",
    [
        '<think>It ends with "</think>", so I\'ll split there.\n</think>\n\n',
        "It ends with `</think>`, so I don't strip.</think>",
        "First <output_start> and </think>",
        f"{FENCED}\nor\n```python\nunfinished\n</think>\n",
    ],
)
def test_thoughts_that_mention_think_tags_end_at_their_own_tag(thoughts: str) -> None:
    assert text_of(says(content=f"{thoughts}<output_start>text.split(',')<output_end>")) == "text.split(',')"
    inner = FENCED.removeprefix("```python\n").removesuffix("```")
    assert text_of(says(content=f"{thoughts}{FENCED}")) == inner


@pytest.mark.parametrize(
    ("message", "usage"),
    [
        ({"content": "", "refusal": None}, THOUGHTS),
        ({"content": None, "reasoning_content": "hm"}, {}),
        ({"content": "<think>hm"}, {}),
        ({"content": "", "reasoning": "hm"}, {}),
        # The server does not report thoughts, but something used 128 tokens.
        ({"content": ""}, {}),
        # Half an answer: thoughts used the remaining tokens.
        ({"content": "<output_start>su"}, THOUGHTS),
    ],
)
def test_thoughts_that_use_up_the_answers_tokens_end_the_run(message: Body, usage: Body) -> None:
    with pytest.raises(InputFault) as caught:
        replied(says(finish="length", usage=usage, **message))
    assert "thoughts used the 128 tokens" in str(caught.value) and "thinking=8000" in caught.value.cure


def test_an_answer_is_empty_when_thoughts_use_all_thinking_tokens() -> None:
    cut = Fault(change=says(finish="length", content="", usage=THOUGHTS))
    with serving(faults=[cut]) as server, chat_model(server, thinking=1000) as made:
        [found] = made.generate([ask(max_tokens=128)])
    assert isinstance(found, Response) and (found.text, found.finish) == ("", "length")
    assert server.calls[0]["max_tokens"] == 1128


def test_an_answer_cut_at_the_limit_without_thoughts_is_kept() -> None:
    usage = {"completion_tokens_details": {"reasoning_tokens": 0}}
    found = replied(says(finish="length", content="su", reasoning=None, usage=usage))
    assert isinstance(found, Response) and (found.text, found.finish) == ("su", "length")


def test_an_answer_that_a_parser_took_for_thoughts_is_a_fault() -> None:
    assert "no answer" in str(fault_of(says(content=None, reasoning_content="<output_start>1<output_end>")))
    # If the server shows no thoughts, the answer is empty.
    assert text_of(says(content="", usage=THOUGHTS)) == ""


# Finish reasons


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),  # Together
        ("eos_token", "stop"),  # TGI
        ("stop_sequence", "stop"),  # TGI
        ("STOP", "stop"),  # Gemini behind some proxies
        ("length", "length"),
        ("model_length", "length"),  # Mistral
        ("MAX_TOKENS", "length"),
    ],
)
def test_finish_reasons_of_all_servers_are_understood(reason: str, finish: str) -> None:
    found = replied(says(finish=reason, content="1"))
    assert isinstance(found, Response) and found.finish == finish


# Token counts


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 300, "completion_tokens": 9, "total_tokens": 309}, (300, 9, 0)),
        ({"prompt_tokens": 300, "completion_tokens": 9}, (300, 9, 0)),
        # xAI and Gemini count thoughts only in the total
        ({"prompt_tokens": 300, "completion_tokens": 9, "total_tokens": 403}, (300, 103, 0)),
        ({"prompt_tokens": 300, "completion_tokens": 0, "total_tokens": 360}, (300, 60, 0)),
        # OpenAI, vLLM, OpenRouter; DeepSeek; Moonshot; vLLM without caching
        (
            {"prompt_tokens": 300, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 256}},
            (300, 9, 256),
        ),
        ({"prompt_tokens": 300, "completion_tokens": 9, "prompt_cache_hit_tokens": 256}, (300, 9, 256)),
        ({"prompt_tokens": 300, "completion_tokens": 9, "cached_tokens": 256}, (300, 9, 256)),
        ({"prompt_tokens": 300, "completion_tokens": 9, "prompt_tokens_details": None}, (300, 9, 0)),
    ],
)
def test_token_counts_of_all_servers_are_understood(usage: Body, tokens: tuple[int, int, int]) -> None:
    found = replied(account(**usage))
    assert isinstance(found, Response) and (found.tokens_in, found.tokens_out, found.cached) == tokens


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}])
def test_a_server_that_counts_no_tokens_is_noted(usage: Body) -> None:
    with serving(faults=[None, *[Fault(change=account(**usage))] * 2]) as server, model(server) as made:
        made.generate([ask()])
        assert made.served == ()
        [found] = made.generate([ask("a b c")])
    assert isinstance(found, Response) and found.tokens_in == 3 and not found.counted
    assert made.served == ("tiny (the server counts no tokens, so ctxbench counts them)",)


def test_the_provider_behind_a_router_is_noted() -> None:
    routed = Fault(change=lambda body: body.update(provider="Fireworks", model="tiny:fp8"))
    with serving(faults=[routed]) as server, model(server) as made:
        made.generate([ask()])
    assert made.served == ("tiny:fp8 (by Fireworks)",)


# Prompts that the server did not read whole


LONG = "def area(width, height):\n    return width * height\n" * 300


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_silently_cut_prompt_is_a_fault(endpoint: str) -> None:
    with serving(cuts=2050) as server, model(server, endpoint=endpoint) as made:
        whole, cut = made.generate([ask(LONG[:4000]), ask(LONG)])
        with model(server, endpoint=endpoint, whole=False) as believed:
            [taken] = believed.generate([ask(LONG)])
    assert isinstance(whole, Response) and isinstance(taken, Response)
    assert isinstance(cut, CutShort) and "it read 2050 of at least 2" in str(cut) and "whole=off" in cut.cure


def test_a_prompt_count_without_cached_tokens_is_accepted() -> None:
    usage = {"prompt_tokens": 200, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4000}}
    assert isinstance(replied(account(**usage), request=ask(LONG)), Response)


def test_a_reply_that_reports_a_cut_prompt_is_a_fault() -> None:
    assert isinstance(fault_of(lambda body: body.update(truncated=True)), CutShort)


# Request fields that a model refuses


def error(status: int, message: str, **more: Any) -> Fault:
    return Fault(status=status, text=json.dumps({"error": {"message": message, **more}}))


def test_max_completion_tokens_replaces_a_refused_max_tokens() -> None:
    words = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    refused = error(400, words, param="max_tokens", code="unsupported_parameter")
    with serving(faults=[refused]) as server, chat_model(server, retries=0) as made:
        found = [made.generate([ask(max_tokens=99)])[0] for _ in range(2)]
    assert all(isinstance(one, Response) for one in found)
    limits = [(call.get("max_tokens"), call.get("max_completion_tokens")) for call in server.calls]
    assert limits == [(99, None), (None, 99), (None, 99)]


@pytest.mark.parametrize(
    ("refused", "field"),
    [
        # OpenAI's reasoning models, its older messages, Anthropic's newer models, a field that the user added
        (error(400, "'temperature' does not support 0.", param="temperature", code="unsupported_value"), "temperature"),
        (error(400, "'stop' is not supported.", param="stop", code="unsupported_parameter"), "stop"),
        (error(400, "Unrecognized request argument supplied: seed"), "seed"),
        (error(400, "`temperature` is deprecated for this model."), "temperature"),
        (error(400, "Unknown parameter: 'top_k'.", param="top_k", code="unknown_parameter"), "top_k"),
        # Mistral
        (
            Fault(
                status=422,
                text='{"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], '
                '"msg": "Extra inputs are not permitted", "input": 1}]}, "type": "invalid_request_error"}',
            ),
            "seed",
        ),
    ],
)
def test_a_field_that_the_model_refuses_ends_the_run(refused: Fault, field: str) -> None:
    with pytest.raises(InputFault) as caught:
        replied(refused, request=ask(temperature=0.5, stop=("\n",)), extra='{"top_k": 3}')
    assert f"the model does not accept {field}: " in str(caught.value)
    assert caught.value.cure.startswith(f"""set extra='{{"{field}": null}}'""")


def test_a_server_error_about_the_token_limit_suggests_thinking() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    with pytest.raises(InputFault) as caught:
        replied(error(400, words))
    assert "thinking=8000" in caught.value.cure


# Errors


def test_an_error_with_status_200_is_treated_as_an_error() -> None:
    """OpenRouter sends status 200 before it knows whether the request succeeds."""
    late = raw('{"error": {"code": 429, "message": "Rate limit exceeded: 20 per minute"}}')
    assert text_of(late) == "answer"
    assert "Rate limit exceeded" in str(fault_of(late, late))
    within = raw(
        '{"choices": [{"message": {"content": "ha"}, "finish_reason": "error", "error": {"code": 502, "message": '
        '"Upstream is down"}}]}'
    )
    assert "(status 502): Upstream is down" in str(fault_of(within, within))
    assert isinstance(
        fault_of(raw('{"error": {"code": 400, "message": "maximum context length is 8 tokens"}}')), TooLong
    )
    assert "loading" in str(fault_of(*[raw('{"error": "model is still loading"}')] * 2))
    with pytest.raises(InputFault, match="key is not accepted"):
        replied(raw('{"error": {"code": 401, "message": "No auth credentials found"}}'))


@pytest.mark.parametrize(
    "refused",
    [
        # Azure
        Fault(
            status=400,
            text='{"error": {"message": "The response was filtered due to the prompt triggering a policy", '
            '"param": "prompt", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}',
        ),
        # OpenRouter
        Fault(
            status=403,
            text='{"error": {"code": 403, "message": "Input was flagged", "metadata": {"reasons": ["violence"]}}}',
        ),
        # a firewall
        Fault(status=403, text="<html><title>Attention Required!</title></html>"),
    ],
)
def test_a_prompt_that_a_filter_refuses_fails_only_its_sample(refused: Fault) -> None:
    assert "a content filter" in str(fault_of(refused))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (402, '{"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}}'),
        (402, '{"error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}}'),
        (429, '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'),
    ],
)
def test_an_account_without_credit_is_reported(status: int, text: str) -> None:
    assert "no credit left" in str(fault_of(Fault(status=status, text=text)))


# Headers and the first request


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"headers": '{"Authorization": "5Zq8"}'}, 'headers=\'{"X-Api-Key": "$NAME"}\''),
        ({"headers": '{"x-api-key": "5Zq8"}'}, "may be a secret"),
        ({"headers": '{"X-Title": 3}'}, "not a JSON object with header names and ASCII values"),
        ({"headers": '{"X-Title": "5Zq8\\nA: b"}'}, "not a JSON object with header names and ASCII values"),
        ({"headers": "5Zq8"}, "not a JSON object with header names and ASCII values"),
    ],
)
def test_secrets_in_headers_are_refused_and_not_shown(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputFault) as caught:
        openai.openai(model="tiny", url="http://h", endpoint="chat", **changes)
    assert words in str(caught.value) and "5Zq8" not in str(caught.value)


FIRST_REQUEST = """
import sys
from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.errors import MachineFault
from ctxbench.harness.generators.openai.client import Client
from ctxbench.harness.generators.openai.settings import OpenAISettings

held = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        held.setdefault(name, TREE_LOCK.locked())

sys.meta_path.insert(0, Watch())
client = Client(OpenAISettings(
    url="http://127.0.0.1:9/v1", model="m", chat=False, concurrency=1, timeout=9, retries=0,
    backoff=1, window=0, fim="auto", key_env="", extra={}))
try:
    client.post("completions", {}, lambda data, seconds: data)
except MachineFault:
    print(held["anyio"])
"""


def test_the_first_request_imports_its_libraries_under_the_syntax_tree_lock() -> None:
    """In CPython 3.11, building syntax trees in two threads at once ends in a SystemError (gh-106905)."""
    done = subprocess.run([sys.executable, "-c", FIRST_REQUEST], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


TOOL = Tool(name="read", help="Read a file.", parameters=(ToolParameter(name="path", help="Its path."),))
MARKED = 'I look. <tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'
BROKEN = '<tool_call>{"name": "read", "arguments": "{"}</tool_call>'
CHAT = Chat(
    messages=(
        Message(role=Role.USER, text="Begin."),
        Message.read(MARKED + BROKEN),
        Message(role=Role.TOOL, text="x = 1"),
        Message(role=Role.TOOL, text="no JSON"),
        Message.read(MARKED),
        Message(role=Role.TOOL, text="x = 1"),
    ),
    tools=(TOOL,),
)


def ask_with_tools(server: Server, chat: Chat = CHAT, **settings: Any) -> Response | MachineFault:
    [answer] = asked_in_turn(server, 1, chat, **settings)
    return answer


def asked_in_turn(server: Server, times: int, chat: Chat = CHAT, **settings: Any) -> list[Response | MachineFault]:
    request = Request(
        prompt=Prompt(blocks=(text_block(chat.text),)), language=PYTHON, chat=chat, sampling=Sampling(max_tokens=64)
    )
    given = {"model": "tiny", "url": server.url, "endpoint": "chat", "tools": True, "retries": 0} | settings
    with closing(openai.openai(**given)) as made:
        return [answer for _ in range(times) for answer in made.generate([request])]


def test_a_chat_is_sent_as_messages_and_tool_calls_return_as_text() -> None:
    with serving(answer=lambda *_: MARKED) as server:
        answer = ask_with_tools(server)
    assert isinstance(answer, Response) and Message.read(answer.text) == Message.read(MARKED)
    assert answer.finish == "stop"
    [body] = server.calls
    assert [said["role"] for said in body["messages"]] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    called = [call["id"] for said in body["messages"] for call in said.get("tool_calls", [])]
    results = [said["tool_call_id"] for said in body["messages"] if said["role"] == "tool"]
    assert called == results == ["call00000", "call00001", "call00002"]
    # Arguments that are not a JSON object would break a server's template.
    assert [call["function"]["arguments"] for call in body["messages"][1]["tool_calls"]] == ['{"path": "a.py"}', "{}"]
    assert body["tools"][0]["function"]["parameters"]["required"] == ["path"]


def test_a_tool_call_that_the_service_refuses_fails_only_its_sample() -> None:
    error = {"message": "Failed to call a function.", "type": "invalid_request_error", "code": "tool_use_failed"}
    with serving(answer=lambda *_: MARKED, faults=[Fault(status=400, text=json.dumps({"error": error}))]) as server:
        first, second = asked_in_turn(server, 2)
    assert isinstance(first, MachineFault) and "Failed to call a function" in first.what and "tools=" in first.cure
    assert isinstance(second, Response)


@pytest.mark.parametrize(
    "call",
    ["read", {"id": "1"}, {"function": {"name": "", "arguments": "{}"}}, {"function": {"name": "a", "arguments": {}}}],
)
def test_an_invalid_tool_call_in_a_reply_is_a_machine_fault(call: object) -> None:
    def change(reply: Any) -> None:
        reply["choices"][0]["message"]["tool_calls"] = [call]

    with serving(faults=[Fault(change=change)]) as server:
        answer = ask_with_tools(server)
    # An empty object means a call without arguments.
    if call == {"function": {"name": "a", "arguments": {}}}:
        assert isinstance(answer, Response) and Message.read(answer.text).calls[0].name == "a"
    else:
        assert isinstance(answer, MachineFault) and "a tool call without a name" in answer.what


def test_tools_need_a_chat_model_and_are_checked() -> None:
    with pytest.raises(InputFault, match="tools=on needs a chat model"):
        base.resolve("openai(model=tiny, endpoint=completions, tools=on)")
    with serving(answer=lambda *_: MARKED) as server:
        made = base.resolve(f"openai(model=tiny, url='{server.url}', endpoint=chat, tools=on)")
        with closing(made):
            assert dict(abilities(made))["tools"] == "calls tools itself"
            finding = next(finding for finding in check(made) if finding.name == "accepts a chat with tools")
    assert finding.passed and "tool_call" in finding.detail
