"""One arena per back end, open for a whole module. In CI, no back end may be missing."""

from collections.abc import Iterator

import pytest

from tests.helpers.sandboxes import BACK_ENDS
from tests.sandbox.attacks.arena import Arena, arena


@pytest.fixture(scope="module", params=BACK_ENDS)
def ring(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with arena(request.param, tmp_path_factory.mktemp("arena")) as here:
        yield here
