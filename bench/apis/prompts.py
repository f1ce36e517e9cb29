"""Prompts for summaries, and the reading of their answers (InferCom paper, Figure 6, and its released code).

The paper's examples are functions of CoderEval: other people's code, and tasks of a benchmark. So the examples here
are our own, written for this purpose.
"""

from __future__ import annotations

from typing import Literal, get_args

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Language

Template = Literal["release", "figure6"]

SYSTEM = "You are an expert programmer"
"""The system message of the released code, for generators that have one."""
MAX_TOKENS = 100

_EXAMPLES = {
    Language.PYTHON: (
        (
            "def seats_left(plan, taken, row=None):\n"
            "    free = [seat for seat in plan.seats if seat not in taken]\n"
            "    if row is not None:\n"
            "        free = [seat for seat in free if seat.row == row]\n"
            "    return len(free)",
            "Count the free seats of the plan, or of one row if it is given",
        ),
        (
            "def merge_stops(first, second):\n"
            "    stops = list(first)\n"
            "    for stop in second:\n"
            "        if stop not in stops:\n"
            "            stops.append(stop)\n"
            "    return stops",
            "Return the stops of both routes in order and without repeats",
        ),
    ),
    Language.JAVA: (
        (
            "public int seatsLeft(SeatPlan plan, Set<Seat> taken) {\n"
            "    int free = 0;\n"
            "    for (Seat seat : plan.getSeats()) {\n"
            "        if (!taken.contains(seat)) {\n"
            "            free++;\n"
            "        }\n"
            "    }\n"
            "    return free;\n"
            "}",
            "Count the seats of the given plan that are not taken",
        ),
        (
            "public static List<Stop> mergeStops(List<Stop> first, List<Stop> second) {\n"
            "    Set<Stop> stops = new LinkedHashSet<>(first);\n"
            "    stops.addAll(second);\n"
            "    return new ArrayList<>(stops);\n"
            "}",
            "Return the stops of both routes in order and without repeats",
        ),
    ),
}
_NAMES = {Language.PYTHON: "Python", Language.JAVA: "Java"}
_NOISE = ("here is the summary:", "summary:", "summarize the code:")


def summary_prompt(code: str, language: Language, *, template: str = "release") -> str:
    """Return the text that asks for a summary of a function or a fragment of code.

    Args:
        code: the function, or what a model drafted.
        language: its language; the examples are in it.
        template: ``release``: the instruction of the released code; ``figure6``: the bare pairs of the figure.

    Raises:
        InputFault: if there is no such template.
    """
    if template not in get_args(Template):
        raise InputFault(
            f"there is no summary template {template!r}", cure=f"choose of {', '.join(get_args(Template))}"
        )
    label = "docstring:" if template == "figure6" else "summary:"
    examples = "".join(f"code:\n{example}\n\n{label}\n{sentence}\n\n" for example, sentence in _EXAMPLES[language])
    if template == "figure6":
        return f"{examples}code:\n{code}\n\n{label}"
    return (
        f"Act as an expert {_NAMES[language]} programmer. Given a function code or a fragment, "
        f"summarize it with a short sentence.\n\nHere are two examples:\n\n{examples}"
        "Please answer strictly in the examples format and do not add extra sentences!\n"
        f"code:\n{code}\n{label}"
    )


def post_process(answer: str) -> str:
    """Return a model's summary in lower case, without the headings that models add."""
    text = answer.lower()
    for noise in _NOISE:
        text = text.replace(noise, "")
    return text.strip()
