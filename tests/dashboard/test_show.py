"""Stored text is shown as text, without Markdown, markup or hidden characters."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from ctxbench.bench.errors import InputFault
from ctxbench.dashboard import show
from ctxbench.dashboard.show import INK
from ctxbench.dashboard.views import SERIES, Figure
from tests.dashboard.stored import PLANTED


def run_show(body: str, **names: Any) -> AppTest:
    """Run a few lines that call `show`. `names` defines the literals that they use."""
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    test = AppTest.from_string(f"from ctxbench.dashboard import show\n{head}{body}", default_timeout=60).run()
    assert not test.exception, test.exception
    return test


def unescaped(text: str) -> str:
    """Return an escaped text as Markdown would render it."""
    words, index = [], 0
    while index < len(text):
        index += text[index] == "\\"
        words.append(text[index])
        index += 1
    return "".join(words).replace("\u2060", "")


@pytest.mark.parametrize("text", [PLANTED.strip(), "a_b*c`d", "\\*", "1 < 2 -> 3", "user@example.org", "# x"])
def test_plain_escapes_markdown_and_keeps_the_text(text: str) -> None:
    escaped = show.plain(text)
    assert unescaped(escaped) == text
    for position, character in enumerate(escaped):
        if character in "*_`[]<>#$:~|!@&{}()\\":
            before = len(escaped[:position]) - len(escaped[:position].rstrip("\\"))
            assert before % 2 or character == "\\", (character, escaped)


def test_plain_breaks_links_and_emoji_codes() -> None:
    # Streamlit converts emoji, icons, links and arrows after it has parsed the Markdown.
    for text in (
        ":smile:",
        "https://harm.example",
        "www.harm.example",
        "a@harm.example",
        "->",
        "<-",
        ":material/home:",
    ):
        assert "\u2060" in show.plain(text), text


def test_plain_returns_one_line_and_shows_hidden_characters() -> None:
    assert show.plain("a\nb\tc") == "a b c"
    assert "202E" in show.plain("a\u202eb")


@pytest.mark.slow
def test_long_text_is_cut_and_can_be_saved_whole() -> None:
    test = run_show("show.text(value, key='whole')", value="x" * 30_000)
    assert len(test.code[0].value.strip()) == 20_000
    assert "30,000" in test.caption[0].value
    assert [button.key for button in test.get("download_button")] == ["whole"]


def test_short_text_has_no_download_button() -> None:
    test = run_show("show.text(value, key='whole')", value="x = 1\n")
    assert test.code[0].value.strip() == "x = 1" and not test.get("download_button")


def test_a_note_escapes_markup() -> None:
    [element] = run_show("show.note(value)", value=PLANTED).get("html")
    assert "<script" not in element.proto.body and "&lt;script&gt;" in element.proto.body


@pytest.mark.slow
def test_a_frame_keeps_numbers_sortable_and_text_unchanged() -> None:
    rows = [{"strategy": PLANTED, "n": 2}, {"strategy": "b", "n": None}]
    test = run_show("show.frame(rows, help={}, key='t')", rows=rows)
    frame = test.dataframe[0].value
    assert list(frame["strategy"]) == [PLANTED, "b"] and frame["n"][0] == 2


@pytest.mark.slow
def test_integers_beside_figures_and_empty_cells_stay_integers() -> None:
    body = (
        "from ctxbench.dashboard.views import Figure\n"
        "show.frame([{**row, 'score': Figure('0.50')} for row in rows], help={}, key='t')"
    )
    rows = [{"block": 1, "share %": 33.3}, {"block": None, "share %": None}, {"block": 12345, "share %": 2.0}]
    data = run_show(body, rows=rows).dataframe[0].proto.arrow_data
    drawn = pa.ipc.open_stream(data.styler.display_values).read_pandas()
    assert [drawn["block"][0], drawn["block"][2]] == ["1", "12345"] and list(drawn["score"]) == ["0.50"] * 3
    assert [drawn["share %"][0], drawn["share %"][2]] == ["33.3", "2"]
    arrow = pa.ipc.open_stream(data.data).read_all()
    # An empty cell is null, not a number.
    assert arrow["block"].to_pylist() == [1, None, 12345] and arrow["share %"].null_count == 1


def test_a_frame_without_rows_has_its_headings() -> None:
    test = run_show("show.frame([], help={'a': 'x', 'b': 'y'}, key='t')")
    assert list(test.dataframe[0].value.columns) == ["a", "b"]


def test_a_fault_is_shown_with_place_problem_and_fix() -> None:
    fault = InputFault("is *broken*", where="a_b.toml", cure="mend <it>")
    body = "from ctxbench.bench.errors import InputFault\nshow.fault(InputFault(what, where=where, cure=cure))"
    test = run_show(body, what=fault.what, where=fault.where, cure=fault.cure)
    assert unescaped(test.error[0].value) == "a_b.toml: is *broken*"
    assert "Mend &lt;it&gt;" in test.get("html")[0].proto.body


def test_terms_are_explained_in_short_sentences() -> None:
    assert all(text.endswith(".") and len(text) < 130 for text in show.HELP.values())


def contrast(colour: str, ground: str) -> float:
    """Return WCAG 2's contrast ratio of two colours."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(colour), light(ground)))
    return (high + 0.05) / (low + 0.05)


def _faded(colour: str, behind: str, share: float) -> str:
    parts = [(int(colour[at : at + 2], 16), int(behind[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(over * share + under * (1 - share)):02x}" for over, under in parts)


@pytest.mark.parametrize("kind", ["light", "dark"])
def test_texts_and_drawings_have_sufficient_contrast(kind: str) -> None:
    """WCAG AA requires a contrast of 4.5 to 1 for text and 3 to 1 for drawings."""
    theme = tomllib.loads(Path("dashboard/theme.toml").read_text())["theme"][kind]
    ground, text = theme["backgroundColor"], theme["textColor"]
    # Streamlit draws captions and table headings with 60% opacity, and selected options in white.
    for behind in (ground, theme["secondaryBackgroundColor"]):
        assert min(contrast(_faded(text, behind, 0.6), behind), contrast(theme["linkColor"], behind)) >= 4.5
    assert contrast(theme["primaryColor"], "#FFFFFF") >= 4.5 and contrast(INK[kind], ground) >= 4.5
    assert min(contrast(colour, ground) for colour in (theme["primaryColor"], *SERIES[:3], SERIES[7])) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pinned", "width"), [("short", True, None), ("n" * 31, None, None), ("n" * 45, None, 330)]
)
def test_columns_of_names_are_pinned_unless_names_are_long(name: str, pinned: bool | None, width: int | None) -> None:
    test = run_show("show.frame([{'strategy': name, 'generator': 'g', 'es %': 1.0}], help={}, key='k')", name=name)
    columns = json.loads(test.dataframe[0].proto.columns)
    assert (columns["strategy"].get("pinned"), columns["strategy"].get("width")) == (pinned, width)
    assert not columns["es %"].get("pinned") and columns["generator"].get("width") is None


def test_a_figure_equals_its_number_and_keeps_its_text() -> None:
    assert Figure("21.0") == 21 and Figure("21.0").text == "21.0"
    least = Figure("<0.001", 0.0004)
    assert least == 0.0004 and least.text == "<0.001"
    assert json.dumps({"p": least}) == '{"p": 0.0004}'
    with pytest.raises(ValueError, match="<0.001"):
        Figure("<0.001")
