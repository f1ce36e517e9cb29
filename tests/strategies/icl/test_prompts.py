"""Complete prompts of the ICL strategies."""

import pytest

from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind
from ctxbench.strategies.icl.prompts import (
    INSTRUCTIONS,
    parse_steps,
    plain_steps,
    with_section,
)
from tests.strategies.icl.shop import JAVA, PYTHON, Model, java_query, prompt_of, query

A = (
    "You are an expert developer. You must write a function or method based on the function signature, docstring and "
    "documentation provided in the context of the function (restate the function signature). Firstly, make a high "
    "level plan with steps that progressively solves the task. Based on this plan, generate the code. If a method "
    "signature is provided, implement just the method, do not implement the whole class. The generated code must be "
    "between [CODE] and [/CODE] tags."
)
B = (
    "You are an expert developer. You must write a function or method based on the function signature, docstring and "
    "implementations provided in the context of the function (restate the function signature). If a method signature "
    "is provided, implement just the method, do not implement the whole class. The generated code must be between "
    "[CODE] and [/CODE] tags."
)
DIRECT = (
    "You are an expert developer. You must write a function or method based on the function signature and docstring "
    "(restate the function signature). If a method signature is provided, implement just the method, do not implement "
    "the whole class. The generated code must be between [CODE] and [/CODE] tags."
)
PYTHON_END = '''\
### Function docstring:
def checkout(store, user, rate): """
    """
    Take the money of a user.

    Add the tax to the cart.
    """'''
JAVA_END = """\
### Function docstring:
/**
 * Take the money.
 *
 * @param amount to pay
 */
double pay(double amount) throws Broke"""
LOAD = '''\
def load_cart(user):
    """Return the cart of a user."""
    return {}'''
STORE = f'"""Where carts are kept."""\n\n\n{LOAD}'
CURRENT = '''\
"""Paying."""
from shop.rules import apply_tax


def refund(store, user):
    """Give the money back."""
    return -store[user]




def close(store):
    """Close the store."""
    store.close()'''
TAX_SCOPE = '''\
"""Rules that turn a sum into a price."""

import math

RATE = 0.2

if math is not None:

    def apply_tax(amount, rate=RATE):
        """Add the tax to an amount."""
        return amount * (1 + rate)

class Rules:
    """All of them."""

    places = 2'''
STEPS = "1. **Load**: Return the cart of a user.\n2) **Tax**: Add the tax to an amount, amount and rate.\n"


def asked(docstring: str) -> tuple[Query, str]:
    end = PYTHON_END.replace("Take the money of a user.\n\n    Add the tax to the cart.", docstring)
    return query(docstring=docstring), end


def test_the_instructions_equal_the_papers() -> None:
    assert {"A": A, "B": B, "direct": DIRECT} == INSTRUCTIONS


def test_direct_shows_only_the_signature_and_docstring() -> None:
    assert prompt_of("icl.direct").text == f"{DIRECT}\n\n{PYTHON_END}"
    assert prompt_of("icl.direct", java_query()).text == f"{DIRECT}\n\n{JAVA_END}"


def test_rag_shows_the_retrieved_function() -> None:
    about, end = asked("Return the cart of a user.")
    assert prompt_of("icl.rag", about).text == (
        f"{A}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{LOAD}\n\n{end}"
    )


def test_rag_s_shows_the_scope_of_the_retrieved_function() -> None:
    about, end = asked("Add the tax to an amount.")
    assert prompt_of("icl.rag_s", about).text == (
        f"{A}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{TAX_SCOPE}\n\n{end}"
    )


def test_rag_s_in_java_keeps_overloads_but_no_constructors() -> None:
    scope = """\
package shop;

import java.util.List;

/** Rules. */
class Rules {
    static final double RATE = 0.2;

    static {
        System.setProperty("a", "{");
    }

    /** Add the tax to an amount to pay. */
    double tax(double amount) {
        return amount * (1 + RATE);
    }

    double tax(double amount, double rate) {
        return amount * (1 + rate);
    }

    interface Part {
    }

    enum Coin { CENT, EURO; int worth() { return 1; } }
}"""
    assert prompt_of("icl.rag_s", java_query()).text == (
        f"{A}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{scope}\n\n{JAVA_END}"
    )


def test_filerag_shows_whole_files() -> None:
    rules = PYTHON["shop/rules.py"].removesuffix("\n")
    about, end = asked("Add the tax to an amount.")
    assert prompt_of("icl.filerag(k=2)", about).text == (
        f"{B}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{rules}\n\n"
        f"#####\nFILE 2\n#####\n{CURRENT}\n\n{end}"
    )


def test_ragot_s_plans_then_shows_a_scope_for_each_step() -> None:
    model = Model(STEPS)
    prompt = prompt_of("icl.ragot_s", model=model)
    assert prompt.text == (
        f"{B}\n\n### Context with implementations:\n"
        f'#####\nFILE 1\n#####\n"""Where carts are kept."""\n\n{LOAD}\n\n'
        f"#####\nFILE 2\n#####\n{TAX_SCOPE}\n\n"
        "Here are the steps to implement it:\n"
        "1. **Load**: Return the cart of a user.\n"
        "2. **Tax**: Add the tax to an amount, amount and rate.\n\n"
        f"{PYTHON_END}"
    )
    [(role, most, asked)] = model.asked
    assert (role, most) == ("steps", 512)
    assert asked == (
        "You are an expert developer. Below are the signature and docstring of a function or method that must be "
        "added to an existing repository. Break its implementation down into a few steps, at most 3. Write one step "
        "per line in the form\n"
        "1. **Short title**: one or two sentences that say what the step does.\n"
        "Do not write code and do not write anything before or after the list.\n\n"
        f"{PYTHON_END}"
    )


def test_infile_filerag_ends_with_the_current_file() -> None:
    about, end = asked("Return the cart of a user.")
    assert prompt_of("icl.infile_filerag", about).text == (
        f"{B}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{STORE}\n\n"
        f"#####\nFILE 2\n#####\n{CURRENT}\n\n{end}"
    )


def test_infile_in_java_keeps_the_class() -> None:
    current = """\
package shop;

/** Takes money. */
class Till {
    private Rules rules;

    Till(Rules rules) {
        this.rules = rules;
    }


    int count() {
        return 0;
    }
}"""
    assert prompt_of("icl.infile", java_query()).text == (
        f"{B}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{current}\n\n{JAVA_END}"
    )


def test_selfdoc_shows_documentation_and_no_code() -> None:
    about, end = asked("Return the cart of a user.")
    model = Model("load_cart(user): the cart.\n", "refund(store, user): money.\n\nclose(store): nothing.")
    prompt = prompt_of("icl.selfdoc(extra_files=1)", about, model=model)
    assert prompt.text == (
        f"{A}\n\n### Context with implementations:\n#####\nFILE 1\n#####\nload_cart(user): the cart.\n\n"
        f"#####\nFILE 2\n#####\nrefund(store, user): money.\n\nclose(store): nothing.\n\n{end}"
    )
    head = (
        "You are an expert developer. Read the file below. For every function and method in it write its signature, "
        "what it does, and what it returns. Do not copy function bodies.\n\n#####\nFILE\n#####\n"
    )
    assert model.asked == [("documentation", 1024, head + STORE), ("documentation", 1024, head + CURRENT)]
    api = [block for block in prompt.blocks if block.kind is BlockKind.API]
    assert [block.places[0].path for block in api] == ["shop/store.py", "shop/checkout.py"]


def test_selfdoc_lists_declarations_if_the_model_takes_no_instructions() -> None:
    prompt = prompt_of("icl.selfdoc", model=Model(instructs=False))
    documentation = (
        'def refund(store, user):\n    """Give the money back."""\ndef close(store):\n    """Close the store."""'
    )
    assert prompt.text == (
        f"{A}\n\n### Context with implementations:\n#####\nFILE 1\n#####\n{documentation}\n\n{PYTHON_END}"
    )
    assert prompt.flags == ("plain_documentation",)


def test_selfdoc_ragot_s_shows_documentation_only_in_the_planning_prompt() -> None:
    model = Model("DOCUMENT 1", "DOCUMENT 2", STEPS)
    prompt = prompt_of("icl.selfdoc_ragot_s", model=model)
    assert [role for role, _, _ in model.asked] == ["documentation", "documentation", "steps"]
    assert model.asked[2][2].endswith(
        "before or after the list.\n\n### Documentation of the repository:\nDOCUMENT 1\n\nDOCUMENT 2\n\n" + PYTHON_END
    )
    assert "DOCUMENT" not in prompt.text
    assert prompt.text == prompt_of("icl.ragot_s(instruction=A)", model=Model(STEPS)).text


def test_an_added_section_comes_before_the_steps() -> None:
    prompt = with_section(
        prompt_of("icl.ragot_s", model=Model(STEPS)),
        "APIS THAT MAY BE USED",
        Block(kind=BlockKind.API, text="def a()"),
        Block(kind=BlockKind.API, text="\n\ndef b()"),
    )
    section = "#####\nAPIS THAT MAY BE USED\n#####\ndef a()\n\ndef b()\n\n"
    assert f"    places = 2\n\n{section}Here are the steps to implement it:\n" in prompt.text
    bare = with_section(prompt_of("icl.direct"), "MORE", Block(kind=BlockKind.API, text="x"))
    assert bare.text == f"{DIRECT}\n\n### Context with implementations:\n#####\nMORE\n#####\nx\n\n{PYTHON_END}"


def test_target_style_and_instruction_can_be_set() -> None:
    assert prompt_of("icl.direct(target_style=clean)").text.endswith(
        '### Function docstring:\ndef checkout(store, user, rate):\n    """\n    Take the money of a user.\n\n'
        '    Add the tax to the cart.\n    """'
    )
    bare = query(docstring="")
    assert prompt_of("icl.direct(target_style=clean)", bare).text.endswith(":\ndef checkout(store, user, rate):")
    assert prompt_of("icl.direct", bare).text.endswith(':\ndef checkout(store, user, rate): """\n    """\n    """')
    whole = java_query(docstring="/**\n     * Take it.\n     */", signature="double pay(double amount) {")
    assert prompt_of("icl.direct", whole).text.endswith(":\n/**\n     * Take it.\n     */\ndouble pay(double amount)")
    assert prompt_of("icl.infile(instruction=A)").text.startswith(f"{A}\n\n###")
    assert prompt_of("icl.infile", java_query(), JAVA).text.count("FILE") == 1


def test_rag_strategies_ask_for_a_plan_as_in_figure_9() -> None:
    for spec in ("icl.infile_rag", "icl.infile_rag_s", "icl.rag", "icl.rag_s", "icl.selfdoc"):
        assert prompt_of(spec, model=Model("It pays.")).text.startswith(f"{A}\n\n###")
    for spec in ("icl.infile", "icl.infile_filerag", "icl.infile_ragot_s"):
        assert prompt_of(spec, model=Model(STEPS)).text.startswith(f"{B}\n\n###")


METHOD = """\
    # Rounds up.
    @property
    @cached(
        seconds=2,
    )
    def step(self):
        \"\"\"Take the money of a user.\"\"\"
        text = \'\'\'
at the margin
\'\'\'

        return text
"""


def test_a_retrieved_method_is_dedented() -> None:
    files = {"shop/checkout.py": PYTHON["shop/checkout.py"], "shop/rules.py": f"class Rules:\n{METHOD}"}
    about = query(docstring="Rounds up property cached seconds step self take money of a user text at margin return.")
    text = prompt_of("icl.rag", about, files=files).text.partition("FILE 1\n#####\n")[2]
    dedented = "\n".join(line.removeprefix("    ") for line in METHOD.rstrip("\n").split("\n"))
    assert "\nat the margin\n" in dedented
    assert text.partition("\n\n### Function docstring")[0] == dedented


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        ("1. **A**: do a.\n2. **B**: do b.", ("**A**: do a.", "**B**: do b.")),
        ("  3) a\n 10. b\n", ("a", "b")),
        ("Here they are:\n\n1. a\n   more of a\n\n2. b\n", ("a\n   more of a", "b")),
        ("Load it.\nThen sum it.", ("Load it.\nThen sum it.",)),
        ("1.5 is no number of a step", ("1.5 is no number of a step",)),
        ("", ()),
        (" \n\n", ()),
        ("1. \n2. b", ("b",)),
    ],
)
def test_a_step_is_a_numbered_line_and_the_lines_after_it(answer: str, steps: tuple[str, ...]) -> None:
    assert parse_steps(answer) == steps


@pytest.mark.parametrize(
    ("docstring", "steps"),
    [
        ("Load the cart. Add the tax!\nRound it. Say so.", ("Load the cart.", "Add the tax!", "Round it.")),
        ("Load the\ncart e.g. from disk.\n\nArgs:\n    a: Not this.", ("Load the cart e.g. from disk.",)),
        ("Add.\n>>> add(1)\n2", ("Add.",)),
        ("Add.\n\n:param a: Not this.", ("Add.",)),
        ("Pays.\n\n@param a Not this.", ("Pays.",)),
        ("Add.\n\nParameters\n----------\na", ("Add.",)),
        (":param a: Only this.", ("check out",)),
        ("", ("check out",)),
        ("...", ("check out",)),
    ],
)
def test_plain_steps_are_the_first_sentences(docstring: str, steps: tuple[str, ...]) -> None:
    assert plain_steps(query(docstring=docstring, name="Shop.checkOut(int)"), 3) == steps
    assert plain_steps(query(docstring="", name=None), 3) == ()
