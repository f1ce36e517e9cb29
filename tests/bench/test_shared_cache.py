"""`SharedCache`: what it keeps, and what goes when there is too much."""

from ctxbench.bench.concurrency import SharedCache


def test_the_entry_that_was_asked_for_the_longest_ago_goes_first() -> None:
    cache, made = SharedCache[str](2), list[str]()

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)

    assert [get(key) for key in "abacab"] == list("abacab")
    assert made == ["a", "b", "c", "b"]


def test_heavy_entries_go_although_there_is_room_for_more() -> None:
    cache, made = SharedCache[str](10, weigh=len, heaviest=5), list[str]()

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)

    for key in ("aa", "bb", "aa", "cc", "aa", "bb"):
        assert get(key) == key
    assert made == ["aa", "bb", "cc", "bb"]
    # What weighs more than all may is kept while nothing newer is made.
    for key in ("dddddd", "dddddd", "aa"):
        assert get(key) == key
    assert made[4:] == ["dddddd", "aa"]
