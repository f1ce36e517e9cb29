"""Generators: models behind a spec. What the author of one imports stands here."""

from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, TooLong, generator

__all__ = ["Capabilities", "Generator", "Request", "Response", "Shorthand", "TooLong", "generator"]
