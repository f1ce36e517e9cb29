"""The types and functions for authors of strategies: ``from ctxbench import Context, Query, strategy``."""

from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast, AtMost, EncoderSpec, EngineSpec, Inner, Unmasked
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import WindowHit
from ctxbench.strategies.api import Block, BlockKind, Context, Dropped, Execute, Execution, Generate, Prompt, Snippet
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolCall, ToolParameter
from ctxbench.strategies.registry import BoundStrategy, resolve, strategy

__all__ = [
    "AtLeast",
    "AtMost",
    "Block",
    "BlockKind",
    "BoundStrategy",
    "Chat",
    "Context",
    "Dropped",
    "EncoderSpec",
    "EngineSpec",
    "Execute",
    "Execution",
    "Generate",
    "Hit",
    "Inner",
    "Kind",
    "Language",
    "Message",
    "Place",
    "Prompt",
    "Query",
    "Repository",
    "Role",
    "Snippet",
    "Tool",
    "ToolCall",
    "ToolParameter",
    "Unmasked",
    "WindowHit",
    "resolve",
    "strategy",
]
