"""Prompts for summaries, and the reading of their answers (InferCom paper, Figure 6, and its released code).

The paper's examples are functions of CoderEval: other people's code, and tasks of a benchmark. So the examples here
are our own, written for this purpose.
"""

from __future__ import annotations

from typing import Literal, get_args

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language

Template = Literal["release", "figure6"]

SYSTEM = "You are an expert programmer"
"""The system message of the released code, for generators that have one."""
MAX_TOKENS = 100

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
    examples = (
        "".join(f"code:\n{example}\n\n{label}\n{sentence}\n\n" for example, sentence in language.apis.SUMMARY_EXAMPLES)
        if language.apis
        else ""
    )
    if template == "figure6":
        return f"{examples}code:\n{code}\n\n{label}"
    return (
        f"Act as an expert {language.label} programmer. Given a function code or a fragment, "
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
