"""The choice of a base image: local, pulled or home-made; and the error if there is none."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.docker.images import HOME_MADE, OFFICIAL, base_id, base_python, local_base
from ctxbench.sandbox.errors import SandboxUnavailable


@dataclass
class Image:
    id: str


@dataclass
class Images:
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
            # An engine without network access reports this error, not a 404.
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


def got(images: Images, wanted: str = OFFICIAL) -> tuple[str, list[str]]:
    said: list[str] = []
    return base_id(Engine(images), wanted, said.append), said


def test_a_local_base_image_is_used_without_a_pull() -> None:
    images = Images({OFFICIAL: "1", HOME_MADE: "2"}, {OFFICIAL: "3"})
    assert got(images) == ("1", [])
    assert images.asked == []


def test_the_official_image_is_pulled_even_if_a_home_made_one_exists() -> None:
    assert got(Images({HOME_MADE: "2"}, {OFFICIAL: "3"})) == ("3", [f"pulling the image {OFFICIAL}"])


def test_the_home_made_image_is_used_and_reported_if_the_pull_fails() -> None:
    found, said = got(Images({HOME_MADE: "2"}))
    assert found == "2"
    assert said[-1] == f"{OFFICIAL} cannot be pulled: using {HOME_MADE}"


def test_an_image_requested_by_name_is_never_replaced() -> None:
    with pytest.raises(SandboxUnavailable, match="mine:1: the image cannot be pulled"):
        got(Images({HOME_MADE: "2"}), "mine:1")


def test_the_error_without_a_base_image_says_how_to_get_one() -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        got(Images({}))
    text = str(caught.value)
    assert "\n" not in text and "docker/debian_base.sh`" in text and "CTXBENCH_BASE_IMAGE" in text


def test_local_base_does_not_ask_a_registry() -> None:
    assert local_base(Engine(Images({HOME_MADE: "2"})), OFFICIAL) == "2"
    assert local_base(Engine(Images({HOME_MADE: "2"})), "mine:1") is None


@pytest.mark.slow
def test_the_python_of_an_image_is_cached(engine: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = base_id(engine, OFFICIAL, lambda _: None)
    assert base_python(engine, base, tmp_path) == "3.11"

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(engine.containers.__class__, "run", refuse)
    assert base_python(engine, base, tmp_path) == "3.11"
