"""The ``pypi`` source: the sdist of a release, unpacked; no code of the package is run."""

from __future__ import annotations

from ctxbench.bench.files import sha256_file
from ctxbench.bench.sources import index
from ctxbench.bench.sources.archive import unpack
from ctxbench.bench.sources.base import Destination, PypiSource, Unreachable, check_sha256
from ctxbench.bench.sources.web import Web


def fetch(source: PypiSource, to: Destination) -> None:
    """Download the sdist from the configured index, compare its hash, unpack it.

    Raises:
        Unreachable: if no configured place offers it.
        InputFault: if the sdists offered have another hash than the manifest's.
    """
    configuration = index.configured()
    web = Web(certificates=configuration.certificates, proxy=configuration.proxy, seconds=configuration.seconds)
    reasons: list[str] = []
    other: tuple[str, str] | None = None
    for offer in index.offers(source.name, source.version, web, configuration, reasons):
        digest = offer.sha256
        if not digest or digest == source.sha256:
            archive = to.scratch / "sdist"
            try:
                web.save(offer.url, archive)
            except Unreachable as error:
                reasons.append(str(error))
                continue
            digest = sha256_file(archive)
            if digest == source.sha256:
                dropped = unpack(archive, to.tree, strip=True)
                if dropped:
                    to.report(f"{source}: {dropped} links left out")
                return
        other = other or (offer.filename, digest)
    if other:
        check_sha256(other[0], source.sha256, other[1], where=str(source))
    raise Unreachable(", ".join(reasons) or "pip is configured to use no index", where=str(source))
