"""The types and functions that a strategy's author needs: ``from ctxbench import Context, Query, strategy``."""

from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast, EngineSpec, Inner, Unmasked
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.types import Hit
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import WindowHit
from ctxbench.strategies.api import Block, BlockKind, Context, Dropped, Execute, Execution, Generate, Prompt, Snippet
from ctxbench.strategies.registry import BoundStrategy, resolve, strategy

__all__ = [
    "AtLeast",
    "Block",
    "BlockKind",
    "BoundStrategy",
    "Context",
    "Dropped",
    "EngineSpec",
    "Execute",
    "Execution",
    "Generate",
    "Hit",
    "Inner",
    "Kind",
    "Language",
    "Place",
    "Prompt",
    "Query",
    "Repository",
    "Snippet",
    "Unmasked",
    "WindowHit",
    "resolve",
    "strategy",
]
