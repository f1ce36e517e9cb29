"""The checked settings and the credentials of the generator `openai`."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, urlsplit

from ctxbench.bench import secrets
from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators.fim import family

OFFICIAL = "https://api.openai.com/v1"
CHAT, AUTO = "chat", "auto"
OFFICIAL_KEY = "OPENAI_API_KEY"
_OFFICIAL_HOST = urlsplit(OFFICIAL).hostname
_WHERE = "openai"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_WORD = re.compile(r"\S+")
_FOLLOWS = re.compile(
    r"(?:^|[-_.:])(?:instruct|chat|it|gpt-(?:\d|oss)\w*|chatgpt|o[1-9]|claude|gemini|command|grok|r1|reasoner|thinking)"
    r"(?:[-_.:@]|$)",
    re.I,
)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_OURS = ("model", "prompt", "messages", "tools", "stream", "n", "echo", "logprobs", "suffix")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISettings:
    """A model, its server, and how requests are sent."""

    model: str
    url: str
    """The server's address, without a final slash, and with ``/v1`` if the spec has no path."""
    chat: bool
    """Whether requests go to ``/chat/completions``."""
    concurrency: int
    timeout: float
    retries: int
    backoff: float
    """Maximum seconds before the second try, doubled for each further try up to 30; a server may ask for more."""
    window: int
    """Maximum tokens of prompt and answer together; 0 to leave the limit to the server."""
    fim: str
    """Family of the fill-in-the-middle tokens. `AUTO` chooses the family by the model's name."""
    key_env: str
    """Name of the environment variable with the key; if empty, OpenAI's service uses `OFFICIAL_KEY`, others no key."""
    extra: Mapping[str, Any]
    """Additional fields of every request's body. A value of None removes the field."""
    thinking: int = 0
    """Tokens requested for thinking, in addition to those of the answer."""
    whole: bool = True
    """Whether to refuse an answer if the server's token count is too low for the whole prompt."""
    headers: Mapping[str, str] = field(default_factory=dict)
    tools: bool = False
    """Whether the server accepts ``tools`` with a chat, and answers with ``tool_calls``."""

    def __post_init__(self) -> None:
        if self.fim != AUTO:
            family(self.fim, where=_WHERE)
        if self.tools and not self.chat:
            raise InputFault("tools=on needs a chat model", where=_WHERE, cure="set endpoint=chat (for serve: chat=on)")

    @property
    def where(self) -> str:
        """The model's name and its server's address, for error messages."""
        return f"{self.model} at {self.url}"

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's own service."""
        return urlsplit(self.url).hostname == _OFFICIAL_HOST

    @property
    def key_variable(self) -> str:
        """Name of the environment variable with the key to send; empty for no key."""
        return self.key_env or (OFFICIAL_KEY if self.is_openai else "")

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables whose values are sent and must never be stored or displayed."""
        named = filter(None, map(secrets.reference, self.headers.values()))
        return tuple(dict.fromkeys([*filter(None, [self.key_variable]), *named]))


def follows_instructions(model: str) -> bool:
    """Return whether a model's name (``…-Instruct``, ``…-chat``, ``gpt-4…``) implies that it follows instructions."""
    return _FOLLOWS.search(model.rpartition("/")[2]) is not None


def is_chat(endpoint: str, model: str) -> bool:
    """Return whether requests go to the chat endpoint. `AUTO` decides by the model's name."""
    return endpoint == CHAT or (endpoint == AUTO and follows_instructions(model))


def base_url(url: str) -> str:
    """Check a server's address; return it without a final slash, and with ``/v1`` if it has no path.

    Raises:
        InputFault: if `url` is not one http(s) address, could contain a secret, or is OpenAI's without https. The
            message does not repeat the address.
    """
    try:
        parts = urlsplit(url.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        sound = sound and parts.geturl().isascii() and parts.geturl().isprintable() and " " not in parts.geturl()
    except ValueError:
        sound = False
    if not sound:
        raise InputFault("the url is not valid", where=_WHERE, cure="use http://HOST:PORT/v1")
    if "," in url:
        cure = "use the address of a load balancer"
        raise InputFault("the url names several servers", where=_WHERE, cure=cure)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputFault(
            "the url has a user, a password, a query or a fragment",
            where=_WHERE,
            cure="use the bare address, and put the key into an environment variable (key_env=NAME)",
        )
    if parts.hostname == _OFFICIAL_HOST and parts.scheme != "https":
        raise InputFault("OpenAI's service needs https", where=_WHERE, cure=f"write url={OFFICIAL}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def see_private(settings: OpenAISettings) -> None:
    """Check that no secret is sent to another machine over plain http.

    Raises:
        InputFault: if a secret would be sent in this way.
    """
    address = urlsplit(settings.url)
    if address.scheme == "http" and not is_loopback(address.hostname or "") and settings.variables:
        raise InputFault(
            f"{settings.variables[0]} would be sent over plain http to another machine",
            where=settings.where,
            cure="use an https address, or a tunnel to a port of this machine, or allow it: insecure=on",
        )


def key_variable(name: str) -> str:
    """Check the name of an environment variable, and return it. An empty name is valid.

    Raises:
        InputFault: if the name is invalid. The message does not repeat the name, because it may be the key itself.
    """
    if name and not _VARIABLE.fullmatch(name):
        raise InputFault(
            "key_env is not the name of an environment variable",
            where=_WHERE,
            cure="use the variable's name in capitals, never the key: key_env=OPENAI_API_KEY",
        )
    return name


def word(name: str, value: str) -> str:
    """Check that the value of the setting `name` is one word, and return it.

    Raises:
        InputFault: if the value is empty or has blanks.
    """
    if not _WORD.fullmatch(value):
        raise InputFault(f"{name}={value!r} is not one word", where=_WHERE, cure=f"write {name}=NAME without blanks")
    return value


def name_of(model: str, url: str) -> str:
    """Check a model's name, and return it.

    Raises:
        InputFault: if the name is not one word, or contains an address, because requests would go to `url` instead.
            The message does not repeat the address, which may contain a secret.
    """
    if "://" in model or ("@" in model and urlsplit(url).hostname == urlsplit(OFFICIAL).hostname):
        raise InputFault(
            "the model's name contains an address", where=_WHERE, cure="write openai:MODEL@http://HOST:PORT/v1"
        )
    return word("model", model)


def extra_fields(text: str) -> dict[str, Any]:
    """Parse the parameter ``extra``: additional request fields as a JSON object; may be empty.

    Raises:
        InputFault: if the text is not a JSON object, has fields that only ctxbench may set, or could contain a secret.
    """
    if not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InputFault("extra is not a JSON object", where=_WHERE, cure="""write extra='{"top_k": 20}'""")
    reserved = [key for key in _OURS if key in fields]
    if reserved:
        raise InputFault(
            f"extra contains the field {reserved[0]!r}", where=_WHERE, cure="leave it out: only ctxbench may set it"
        )
    _see_no_secret("extra", fields)
    return fields


def header_fields(text: str) -> dict[str, str]:
    """Parse the parameter ``headers``: HTTP headers as a JSON object with string values; may be empty.

    Raises:
        InputFault: if the text is not such an object, or could contain a secret. The message does not repeat values.
    """
    try:
        fields = json.loads(text or "{}")
    except ValueError:
        fields = None
    sound = isinstance(fields, dict) and all(
        _HEADER.fullmatch(name) and isinstance(value, str) and value.isascii() and value.isprintable()
        for name, value in fields.items()
    )
    if not isinstance(fields, dict) or not sound:
        raise InputFault(
            "headers is not a JSON object with header names and ASCII values",
            where=_WHERE,
            cure="""write headers='{"X-Title": "ctxbench"}'""",
        )
    _see_no_secret("headers", {name: text for name, text in fields.items() if secrets.reference(text) is None})
    return fields


def _see_no_secret(parameter: str, value: Any, name: str = "") -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _see_no_secret(parameter, item, key)
    elif isinstance(value, list):
        for item in value:
            _see_no_secret(parameter, item, name)
    elif isinstance(value, str) and value and (secrets.named(name) or secrets.shaped(value)):
        cure = 'put it into an environment variable: key_env=NAME, or headers=\'{"X-Api-Key": "$NAME"}\''
        raise InputFault(f"{parameter} contains {name!r}, which may be a secret", where=_WHERE, cure=cure)


_SHORT = 8
"""Minimum characters of a secret key. A shorter key (``EMPTY``, ``none``) or a key of letters only is a placeholder for
a local server, and may occur in an answer."""
_HALF = 16
"""Minimum characters of a key whose halves are also treated as secrets."""
_CHARACTERS = r"[A-Za-z0-9._~+/=%-]*"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The headers of requests to one server, and a pattern that finds their secrets in texts."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request, in which the values of environment variables replace their names."""
    secrets: re.Pattern[str] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, settings: OpenAISettings, environment: Mapping[str, str]) -> Self:
        """Read the secrets for these settings from the environment.

        Raises:
            InputFault: if a variable is not set, or its value is not a valid key. The message does not repeat the
                value.
        """
        variables = {name: _value(name, environment, settings) for name in settings.variables}
        headers = dict(settings.headers)
        for name, value in settings.headers.items():
            if (variable := secrets.reference(value)) is not None:
                headers[name] = value.replace(f"${variable}", variables[variable])
        if settings.key_variable:
            headers["Authorization"] = f"Bearer {variables[settings.key_variable]}"
        patterns = [pattern for value in dict.fromkeys(variables.values()) for pattern in _spellings(value)]
        return cls(headers, re.compile("|".join(patterns), re.I) if patterns else None)

    def scrub(self, text: str) -> str:
        """Hide the secrets in a text: plain, URL-encoded or in base64, and plain halves of long secrets.

        Secrets that are short, or have only letters, stay: they are usually placeholders for a local server.
        """
        return self.secrets.sub(secrets.HIDDEN, text) if self.secrets else text


def _spellings(secret: str) -> Iterator[str]:
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
        raise InputFault(
            f"{name} is not set", where=settings.where, cure=f"run `export {name}=…`, then the same command again"
        )
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise InputFault(
            f"{name} does not contain a valid key", where=settings.where, cure="use a key in ASCII, without blanks"
        )
    return value
