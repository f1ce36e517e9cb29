"""Fill in the middle: what follows the cursor, shown where a model was trained to find it (``run --fim``)."""

from ctxbench.harness.generators.fim.families import AUTO, FAMILIES, Template, cut, ends, family, of_name, of_vocabulary
from ctxbench.harness.generators.fim.filling import (
    MOST,
    PARTED,
    REMARK,
    Infilling,
    after,
    filled,
    left,
    of_strategy,
    template_of,
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
    "left",
    "of_name",
    "of_strategy",
    "of_vocabulary",
    "template_of",
]
