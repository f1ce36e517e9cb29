"""The agent over the tiny repository, with models that do what a list says."""

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
    """A model that gives its answers one after the other, the last again and again."""

    instructs = summarises = True

    def __init__(self, *answers: str) -> None:
        self._answers, self.chats = answers, list[Chat]()

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        assert isinstance(prompt, Chat) and role == ROLE and not prompt.unanswered
        # As a cell sends it, and as it is stored.
        assert wire.load_asked(json.loads(json.dumps(wire.dump_chat(prompt)))) == prompt and prompt.text.encode()
        self.chats.append(prompt)
        return self._answers[min(len(self.chats), len(self._answers)) - 1]

    @property
    def results(self) -> list[str]:
        """What the tools answered, all but the results that no step followed."""
        return [message.text for message in self.chats[-1].messages if message.role is Role.TOOL]


def explore(*answers: str, spec: str = "agent.explore", kind: Kind = Kind.LINE) -> tuple[Prompt, Walker]:
    query, walker = query_for(kind), Walker(*answers)
    return resolve(spec)(query, view_for(query), walker), walker


def shown(prompt: Prompt) -> list[Place]:
    """Return the places of the prompt without the in-file text, the best first."""
    return [place for block in reversed(prompt.blocks[:-1]) for place in block.places]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_walk_by_all_tools_shows_what_the_model_names(kind: Kind) -> None:
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


def test_a_model_that_never_stops_ends_by_its_steps_and_what_it_saw_last_is_shown() -> None:
    prompt, walker = explore(
        call("read", path="shop/cart.py", last=3), call("grep", text="def quote"), spec="agent.explore(steps=4)"
    )
    assert len(walker.chats) == 4
    assert [[tool.name for tool in chat.tools] for chat in walker.chats[2:]][1] == ["show"]
    assert walker.chats[-1].messages[-1].text.endswith("call show now.")
    assert shown(prompt)[0] == Place(path="shop/store.py", start=5, end=20)
    assert Place(path="shop/cart.py", start=0, end=3) in shown(prompt)
    assert {UNFINISHED, REPEATED} <= set(prompt.flags)


def test_tokens_of_answers_and_results_are_a_budget_too() -> None:
    reads = [call("read", path=f"shop/{name}.py") for name in ("cart", "store", "price_rules")]
    prompt, walker = explore(*reads, *reads, spec="agent.explore(tokens=120, steps=50)")
    said = sum(count(str(message)) for message in walker.chats[-1].messages[1:])
    # The last step may be taken over the budget, as long as one answer.
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
def test_nonsense_costs_a_step_is_flagged_and_the_model_is_told(answer: str) -> None:
    prompt, walker = explore(answer, SHOWN)
    assert len(walker.chats) == 2 and walker.chats[1].messages[-1].text
    assert NONSENSE in prompt.flags and UNFINISHED not in prompt.flags and len(shown(prompt)) == 2


def test_a_spy_finds_nothing_that_the_view_does_not_show() -> None:
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
        # What it wrote itself stands in its messages.
        read = [message.text for message in walker.chats[-1].messages if message.role is not Role.ASSISTANT]
        assert PLANTED not in "".join([*read, prompt.text])
        # The prompt ends with that file up to the cursor: it is not shown twice.
        assert TARGET not in {place.path for place in shown(prompt)}


def test_a_model_without_instructions_is_not_asked() -> None:
    model = Model(lambda *_: pytest.fail("it was asked"))
    prompt = resolve("agent.explore")(QUERY, view_for(QUERY), model)
    assert PLAIN in prompt.flags and shown(prompt)


def test_search_may_ask_an_engine() -> None:
    _, walker = explore(call("search", text="x"), SHOWN, spec="agent.explore(engine=ripgrep)")
    # The stand-in for engines gives the beginning of each file.
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
