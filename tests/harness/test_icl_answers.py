"""From a prompt of the ICL family over the built-in generator to one whole function."""

import ast
import textwrap

import pytest

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind, Query, Sample
from ctxbench.harness.generators.answers import extract
from ctxbench.harness.generators.base import Request, Sampling
from ctxbench.harness.generators.incontext import InContext
from tests.helpers.samples import make_sample
from tests.strategies.icl.shop import Model, java_query, made, query


def sample_of(about: Query) -> Sample:
    return make_sample(
        kind=Kind.FUNCTION,
        language=about.language,
        path=about.path,
        cursor=about.cursor,
        prefix=about.prefix,
        suffix=about.suffix,
        name=about.name,
        signature=about.signature,
        docstring=about.docstring,
    )


@pytest.mark.parametrize("name", ["icl.direct", "icl.rag", "icl.infile_ragot_s", "icl.filerag", "icl.selfdoc"])
@pytest.mark.parametrize("about", [query(), java_query()])
def test_the_built_in_generator_answers_with_a_function(name: str, about: Query) -> None:
    prompt = made(name, about, model=Model(instructs=False))
    how = Sampling(max_tokens=1024)
    request = Request(prompt=prompt, language=about.language, kind=Kind.FUNCTION, sampling=how)
    [response] = InContext(workers=1).generate([request])
    found = extract(sample_of(about), response.text)
    assert found.flags == ()
    if about.language == PYTHON:
        assert found.text.startswith("def checkout(store, user, rate):\n")
        ast.parse(textwrap.dedent(found.text))
    else:
        assert found.text.startswith("    double pay(double amount) throws Broke {\n")
        assert found.text.endswith("}")
