"""The shop repository of the ICL tests with a real search, and stand-ins for the model and the sandbox."""

from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repository import View
from ctxbench.bench.types import Query
from ctxbench.strategies.api import Execution, Prompt
from ctxbench.strategies.registry import resolve
from tests.helpers.views import make_view
from tests.strategies.icl.shop import JAVA, PYTHON, Model, query


class Sandbox:
    """A sandbox that returns the given outcomes in turn and records the programs."""

    def __init__(self, *outcomes: Execution) -> None:
        self.outcomes, self.ran = list(outcomes), list[tuple[str, float]]()

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        self.ran.append((program, seconds))
        return self.outcomes.pop(0)


def view(about: Query, files: dict[str, str] | None = None) -> View:
    default = PYTHON if about.language == PYTHON_LANGUAGE else JAVA
    return make_view(about, default if files is None else files, name="shop")


def made(
    spec: str,
    about: Query | None = None,
    *,
    files: dict[str, str] | None = None,
    model: Model | None = None,
    sandbox: Sandbox | None = None,
) -> Prompt:
    """Return the prompt that a strategy builds for a query, by default in the Python repository."""
    about = about or query()
    return resolve(spec)(about, view(about, files), model or Model(), sandbox or Sandbox())
