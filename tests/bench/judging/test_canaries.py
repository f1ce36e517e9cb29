from ctxbench.bench.judging.python.judging import canaries, nonce

TESTS = ("tests/test_x.py::test_merge_with[a-b]", "tests/test_x.py::TestY::test_mergeTwo")


def test_a_secret_gives_the_same_canaries_again_and_another_gives_others() -> None:
    assert canaries("a", TESTS) == canaries("a", TESTS) != canaries("b", TESTS)
    assert nonce("a") == nonce("a") != nonce("b")
    assert "a" * 8 not in nonce("a" * 8)


def test_one_stands_last_and_one_is_a_method() -> None:
    for secret in "abcdefgh":
        drawn = canaries(secret, TESTS)
        assert [each.unittest for each in drawn] == [False, True, False]
        assert drawn[-1].place == 1.0 and all(0 <= each.place <= 1 for each in drawn)
        assert all(each.left != each.right for each in drawn)
        assert len({each.name for each in drawn}) == 3


def test_names_are_made_of_the_tests_own_words() -> None:
    words = {"test", "merge", "with", "mergetwo"}
    for secret in "abcdefgh":
        for each in canaries(secret, TESTS):
            *rest, number = each.name.split("_")
            assert set(rest) <= words and number.isdigit() and each.name.isidentifier()


def test_tests_without_words_have_canaries_too() -> None:
    assert canaries("a", ["x.py::test_1"])[0].name.startswith("test_value_")
