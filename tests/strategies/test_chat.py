import pytest

from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolCall, ToolParameter

READ = ToolCall(name="read", arguments='{"path": "a.py"}')
MARKED = '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'
CHAT = Chat(
    messages=(Message(role=Role.SYSTEM, text="Look around."), Message(role=Role.USER, text="Begin.")),
    tools=(Tool(name="read", help="Read a file.", parameters=(ToolParameter(name="path", help="Its path."),)),),
)


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        (MARKED, "", [READ]),
        (f"I look.\n{MARKED}\n{MARKED}", "I look.", [READ, READ]),
        (MARKED.removesuffix("</tool_call>"), "", [READ]),
        ('```json\n{"name": "read", "parameters": {"path": "a.py"}}\n```', "", [READ]),
        ('<tool_call>{"name": "read", "arguments": "{"}</tool_call>', "", [ToolCall(name="read", arguments="{")]),
        ("<tool_call>read a.py</tool_call>", "<tool_call>read a.py</tool_call>", []),
        ('{"path": "a.py"}', '{"path": "a.py"}', []),
        ('<tool_call>{"name": 1}</tool_call>', '<tool_call>{"name": 1}</tool_call>', []),
        ("[" * 100_000, "[" * 100_000, []),
        ("", "", []),
    ],
)
def test_calls_are_parsed_from_an_answer_and_invalid_calls_remain_text(
    answer: str, text: str, calls: list[ToolCall]
) -> None:
    message = Message.read(answer)
    assert (message.text, list(message.calls)) == (text, calls)
    assert Message.read(str(message)) == message


_BARE = '{"name": "read", "arguments": {"path": "a.py"}}'
_OTHER = '{"name": "list", "arguments": {}}'


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (f"```json\n{_BARE}\n```", ("read",)),
        (f"I read it:\n\n```json\n{_BARE}\n```\n", ("read",)),
        (f"{_BARE}\n{_OTHER}", ("read", "list")),
        (f"[{_BARE}, {_OTHER}]", ("read", "list")),
        # The model repeats itself until its tokens run out.
        (f"{_BARE}\n" * 20 + _BARE[:30], ("read",)),
        ('{"type": "function", "function": {"name": "read", "parameters": {}}}', ()),
        (f"return {{}}\n{_BARE}", ()),
        (f"{_BARE}\nso that the file is {{'a': 1}}", ("read",)),
        (_BARE[:30], ()),
        ("{" * 100_000, ()),
        ('{"a":' * 50_000, ()),
    ],
)
def test_calls_without_marks_are_parsed_once_each(answer: str, calls: tuple[str, ...]) -> None:
    """A model with 1.5 billion parameters wrote such answers in `agent.explore`. Some cases here are worse."""
    message = Message.read(answer)
    assert tuple(call.name for call in message.calls) == calls
    assert message.text == ("" if calls else answer.strip())


def test_a_chat_as_text_starts_with_its_tools_and_ends_with_the_assistant() -> None:
    text = CHAT.then(Message.read(MARKED), Message(role=Role.TOOL, text="x = 1")).text
    assert text.index("- read: Read a file.\n    path (string): Its path.") < text.index("### system\nLook around.")
    assert text.endswith(f"### assistant\n{MARKED}\n\n### tool\nx = 1\n\n### assistant\n")


def test_the_digest_of_a_chat_covers_its_messages_order_and_tools() -> None:
    others = [
        CHAT.then(Message(role=Role.USER)),
        Chat(messages=CHAT.messages),
        Chat(messages=CHAT.messages[::-1], tools=CHAT.tools),
        CHAT.then(Message(role=Role.ASSISTANT, calls=(READ,))),
    ]
    assert len({CHAT.digest, *(other.digest for other in others)}) == 5


class _Echo:
    instructs = summarises = True

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        assert isinstance(prompt, Chat)
        return f"{role} {max_tokens} {MARKED}"


def test_a_chat_is_answered_with_a_message_and_calls_need_results() -> None:
    generate = Generate(_Echo())
    assert generate(CHAT, role="look", max_tokens=9) == Message(role=Role.ASSISTANT, text="look 9", calls=(READ,))
    assert Generate(generate)(CHAT, role="look", max_tokens=9) == generate(CHAT, role="look", max_tokens=9)
    with pytest.raises(TypeError, match="calls at the end lack results: 1"):
        generate(CHAT.then(Message.read(MARKED)))
    with pytest.raises(TypeError, match="message 2 has the role tool; calls without a result: 0"):
        generate(CHAT.then(Message(role=Role.TOOL)))
