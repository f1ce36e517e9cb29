"""The strategies of the ICL-strategies paper: write functions from signature, docstring and retrieved context.

Each strategy is one row: the part of a retrieved function that is shown, whether the model plans first, whether the
current file comes last, and whether documentation stands in for code. `strategies.icl.build` makes the prompts.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.icl.build import IclRecipe, PromptBuilder, documentation, parameters
from ctxbench.strategies.icl.retrieved import IclOptions
from ctxbench.strategies.registry import strategy

_ROWS: dict[str, tuple[str, IclRecipe]] = {
    "icl.direct": ("Show the signature and the docstring alone.", IclRecipe(instruction="direct")),
    "icl.rag": (
        "Show the function that is most like signature and docstring.",
        IclRecipe(blocks="function", instruction="A"),
    ),
    "icl.rag_s": (
        "Show the function that is most like signature and docstring in its file, other functions taken out.",
        IclRecipe(blocks="scope", instruction="A"),
    ),
    "icl.filerag": (
        "Show the whole file of the function that is most like signature and docstring.",
        IclRecipe(blocks="file"),
    ),
    "icl.ragot": (
        "Let the model plan; show the function that is most like each step.",
        IclRecipe(blocks="function", steps=True),
    ),
    "icl.ragot_s": (
        "Let the model plan; show the function most like each step in its file, other functions taken out.",
        IclRecipe(blocks="scope", steps=True),
    ),
    "icl.fileragot": (
        "Let the model plan; show the whole file of the function that is most like each step.",
        IclRecipe(blocks="file", steps=True),
    ),
    "icl.infile": ("Show the current file without the function.", IclRecipe(infile=True)),
    "icl.infile_rag": (
        "Show what icl.rag shows, then the current file.",
        IclRecipe(blocks="function", infile=True, instruction="A"),
    ),
    "icl.infile_rag_s": (
        "Show what icl.rag_s shows, then the current file.",
        IclRecipe(blocks="scope", infile=True, instruction="A"),
    ),
    "icl.infile_filerag": (
        "Show what icl.filerag shows, then the current file.",
        IclRecipe(blocks="file", infile=True),
    ),
    "icl.infile_ragot": (
        "Show what icl.ragot shows, then the current file.",
        IclRecipe(blocks="function", steps=True, infile=True),
    ),
    "icl.infile_ragot_s": (
        "Show what icl.ragot_s shows, then the current file.",
        IclRecipe(blocks="scope", steps=True, infile=True),
    ),
    "icl.infile_fileragot": (
        "Show what icl.fileragot shows, then the current file.",
        IclRecipe(blocks="file", steps=True, infile=True),
    ),
    "icl.selfdoc": (
        "Show documentation that the model wrote of the current file and of files like it, and no code.",
        IclRecipe(documents="shown", instruction="A"),
    ),
    "icl.selfdoc_ragot_s": (
        "Let the model document files and plan with that; show what icl.ragot_s shows.",
        IclRecipe(blocks="scope", steps=True, documents="planned", instruction="A"),
    ),
}
_EXTRA_FILES = {"icl.selfdoc_ragot_s": 1}
_HINTS = get_type_hints(IclOptions, include_extras=True)


def _register(name: str, summary: str, recipe: IclRecipe) -> None:
    """Register one row, with the parameters that mean something to it."""
    changed = {"extra_files": _EXTRA_FILES[name]} if name in _EXTRA_FILES else {}

    def build(query: Query, repo: Repository, arguments: Mapping[str, Any]) -> PromptBuilder:
        return PromptBuilder(name, recipe, IclOptions(**{**changed, **arguments}), query, repo)

    def asking(query: Query, repo: Repository, generate: Generate, **arguments: Any) -> Prompt:
        return build(query, repo, arguments).prompt(generate)

    def quiet(query: Query, repo: Repository, **arguments: Any) -> Prompt:
        return build(query, repo, arguments).prompt(None)

    function: Any = asking if recipe.steps or recipe.documents != "no" else quiet
    keywords = [
        inspect.Parameter(
            option,
            inspect.Parameter.KEYWORD_ONLY,
            default=changed.get(option, getattr(IclOptions(), option)),
            annotation=_HINTS[option],
        )
        for option in parameters(recipe)
    ]
    fixed = [argument for argument in inspect.signature(function).parameters.values() if argument.name != "arguments"]
    # The registry reads the parameters off the signature, and their types off the annotations.
    function.__signature__ = inspect.Signature([*fixed, *keywords])
    function.__annotations__ = {
        **function.__annotations__,
        **{keyword.name: keyword.annotation for keyword in keywords},
    }
    function.__doc__ = documentation(recipe, summary)
    strategy(name, kinds=(Kind.FUNCTION,))(function)


for _name, (_summary, _recipe) in _ROWS.items():
    _register(_name, _summary, _recipe)
