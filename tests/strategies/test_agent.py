"""The agent in the tiny repository, with models that follow a list of answers."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ctxbench.bench.types import Kind, Place
from ctxbench.harness.cells import wire
from ctxbench.strategies import resolve
from ctxbench.strategies.agent import NONSENSE, PLAIN, REPEATED, ROLE, UNFINISHED
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.chat import Chat, Message, Role, ToolCall
from ctxbench.strategies.layout import count
from ctxbench.strategies.tiny import PLANTED, TARGET, query_for, view_for
from tests.helpers.models import Model

QUERY = query_for(Kind.LINE)


def call(name: str, **arguments: Any) -> str:
    return str(ToolCall(name=name, arguments=json.dumps(arguments)))


SHOWN = call("show", places=["shop/price_rules.py:6-8", "shop/store.py:17-21"])


class Walker:
    """A model that returns its answers in turn and then repeats the last one."""

    instructs = summarises = True

    def __init__(self, *answers: str) -> None:
        self._answers, self.chats = answers, list[Chat]()

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        assert isinstance(prompt, Chat) and role == ROLE and not prompt.unanswered
        # A chat is unchanged after the transfer from a cell and after storage.
        assert wire.load_asked(json.loads(json.dumps(wire.dump_chat(prompt)))) == prompt and prompt.text.encode()
        self.chats.append(prompt)
        return self._answers[min(len(self.chats), len(self._answers)) - 1]

    @property
    def results(self) -> list[str]:
        """The tools' results in the last chat, without those of the last step."""
        return [message.text for message in self.chats[-1].messages if message.role is Role.TOOL]


def explore(*answers: str, spec: str = "agent.explore", kind: Kind = Kind.LINE) -> tuple[Prompt, Walker]:
    query, walker = query_for(kind), Walker(*answers)
    return resolve(spec)(query, view_for(query), walker), walker


def shown(prompt: Prompt) -> list[Place]:
    """Return the places of the prompt without the in-file text, the best first."""
    return [place for block in reversed(prompt.blocks[:-1]) for place in block.places]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_run_with_all_tools_shows_the_places_that_the_model_names(kind: Kind) -> None:
    prompt, walker = explore(
        call("list"),
        call("list", folder="shop/"),
        call("grep", text="def quote|class Line") + call("definitions", path="shop/cart.py"),
        call("read", path="shop/price_rules.py", first=6, last=8),
        call("search", text="what a user would have to pay"),
        SHOWN,
        kind=kind,
    )
    top, folder, grepped, defined, read, found = walker.results
    assert (top, folder.split("\n")) == (
        "shop/",
        ["__init__.py", "cart.py", "checkout.py", "price_rules.py", "store.py"],
    )
    assert grepped.split("\n") == ["shop/cart.py:26: class Line:", "shop/store.py:16: def quote(self, user_id, rate):"]
    assert "4-23: class Cart" in defined and "11-18: def add(self, item, count=1)" in defined
    assert read.split("\n")[0] == "6: def apply_tax(amount: float, rate: float = DEFAULT_RATE) -> float:"
    assert found.startswith("shop/store.py:16-20\n")
    assert shown(prompt) == [
        Place(path="shop/price_rules.py", start=5, end=8),
        Place(path="shop/store.py", start=16, end=20),
    ]
    assert not {UNFINISHED, NONSENSE, REPEATED}.intersection(prompt.flags)


def test_the_last_results_are_shown_if_the_model_runs_out_of_steps() -> None:
    prompt, walker = explore(
        call("read", path="shop/cart.py", last=3), call("grep", text="def quote"), spec="agent.explore(steps=4)"
    )
    assert len(walker.chats) == 4
    assert [[tool.name for tool in chat.tools] for chat in walker.chats[2:]][1] == ["show"]
    assert walker.chats[-1].messages[-1].text.endswith("call show now.")
    assert shown(prompt)[0] == Place(path="shop/store.py", start=5, end=20)
    assert Place(path="shop/cart.py", start=0, end=3) in shown(prompt)
    assert {UNFINISHED, REPEATED} <= set(prompt.flags)


def test_tokens_of_answers_and_results_count_towards_a_budget() -> None:
    reads = [call("read", path=f"shop/{name}.py") for name in ("cart", "store", "price_rules")]
    prompt, walker = explore(*reads, *reads, spec="agent.explore(tokens=120, steps=50)")
    said = sum(count(str(message)) for message in walker.chats[-1].messages[1:])
    # The last step may exceed the budget by one answer.
    assert len(walker.chats) == 3 and said < 120 + 60
    assert "(cut here: it is longer)" in walker.results[0]
    assert UNFINISHED in prompt.flags and shown(prompt)


@pytest.mark.parametrize(
    "answer",
    [
        "I have no idea.",
        "<tool_call>read it</tool_call>",
        call("rm", path="/"),
        call("read"),
        call("read", path=["shop/cart.py"]),
        call("read", path="shop/cart.py", first=10**30),
        call("read", path="shop/cart.py", first=10**7),
        call("read", path="/etc/passwd"),
        call("read", path="../../etc/passwd"),
        call("list", folder="nowhere"),
        call("grep", text=".*"),
        call("grep", text=f".*|{'x' * 5000}"),
        call("read", path="\ud800"),
        call("\ud800\n" * 300),
        str(ToolCall(name="read", arguments="1" * 5000)),
        call("show", places=[]),
        call("show", places=["shop/cart.py:900-901", "nothing", "x.py:1-2", f"{TARGET}:1-99999999"]),
        str(ToolCall(name="read", arguments="[1]")),
        str(ToolCall(name="show", arguments="null")),
    ],
)
def test_an_invalid_answer_costs_a_step_and_is_flagged(answer: str) -> None:
    prompt, walker = explore(answer, SHOWN)
    assert len(walker.chats) == 2 and walker.chats[1].messages[-1].text
    assert NONSENSE in prompt.flags and UNFINISHED not in prompt.flags and len(shown(prompt)) == 2


def test_the_tools_never_reveal_hidden_code() -> None:
    spying = [
        call("grep", text=f"{PLANTED[:6]}|receipt|return"),
        call("read", path=TARGET),
        call("read", path=TARGET, first=11, last=200),
        call("search", text=f"{PLANTED} receipt"),
        call("definitions", path=TARGET),
        call("show", places=[f"{TARGET}:1-400"]),
    ]
    for kind in Kind:
        prompt, walker = explore(*spying, spec="agent.explore(steps=6)", kind=kind)
        # The model's own messages contain the words that it searched for.
        read = [message.text for message in walker.chats[-1].messages if message.role is not Role.ASSISTANT]
        assert PLANTED not in "".join([*read, prompt.text])
        # The prompt already ends with the target file, so the file is not shown twice.
        assert TARGET not in {place.path for place in shown(prompt)}


def test_a_model_without_instructions_is_not_asked() -> None:
    model = Model(lambda *_: pytest.fail("it was asked"))
    prompt = resolve("agent.explore")(QUERY, view_for(QUERY), model)
    assert PLAIN in prompt.flags and shown(prompt)


def test_the_search_tool_can_use_an_engine() -> None:
    _, walker = explore(call("search", text="x"), SHOWN, spec="agent.explore(engine=ripgrep)")
    # The stand-in for engines returns the beginning of each file.
    assert walker.results[0].startswith("shop/cart.py:1-31\n")
    assert resolve("agent.explore(engine=ripgrep)").engines == ("ripgrep",)
    assert (resolve("agent.explore").engines, resolve("agent.explore").spec) == ((), "agent.explore")


def test_places_of_several_calls_are_shown_once_in_their_order() -> None:
    prompt, walker = explore(SHOWN + call("show", places=["nothing"]) + call("list") + SHOWN)
    assert len(walker.chats) == 1 and [place.path for place in shown(prompt)] == [
        "shop/price_rules.py",
        "shop/store.py",
    ]


def test_a_chat_is_never_cut_between_a_call_and_its_result() -> None:
    _, walker = explore(call("list") * 3 + call("show", places=[]) + "and so on", SHOWN)
    messages: Sequence[Message] = walker.chats[-1].messages
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, *[Role.TOOL] * 4]
