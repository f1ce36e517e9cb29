"""Models by name: a table of files of weights, brought to this machine once and converted once for `hf` and `vllm`.

A name stands for the bytes with one SHA-256, whoever offers them: results of one name can be compared. The table is
``models.toml`` here, and the user's own beside the fetched files.
"""

from ctxbench.harness.generators.models.conversion import folder
from ctxbench.harness.generators.models.table import NamedModel, find, gguf, known, names

__all__ = ["NamedModel", "find", "folder", "gguf", "known", "names"]
