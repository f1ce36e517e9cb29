"""The base image: local, pulled, or the home-made one, and one line where there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctxbench.sandbox.docker import bases
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.errors import SandboxUnavailable


@dataclass
class Image:
    id: str


@dataclass
class Images:
    """The engine's images and its registry's."""

    here: dict[str, str]
    there: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, name: str) -> Image:
        from docker.errors import ImageNotFound

        if name not in self.here:
            raise ImageNotFound("none", response=_Response(404))
        return Image(self.here[name])

    def pull(self, name: str) -> Image:
        from docker.errors import APIError

        self.asked.append(name)
        if name not in self.there:
            # What an engine without a way out says: no 404.
            raise APIError("500", response=_Response(500), explanation="Get https://registry: dial tcp: no such host")
        self.here[name] = self.there[name]
        return Image(self.there[name])


@dataclass
class _Response:
    status_code: int
    reason: str = ""
    url: str = ""


@dataclass
class Engine:
    images: Images


def got(images: Images, wanted: str = bases.OFFICIAL) -> tuple[str, list[str]]:
    said: list[str] = []
    return bases.get(Engine(images), wanted, said.append), said


def test_what_is_here_is_taken_and_nothing_asked() -> None:
    images = Images({bases.OFFICIAL: "1", bases.HOME_MADE: "2"}, {bases.OFFICIAL: "3"})
    assert got(images) == ("1", [])
    assert images.asked == []


def test_what_is_not_here_is_pulled_even_where_the_home_made_one_is() -> None:
    assert got(Images({bases.HOME_MADE: "2"}, {bases.OFFICIAL: "3"})) == ("3", [f"pulling the image {bases.OFFICIAL}"])


def test_where_no_registry_answers_the_home_made_one_is_used_and_said_so() -> None:
    found, said = got(Images({bases.HOME_MADE: "2"}))
    assert found == "2"
    assert said[-1] == f"{bases.OFFICIAL} cannot be pulled: using {bases.HOME_MADE}"


def test_an_image_that_was_asked_for_by_name_is_never_replaced() -> None:
    with pytest.raises(SandboxUnavailable, match="mine:1: the image cannot be pulled"):
        got(Images({bases.HOME_MADE: "2"}), "mine:1")


def test_none_at_all_is_one_line_with_the_cure() -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        got(Images({}))
    text = str(caught.value)
    assert "\n" not in text and "scripts/debian_base.sh" in text and "CTXBENCH_BASE_IMAGE" in text


def test_local_asks_no_registry() -> None:
    assert bases.local(Engine(Images({bases.HOME_MADE: "2"})), bases.OFFICIAL) == "2"
    assert bases.local(Engine(Images({bases.HOME_MADE: "2"})), "mine:1") is None


@pytest.mark.slow
def test_the_python_of_an_image_is_asked_once(engine: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = bases.get(engine, bases.OFFICIAL, lambda _: None)
    assert bases.python(engine, base, tmp_path) == "3.11"

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(engine.containers.__class__, "run", refuse)
    assert bases.python(engine, base, tmp_path) == "3.11"
