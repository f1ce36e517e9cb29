"""Chats with tools, as servers take and answer them."""

import json
from contextlib import closing
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.conformance import abilities, check
from ctxbench.strategies.api import Prompt, text_block
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolParameter
from tests.helpers.openai_server import Fault, Server, serving

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


def ask(server: Server, chat: Chat = CHAT, **settings: Any) -> Response | MachineFault:
    [answer] = asked_in_turn(server, 1, chat, **settings)
    return answer


def asked_in_turn(server: Server, times: int, chat: Chat = CHAT, **settings: Any) -> list[Response | MachineFault]:
    request = Request(
        prompt=Prompt(blocks=(text_block(chat.text),)), language=PYTHON, chat=chat, sampling=Sampling(max_tokens=64)
    )
    given = {"model": "tiny", "url": server.url, "endpoint": "chat", "tools": True, "retries": 0} | settings
    with closing(openai.openai(**given)) as made:
        return [answer for _ in range(times) for answer in made.generate([request])]


def test_a_chat_is_sent_as_such_and_calls_come_back_in_the_text_protocol() -> None:
    with serving(answer=lambda *_: MARKED) as server:
        answer = ask(server)
    assert isinstance(answer, Response) and Message.read(answer.text) == Message.read(MARKED)
    assert answer.finish == "stop"
    [body] = server.calls
    assert [said["role"] for said in body["messages"]] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    called = [call["id"] for said in body["messages"] for call in said.get("tool_calls", [])]
    results = [said["tool_call_id"] for said in body["messages"] if said["role"] == "tool"]
    assert called == results == ["call00000", "call00001", "call00002"]
    # What is no JSON object would break a server's template.
    assert [call["function"]["arguments"] for call in body["messages"][1]["tool_calls"]] == ['{"path": "a.py"}', "{}"]
    assert body["tools"][0]["function"]["parameters"]["required"] == ["path"]


def test_a_call_of_the_model_that_a_service_refuses_is_missing_and_ends_nothing() -> None:
    error = {"message": "Failed to call a function.", "type": "invalid_request_error", "code": "tool_use_failed"}
    with serving(answer=lambda *_: MARKED, faults=[Fault(status=400, text=json.dumps({"error": error}))]) as server:
        first, second = asked_in_turn(server, 2)
    assert isinstance(first, MachineFault) and "Failed to call a function" in first.what and "tools=" in first.cure
    assert isinstance(second, Response)


@pytest.mark.parametrize(
    "call",
    ["read", {"id": "1"}, {"function": {"name": "", "arguments": "{}"}}, {"function": {"name": "a", "arguments": {}}}],
)
def test_a_reply_with_a_call_that_is_none_is_a_fault_of_the_machine(call: object) -> None:
    def change(reply: Any) -> None:
        reply["choices"][0]["message"]["tool_calls"] = [call]

    with serving(faults=[Fault(change=change)]) as server:
        answer = ask(server)
    # Arguments that are an empty object are none.
    if call == {"function": {"name": "a", "arguments": {}}}:
        assert isinstance(answer, Response) and Message.read(answer.text).calls[0].name == "a"
    else:
        assert isinstance(answer, MachineFault) and "a tool call without a name" in answer.what


def test_tools_take_a_chat_model_and_are_checked() -> None:
    with pytest.raises(InputFault, match="tools=on needs a chat model"):
        base.resolve("openai(model=tiny, endpoint=completions, tools=on)")
    with serving(answer=lambda *_: MARKED) as server:
        made = base.resolve(f"openai(model=tiny, url='{server.url}', endpoint=chat, tools=on)")
        with closing(made):
            assert dict(abilities(made))["tools"] == "calls them itself"
            finding = next(finding for finding in check(made) if finding.name == "accepts a chat with tools")
    assert finding.passed and "tool_call" in finding.detail
