# mypy: ignore-errors
"""Tests of our own for lena 0.5, whose sdist has none. Expectations: the docstrings, and the package as it is."""

import copy

import lena.core
import pytest
from lena.context.functions import difference
from lena.core import check_sequence_type as kinds
from lena.core.split import _get_seq_with_type
from lena.structures import Graph, Histogram, graph, histogram
from lena.structures.hist_functions import hist_to_graph, integral


class Fills:
    def fill(self, value):
        pass


class FillsAndComputes(Fills):
    def compute(self):
        yield 0


class FillsAndRequests(Fills):
    def request(self):
        yield 0

    def reset(self):
        pass


class Runs:
    def run(self, flow):
        return flow


class Attributes:
    """Has every name, and can call none of them."""

    fill = compute = request = run = 1


class ComputesNothing(Fills):
    compute = None


class RequestsNothing(Fills):
    request = None


class FillsNothing:
    fill = None

    def compute(self):
        yield 0

    def request(self):
        yield 0


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (FillsAndComputes(), True),
        (Fills(), False),
        (FillsAndRequests(), False),
        (Attributes(), False),
        (ComputesNothing(), False),
        (FillsNothing(), False),
        (None, False),
        ([FillsAndComputes()], False),
    ],
)
def test_is_fill_compute_el(element, expected):
    assert bool(kinds.is_fill_compute_el(element)) is expected


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (FillsAndRequests(), True),
        (Fills(), False),
        (FillsAndComputes(), False),
        (Attributes(), False),
        (RequestsNothing(), False),
        (FillsNothing(), False),
        ("fill", False),
    ],
)
def test_is_fill_request_el(element, expected):
    assert bool(kinds.is_fill_request_el(element)) is expected


@pytest.mark.parametrize(
    ("element", "expected"), [(Runs(), True), (Fills(), False), (Attributes(), False), (7, False), ([Runs()], False)]
)
def test_is_run_el(element, expected):
    assert bool(kinds.is_run_el(element)) is expected


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        (FillsAndRequests(), True),
        ([FillsAndRequests()], True),
        ((Runs(), FillsAndRequests(), Runs()), True),
        ([Runs()], False),
        ([], False),
        (Runs(), False),
        (5, False),
        (lena.core.Source(FillsAndComputes), False),
        ([FillsAndComputes()], False),
    ],
)
def test_is_fill_request_seq(sequence, expected):
    assert bool(kinds.is_fill_request_seq(sequence)) is expected


def test_a_source_with_a_fill_request_element_is_no_fill_request_seq():
    assert not kinds.is_fill_request_seq(_source())


def _source():
    source = lena.core.Source(lambda: iter([1]))
    source.fill = lambda value: None
    source.request = lambda: iter([1])
    return source


def test_sequences_keep_their_type():
    made = [
        (lena.core.Source(lambda: iter([1])), "source"),
        (lena.core.FillComputeSeq(FillsAndComputes()), "fill_compute"),
        (lena.core.FillRequestSeq(FillsAndRequests(), reset=False, buffer_input=True), "fill_request"),
        (lena.core.Sequence(Runs()), "sequence"),
    ]
    for sequence, kind in made:
        found = _get_seq_with_type(sequence)
        assert found[0] is sequence
        assert found[1] == kind


def test_elements_become_sequences_by_their_methods():
    fill_compute, fill_request = FillsAndComputes(), FillsAndRequests()
    assert _get_seq_with_type(fill_compute) == (fill_compute, "fill_compute")
    assert _get_seq_with_type(fill_request) == (fill_request, "fill_request")
    for given, kind, made in [
        ((fill_compute, Runs()), "fill_compute", lena.core.FillComputeSeq),
        ((Runs(), Runs()), "sequence", lena.core.Sequence),
        (Runs(), "sequence", lena.core.Sequence),
        (lambda value: value + 1, "sequence", lena.core.Sequence),
    ]:
        sequence, found = _get_seq_with_type(given)
        assert found == kind
        assert type(sequence) is made


def test_a_tuple_with_a_request_becomes_a_fill_request_sequence():
    sequence, kind = _get_seq_with_type((FillsAndRequests(),), bufsize=3)
    assert kind == "fill_request"
    assert type(sequence) is lena.core.FillRequestSeq


def test_members_of_a_tuple_run_in_turn():
    sequence, _ = _get_seq_with_type((lambda value: value + 1, lambda value: value * 10))
    assert list(sequence.run([1, 2])) == [20, 30]


def test_what_is_no_sequence_is_a_type_error():
    with pytest.raises(lena.core.LenaTypeError):
        _get_seq_with_type(5)


def test_difference():
    first = {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 4}}, "g": 5}
    second = {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 9}}, "h": 6}
    before = copy.deepcopy(first), copy.deepcopy(second)
    assert difference(first, second) == {"b": {"d": {"f": 4}}, "g": 5}
    assert difference(second, first) == {"b": {"d": {"f": 9}}, "h": 6}
    assert (first, second) == before


def test_difference_stops_at_its_level():
    first = {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 4}}}
    second = {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 9}}}
    assert difference(first, second, level=0) == first
    assert difference(first, second, level=1) == {"b": first["b"]}
    assert difference(first, second, level=2) == {"b": {"d": {"e": 3, "f": 4}}}
    assert difference(first, second, level=3) == {"b": {"d": {"f": 4}}}


@pytest.mark.parametrize("level", [-1, 0, 1])
def test_nothing_differs_between_equals(level):
    assert difference({"a": {"b": 1}}, {"a": {"b": 1}}, level) == {}


def test_difference_of_values_that_are_no_dictionaries():
    assert difference(1, {"a": 1}) == 1
    assert difference({"a": 1}, 1) == {"a": 1}
    assert difference({"a": {"b": 1}}, {"a": 2}) == {"a": {"b": 1}}
    assert difference({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}) == {}
    assert difference({"a": 1}, {}) == {"a": 1}


def test_integral():
    assert integral([1, 2, 3], [[0, 1, 3, 6]]) == 1 * 1 + 2 * 2 + 3 * 3
    assert integral([], [[0]]) == 0
    assert integral([[1, 2], [3, 4]], [[0, 2, 3], [0, 1, 5]]) == 1 * 2 + 2 * 8 + 3 * 1 + 4 * 4
    assert integral([-1, 1.5], [[-1, 0, 2]]) == 2.0


def test_histogram_fill():
    one = histogram([0, 1, 2, 4])
    for coordinate in [0, 0.5, 1, 3.9]:
        one.fill(coordinate)
    one.fill(1.5, 10)
    one.fill(2, weight=-3)
    assert one.bins == [2, 11, -2]


@pytest.mark.parametrize("outside", [-0.1, -100, 4, 4.1, 100])
def test_histogram_fill_ignores_what_is_outside(outside):
    one = histogram([0, 1, 2, 4], bins=[1, 2, 3])
    assert one.fill(outside) is None
    assert one.bins == [1, 2, 3]


def test_histogram_fill_in_two_dimensions():
    two = histogram([[0, 1, 2], [0, 10, 20, 30]])
    two.fill([0, 0])
    two.fill([1, 29], 5)
    two.fill((1.5, 10), 2)
    assert two.bins == [[1, 0, 0], [0, 2, 5]]
    for outside in [(-1, 5), (2, 5), (0, -1), (0, 30), (5, 50), (-1, -1)]:
        two.fill(outside)
    assert two.bins == [[1, 0, 0], [0, 2, 5]]


def test_histogram_scale_is_its_integral_and_kept():
    one = histogram([0, 1, 3], bins=[2, 4])
    assert one.scale() == 10
    one.fill(0)
    assert one.scale() == 10
    assert one.scale(recompute=True) == 11
    assert one.scale() == 11
    assert histogram([[0, 2], [0, 3]], bins=[[5]]).scale() == 30


def test_histogram_can_be_rescaled():
    one = histogram([0, 1, 3], bins=[2, 4])
    assert one.scale(5) is None
    assert one.bins == [1, 2]
    assert one.scale() == 5
    assert one.scale(recompute=True) == 5
    two = histogram([[0, 1, 2], [0, 1]], bins=[[1], [3]])
    two.scale(2)
    assert two.bins == [[0.5], [1.5]]


def test_zero_histogram_cannot_be_rescaled():
    with pytest.raises(lena.core.LenaValueError):
        histogram([0, 1, 2]).scale(1)


def _reset(element):
    element.fill((0.5, {"name": "x"}))
    element._hist.fill(0.5)
    element.reset()
    # The bins may stand at the element or at the histogram in it.
    return vars(element).get("bins", element._hist.bins)


def test_histogram_element_resets_to_its_initial_bins():
    given = [5, 7]
    element = Histogram([0, 1, 2], bins=given)
    assert _reset(element) == [5, 7]
    assert element._cur_context == {}


def test_histogram_element_resets_to_copies():
    element = Histogram([0, 1, 2], bins=[5, 7])
    first = _reset(element)
    first[0] = 100
    assert _reset(element) == [5, 7]


def test_histogram_element_resets_with_make_bins():
    made = []

    def make():
        made.append([0.5 + len(made), 9])
        return made[-1]

    element = Histogram([0, 1, 2], make_bins=make)
    before = len(made)
    assert _reset(element) == [0.5 + before, 9]
    assert len(made) == before + 1
    assert element._cur_context == {}


def _errors():
    return graph(
        [[1, 2], [3, 4], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
        field_names="E,t,error_E_low,error_t,error_E_high",
        scale=2,
    )


def test_error_indices_of_a_coordinate():
    given = _errors()
    assert list(given._get_err_indices("E")) == [2, 4]
    assert list(given._get_err_indices("t")) == [3]
    assert list(given._get_err_indices("x")) == []
    assert list(graph([[1], [2]])._get_err_indices("x")) == []


def test_graph_adds_its_errors_to_a_context():
    context = {"value": {"name": "kept"}, "error": {"other": 1}}
    _errors()._update_context(context)
    assert context == {
        "value": {"name": "kept"},
        "error": {"other": 1, "x_low": {"index": 2}, "y": {"index": 3}, "x_high": {"index": 4}},
    }


def test_error_indices_are_named_by_position():
    context = {}
    graph([[1], [2], [3], [4], [5]], field_names=("a", "b", "c", "error_c", "error_b_up"))._update_context(context)
    assert context == {"error": {"z": {"index": 3}, "y_up": {"index": 4}}}


def test_graph_without_errors_leaves_a_context_alone():
    context = {"a": 1}
    graph([[1], [2]])._update_context(context)
    assert context == {"a": 1}


def test_graph_scale_is_what_was_given():
    assert graph([[1], [2]], scale=3).scale() == 3
    assert graph([[1], [2]]).scale() is None


def test_graph_rescales_its_last_coordinate_and_errors():
    given = _errors()
    assert given.scale(4) is None
    assert given.coords == [[1, 2], [6, 8], [0.1, 0.2], [0.6, 0.8], [0.5, 0.6]]
    assert given.scale() == 4
    three = graph([[1, 2], [3, 4], [5, 6]], field_names=("x", "y", "z"), scale=4)
    three.scale(2)
    assert three.coords == [[1, 2], [3, 4], [2.5, 3]]


@pytest.mark.parametrize("scale", [None, 0])
def test_graph_without_scale_cannot_be_rescaled(scale):
    with pytest.raises(lena.core.LenaValueError):
        graph([[1], [2]], scale=scale).scale(1)


@pytest.mark.filterwarnings("ignore")
def test_old_graph_to_csv():
    points = [(2, 3), (1, 4)]
    assert Graph(points=list(points)).to_csv() == "1,4\n2,3"
    assert Graph(points=list(points), sort=False).to_csv() == "2,3\n1,4"
    assert Graph(points=[((1, 2), (3, 4)), ((0, 5), 6)]).to_csv(separator=" ") == "0 5 6\n1 2 3 4"
    assert Graph(points=[(1, 2)]).to_csv(header="x,y") == "x,y\n1,2"
    assert Graph(points=[(1, 2)]).to_csv(";", "") == "\n1;2"
    assert Graph().to_csv() == ""


@pytest.mark.parametrize(("where", "xs"), [("left", [0, 1]), ("right", [1, 3]), ("middle", [0.5, 2])])
def test_hist_to_graph(where, xs):
    made = hist_to_graph(histogram([0, 1, 3], bins=[5, 7]), get_coordinate=where)
    assert isinstance(made, graph)
    assert made.coords == [xs, [5, 7]]
    assert made.field_names == ("x", "y")
    assert made.scale() is None


def test_hist_to_graph_by_default_takes_left_edges():
    assert hist_to_graph(histogram([0, 1, 3], bins=[5, 7])).coords == [[0, 1], [5, 7]]


def test_hist_to_graph_scale():
    given = histogram([0, 1, 3], bins=[5, 7])
    assert hist_to_graph(given, scale=True).scale() == 19
    assert hist_to_graph(given, scale=2).scale() == 2


def test_hist_to_graph_with_values_made():
    given = histogram([0, 1, 3], bins=[5, 7])
    made = hist_to_graph(given, make_value=lambda one: (one, one / 10), field_names="x, y, error_y")
    assert made.coords == [[0, 1], [5, 7], [0.5, 0.7]]
    assert made.field_names == ("x", "y", "error_y")
    assert hist_to_graph(given, make_value=lambda one: one + 1).coords == [[0, 1], [6, 8]]


def test_hist_to_graph_in_two_dimensions():
    given = histogram([[0, 1, 3], [10, 20]], bins=[[5], [7]])
    made = hist_to_graph(given, get_coordinate="middle", field_names=("x", "y", "z"))
    assert made.coords == [[0.5, 2], [15, 15], [5, 7]]
