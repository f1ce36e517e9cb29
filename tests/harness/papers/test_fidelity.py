"""What strategies have in common with the papers' is written down for every preset, and said where numbers stand."""

from __future__ import annotations

from ctxbench.harness.papers.fidelity import differences, methods, names_in
from ctxbench.harness.papers.presets import presets
from ctxbench.strategies import registry
from scripts.fidelity_page import PAGE, page


def test_every_strategy_of_a_preset_has_a_row_and_every_row_a_strategy() -> None:
    of_presets = {name for row in presets().values() for name in names_in(row.strategy)}
    covered = {name for name in of_presets if any(method.covers(name) for method in methods())}
    assert covered == of_presets and "lc.repofuse" in of_presets
    for method in methods():
        named = {name for name in (method.name, *method.also) if not name.endswith(".")}
        assert all(registry.get(name) for name in named)
        assert any(map(method.covers, of_presets)), f"{method.name} is in no preset"
        assert method.paper and method.equal and method.differs, method.name


def test_a_wrapped_strategy_brings_its_differences() -> None:
    assert [method.name for method in differences(["aim(encoder=unixcoder, inner=lc.repocoder)"])] == [
        "lc.", "lc.repocoder", "aim",
    ]  # fmt: skip
    assert [method.name for method in differences(["icl.selfdoc_ragot_s"])] == ["icl.", "icl.ragot", "icl.selfdoc"]


def test_a_switch_is_a_parameter_of_the_strategy_or_an_option() -> None:
    for method in methods():
        names = [name for name in registry.names() if method.covers(name)]
        parameters = {parameter.name for name in names for parameter in registry.get(name).parameters}
        for difference in method.differs:
            is_option = "--" in difference.switch
            assert is_option or difference.switch.partition("=")[0] in {"", *parameters}, difference
            assert difference.switch not in difference.what or not difference.switch


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m scripts.fidelity_page`"
