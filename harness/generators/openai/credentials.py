"""`Credentials`: the secrets that settings name, read, filled in, and taken out of a server's words. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from ctxbench.bench import secrets
from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators.openai.settings import BEARER, OpenAISettings

_SHORT = 8
"""Characters; a shorter key (``EMPTY``, ``none``), or one of letters alone, is a plain word for a server of one's own,
and may well occur in an answer."""
_HALF = 16
"""Characters of a key whose first or last half must not show either."""
_CHARACTERS = r"[A-Za-z0-9._~+/=%-]*"
"""The characters of keys."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of one server's requests."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request, with the values of the variables that the spec names."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variable -> its value, of those that the spec names."""
    secrets: re.Pattern[str] | None = field(default=None, repr=False)
    """Matches the secrets in a server's words."""

    @classmethod
    def read(cls, settings: OpenAISettings, environment: Mapping[str, str]) -> Self:
        """Return the secrets that the environment holds for these settings.

        Raises:
            InputFault: if a variable that is named is not set, or holds no key. Its value is not repeated.
        """
        variables = {name: _value(name, environment, settings) for name in settings.variables}
        headers = {name: _filled(value, variables) for name, value in settings.headers.items()}
        if settings.key_variable:
            key = variables[settings.key_variable]
            headers[settings.key_header] = f"Bearer {key}" if settings.key_header == BEARER else key
        patterns = [pattern for value in dict.fromkeys(variables.values()) for pattern in _spellings(value)]
        return cls(headers, variables, re.compile("|".join(patterns), re.I) if patterns else None)

    def filled(self, body: Any) -> Any:
        """Return a body with the values of the variables that it names in the place of secrets."""
        if not self.variables:
            return body
        if isinstance(body, dict):
            return {
                key: _filled(value, self.variables)
                if secrets.named(key) and secrets.reference(value)
                else self.filled(value)
                for key, value in body.items()
            }
        return [self.filled(item) for item in body] if isinstance(body, list) else body

    def scrub(self, text: str) -> str:
        """Return a text without the secrets, nor half of one, as they are or as addresses and headers spell them."""
        return self.secrets.sub(secrets.HIDDEN, text) if self.secrets else text


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    name = secrets.reference(value)
    return value.replace(f"${name}", variables[name]) if name is not None and name in variables else value


def _spellings(secret: str) -> Iterator[str]:
    """Yield patterns that match a secret, or a half of it."""
    if len(secret) < _SHORT or secret.isalpha():
        return
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]
    if len(secret) >= _HALF:
        half = len(secret) // 2
        yield re.escape(secret[:half]) + _CHARACTERS
        yield re.escape(secret[-half:])
    yield from map(re.escape, dict.fromkeys((secret, quote(secret, safe=""), coded)))


def _value(name: str, environment: Mapping[str, str], settings: OpenAISettings) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise InputFault(f"{name} is not set", where=settings.where, cure=f"export {name}=… and run again")
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise InputFault(f"{name} holds no key", where=settings.where, cure="check for blanks and line ends")
    return value
