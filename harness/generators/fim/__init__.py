"""Fill in the middle: show the text after the cursor to models that were trained for it (``run --fim``)."""

from ctxbench.harness.generators.fim.families import AUTO, FAMILIES, Template, cut, ends, family, of_name, of_vocabulary
from ctxbench.harness.generators.fim.filling import (
    MOST,
    PARTED,
    REMARK,
    Infilling,
    after,
    filled,
    of_strategy,
    template_of,
    unmarked,
)

__all__ = [
    "AUTO",
    "FAMILIES",
    "MOST",
    "PARTED",
    "REMARK",
    "Infilling",
    "Template",
    "after",
    "cut",
    "ends",
    "family",
    "filled",
    "of_name",
    "of_strategy",
    "of_vocabulary",
    "template_of",
    "unmarked",
]
