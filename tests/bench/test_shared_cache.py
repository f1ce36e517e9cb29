"""`SharedCache`: which entries it keeps, and which entries it evicts first."""

from ctxbench.bench.concurrency import SharedCache


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache, made = SharedCache[str](2), list[str]()

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)

    assert [get(key) for key in "abacab"] == list("abacab")
    assert made == ["a", "b", "c", "b"]


def test_heavy_entries_are_evicted_below_the_maximum_count() -> None:
    cache, made = SharedCache[str](10, weigh=len, heaviest=5), list[str]()

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)

    for key in ("aa", "bb", "aa", "cc", "aa", "bb"):
        assert get(key) == key
    assert made == ["aa", "bb", "cc", "bb"]
    # An entry above the maximum weight is kept until a newer entry is built.
    for key in ("dddddd", "dddddd", "aa"):
        assert get(key) == key
    assert made[4:] == ["dddddd", "aa"]
