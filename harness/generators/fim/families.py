"""Families of models that fill in the middle: their marks, and the search for a model's family. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ctxbench.bench.errors import InputFault
from ctxbench.strategies.api import Block, BlockKind, Prompt

AUTO = "auto"
_ENDS = (
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<|file_separator|>",
    "<|endoftext|>",
    "<fim_pad>",
    "<file_sep>",
    "<repo_name>",
    "<fim-pad>",
    "<|EOT|>",
    "<EOT>",
)
"""Tokens that models write after a middle; tokenizers show some of them as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The tokens, and their order, that a family of models was trained with."""

    name: str
    before: str
    """The mark in front of the text before the cursor, as a server's prompt spells it."""
    after: str
    """The mark in front of the text after the cursor."""
    middle: str = ""
    """The mark that the answer follows; empty where it follows the text before the cursor."""
    after_first: bool = False
    models: str
    """Regular expression that finds the family in a model's name."""
    spelled: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Mark -> its spelling in the vocabulary, where that differs."""

    @property
    def marks(self) -> tuple[str, ...]:
        """All marks."""
        return tuple(mark for mark in (self.before, self.after, self.middle) if mark)

    def token(self, mark: str) -> str:
        """Return the vocabulary's spelling of a mark."""
        return self.spelled.get(mark, mark)

    def around(self, prompt: Prompt, after: Block) -> Prompt:
        """Return the prompt with its marks and the text after the cursor, as blocks in the order of the text."""
        before = (_mark(self.before), *prompt.blocks)
        behind = (_mark(self.after), after)
        parts = (*behind, *before) if self.after_first else (*before, *behind)
        return replace(prompt, blocks=(*parts, *([_mark(self.middle)] if self.middle else [])))


_PIPES = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
FAMILIES = (
    Template(name="qwen", before=_PIPES[0], after=_PIPES[1], middle=_PIPES[2], models=r"qwen[\d.]*-?coder"),
    Template(name="codegemma", before=_PIPES[0], after=_PIPES[1], middle=_PIPES[2], models="codegemma"),
    Template(
        name="starcoder",
        before="<fim_prefix>",
        after="<fim_suffix>",
        middle="<fim_middle>",
        models=r"starcoder|codeqwen|stable-?code|granite-[\d.]+b-code",
    ),
    Template(
        name="santacoder", before="<fim-prefix>", after="<fim-suffix>", middle="<fim-middle>", models="santacoder"
    ),
    Template(
        name="deepseek",
        before="<｜fim▁begin｜>",
        after="<｜fim▁hole｜>",
        middle="<｜fim▁end｜>",
        models="deepseek-coder",
    ),
    Template(
        name="codellama",
        before="<PRE> ",
        after=" <SUF>",
        middle=" <MID>",
        models=r"code-?llama",
        spelled={"<PRE> ": "▁<PRE>", " <SUF>": "▁<SUF>", " <MID>": "▁<MID>"},
    ),
    Template(name="codestral", before="[PREFIX]", after="[SUFFIX]", after_first=True, models="codestral"),
)
_ENDS_SPELLED = (*_ENDS, "▁<EOT>")


def family(name: str, *, where: str) -> Template:
    """Return the template of that name.

    Raises:
        InputFault: if there is none.
    """
    for template in FAMILIES:
        if template.name == name:
            return template
    names = ", ".join(template.name for template in FAMILIES)
    raise InputFault(f"fim={name} is unknown", where=where, cure=f"give {names}")


def of_name(model: str, *, family_name: str = AUTO, chat: bool = False, where: str) -> Template:
    """Return the template of a model that is known by its name only.

    Args:
        model: its name.
        family_name: the user's choice; `AUTO` goes by the model's name.
        chat: whether it is asked as a chat model, whose answers continue no text.
        where: for messages.

    Raises:
        InputFault: if there is none.
    """
    _refuse_chat(chat, where, "give endpoint=completions and a model that was trained to fill in the middle")
    if family_name != AUTO:
        return family(family_name, where=where)
    for template in FAMILIES:
        if re.search(template.models, model, re.I):
            return template
    names = ", ".join(template.name for template in FAMILIES)
    raise InputFault("no marks for fill in the middle are known for it", where=where, cure=f"give fim={names}")


def of_vocabulary(vocabulary: Collection[str], *, chat: bool = False, where: str) -> Template:
    """Return the first template whose marks are all tokens of a vocabulary.

    Raises:
        InputFault: if there is none, or the model is asked as a chat model.
    """
    _refuse_chat(chat, where, "give chat=off and a model that was trained to fill in the middle")
    for template in FAMILIES:
        if all(template.token(mark) in vocabulary for mark in template.marks):
            return template
    cure = "leave --fim out, or take a model with tokens for it, such as Qwen2.5-Coder"
    raise InputFault("its vocabulary has no tokens for fill in the middle", where=where, cure=cure)


def _refuse_chat(chat: bool, where: str, cure: str) -> None:
    if chat:
        raise InputFault("is asked as a chat model, which fills in no middle", where=where, cure=cure)


def ends(vocabulary: Collection[str], template: Template) -> tuple[str, ...]:
    """Return the tokens of a vocabulary with which an answer in the middle ends, beside the model's usual ones."""
    candidates = (*(template.token(mark) for mark in template.marks), *_ENDS_SPELLED)
    return tuple(dict.fromkeys(token for token in candidates if token in vocabulary))


def cut(text: str) -> str:
    """Return an answer up to the first token for an end that a server shows as text."""
    return text[: min((at for end in _ENDS if (at := text.find(end)) >= 0), default=len(text))]


def _mark(text: str) -> Block:
    return Block(kind=BlockKind.MARK, text=text)
