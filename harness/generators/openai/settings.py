"""Settings of `openai`, checked, and the credentials that they name. Pure."""

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
CHAT, COMPLETIONS, AUTO = "chat", "completions", "auto"
OFFICIAL_KEY = "OPENAI_API_KEY"
"""The variable that holds the key of OpenAI's own service alone."""
_OFFICIAL_HOST = urlsplit(OFFICIAL).hostname
_WHERE = "openai"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_WORD = re.compile(r"\S+")
_FOLLOWS = re.compile(
    r"(?:^|[-_.:])(?:instruct|chat|it|gpt-(?:\d|oss)\w*|chatgpt|o[1-9]|claude|gemini|command|grok|r1|reasoner|thinking)"
    r"(?:[-_.:@]|$)",
    re.I,
)
"""A piece of a model's name by which its maker says that it follows instructions."""
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_OURS = ("model", "prompt", "messages", "tools", "stream", "n", "echo", "logprobs", "suffix")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISettings:
    """One model behind one server."""

    model: str
    """Its name, as the server lists it."""
    url: str
    """Without a slash at its end; with ``/v1`` where the spec gave no path."""
    chat: bool
    """Whether answers are asked of ``/chat/completions``."""
    concurrency: int
    """Requests at once."""
    timeout: float
    """Seconds that one try may take."""
    retries: int
    """Tries after the first."""
    backoff: float
    """Seconds before the second try; doubled with every further one."""
    window: int
    """Tokens of prompt and answer that the model takes; 0: the server refuses what is too long."""
    fim: str
    """Family of the marks around what follows the cursor; `AUTO` goes by the model's name."""
    key_env: str
    """The environment variable that holds the key; empty for none but OpenAI's own."""
    extra: Mapping[str, Any]
    """More fields of every request's body; None takes a field out."""
    thinking: int = 0
    """Tokens that the model may think, asked for beside those of the answer."""
    whole: bool = True
    """Whether an answer counts only if the server's count says that the whole prompt was read."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """More headers of every request."""
    tools: bool = False
    """Whether the server takes ``tools`` with a chat, and answers with ``tool_calls``."""

    def __post_init__(self) -> None:
        """Check the numbers and the family.

        Raises:
            InputFault: if a number is too small or not finite, or there is no such family.
        """
        for name, number, least in (
            ("window", self.window, 0),
            ("thinking", self.thinking, 0),
            ("concurrency", self.concurrency, 1),
            ("timeout", self.timeout, 0.01),
            ("retries", self.retries, 0),
            ("backoff", self.backoff, 0),
        ):
            if not least <= number < float("inf"):
                raise InputFault(f"{name}={number:g} does not fit", where=_WHERE, cure=f"give {least:g} or more")
        if self.fim != AUTO:
            family(self.fim, where=_WHERE)
        if self.tools and not self.chat:
            raise InputFault("tools=on takes a chat model", where=_WHERE, cure="give endpoint=chat too")

    @property
    def where(self) -> str:
        """The model and its server, for messages."""
        return f"{self.model} at {self.url}"

    @property
    def official(self) -> bool:
        """Whether this is OpenAI's own service."""
        return urlsplit(self.url).hostname == _OFFICIAL_HOST

    @property
    def key_variable(self) -> str:
        """The environment variable with the key that is sent; empty if none is."""
        return self.key_env or (OFFICIAL_KEY if self.official else "")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables whose values are sent, and must be stored and shown nowhere."""
        named = filter(None, map(secrets.reference, self.headers.values()))
        return tuple(dict.fromkeys([*filter(None, [self.key_variable]), *named]))


def follows_instructions(model: str) -> bool:
    """Return whether a model follows instructions by its name, such as ``…-Instruct``, ``…-chat`` or ``gpt-4…``."""
    return _FOLLOWS.search(model.rpartition("/")[2]) is not None


def is_chat(endpoint: str, model: str) -> bool:
    """Return whether answers are asked of the chat endpoint; `AUTO` goes by the model's name.

    Raises:
        InputFault: if there is no such endpoint.
    """
    if endpoint not in (CHAT, COMPLETIONS, AUTO):
        raise InputFault(f"endpoint={endpoint} is unknown", where=_WHERE, cure="give chat, completions or auto")
    return endpoint == CHAT or (endpoint == AUTO and follows_instructions(model))


def base_url(url: str) -> str:
    """Return a server's address as requests use it.

    Raises:
        InputFault: if it is no address, or could hold a secret: a spec is stored and shown. It is not repeated then.
    """
    try:
        parts = urlsplit(url.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        sound = sound and parts.geturl().isascii() and parts.geturl().isprintable() and " " not in parts.geturl()
    except ValueError:
        sound = False
    if not sound:
        raise InputFault("the url is none", where=_WHERE, cure="give http://HOST:PORT/v1")
    if "," in url:
        cure = "give the address of a load balancer that stands before them"
        raise InputFault("the url names several servers", where=_WHERE, cure=cure)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputFault(
            "the url has a user, a password, a query or a fragment",
            where=_WHERE,
            cure="give the bare address, and the key in an environment variable (key_env=NAME)",
        )
    if parts.hostname == _OFFICIAL_HOST and parts.scheme != "https":
        raise InputFault("the service is not asked over plain http", where=_WHERE, cure=f"write url={OFFICIAL}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its address or as ``localhost``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def see_private(settings: OpenAISettings) -> None:
    """Check that no secret goes over plain http to another machine.

    Raises:
        InputFault: if one would.
    """
    address = urlsplit(settings.url)
    if address.scheme == "http" and not is_loopback(address.hostname or "") and settings.variables:
        raise InputFault(
            f"{settings.variables[0]} would go over plain http to another machine, readable on the way",
            where=settings.where,
            cure="give an https address, tunnel to one of this machine, or allow it: insecure=on",
        )


def key_variable(name: str) -> str:
    """Return the name of an environment variable; empty if none was given.

    Raises:
        InputFault: if it cannot be one; it is not repeated, because it may be the key itself.
    """
    if name and not _VARIABLE.fullmatch(name):
        raise InputFault(
            "key_env is no name of an environment variable",
            where=_WHERE,
            cure="give the variable's name in capitals, never the key: key_env=OPENAI_API_KEY",
        )
    return name


def word(name: str, value: str) -> str:
    """Return a text that must be one word.

    Raises:
        InputFault: if it is empty or has blanks.
    """
    if not _WORD.fullmatch(value):
        raise InputFault(f"{name}={value!r} is not one word", where=_WHERE, cure=f"write {name}=NAME without blanks")
    return value


def name_of(model: str, url: str) -> str:
    """Return a model's name.

    Raises:
        InputFault: if it is not one word, or has an address in it that was not understood: what is meant for another
            server must not go to OpenAI. It is not repeated then, because an address may hold a secret.
    """
    if "://" in model or ("@" in model and urlsplit(url).hostname == urlsplit(OFFICIAL).hostname):
        raise InputFault(
            "the model's name has an address in it", where=_WHERE, cure="write openai:MODEL@http://HOST:PORT/v1"
        )
    return word("model", model)


def extra_fields(text: str) -> dict[str, Any]:
    """Read the parameter ``extra``: JSON text of an object; empty for none.

    Raises:
        InputFault: if it is not, or has fields that are decided elsewhere.
    """
    if not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InputFault("extra is no JSON object", where=_WHERE, cure="""write extra='{"top_k": 20}'""")
    reserved = [key for key in _OURS if key in fields]
    if reserved:
        raise InputFault(f"extra has the field {reserved[0]!r}", where=_WHERE, cure="leave it out: ctxbench sets it")
    _see_no_secret("extra", fields)
    return fields


def header_fields(text: str) -> dict[str, str]:
    """Read the parameter ``headers``: JSON text of an object of texts; empty for none.

    Raises:
        InputFault: if it is not, or could hold a secret; values are not repeated then.
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
            "headers is no JSON object of texts", where=_WHERE, cure="""write headers='{"X-Title": "ctxbench"}'"""
        )
    _see_no_secret("headers", {name: text for name, text in fields.items() if secrets.reference(text) is None})
    return fields


def _see_no_secret(parameter: str, value: Any, name: str = "") -> None:
    """Check that JSON data holds no secret, because a spec is stored and shown.

    Raises:
        InputFault: if it may; the value is not repeated.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            _see_no_secret(parameter, item, key)
    elif isinstance(value, list):
        for item in value:
            _see_no_secret(parameter, item, name)
    elif isinstance(value, str) and value and (secrets.named(name) or secrets.shaped(value)):
        cure = 'put it into an environment variable: key_env=NAME, or headers=\'{"X-Api-Key": "$NAME"}\''
        raise InputFault(f"{parameter} has {name!r}, which may be a secret", where=_WHERE, cure=cure)


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
    secrets: re.Pattern[str] | None = field(default=None, repr=False)
    """Matches the secrets in a server's words."""

    @classmethod
    def read(cls, settings: OpenAISettings, environment: Mapping[str, str]) -> Self:
        """Return the secrets that the environment holds for these settings.

        Raises:
            InputFault: if a variable that is named is not set, or holds no key. Its value is not repeated.
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
        """Return a text without the secrets, nor half of one, as they are or as addresses and headers spell them."""
        return self.secrets.sub(secrets.HIDDEN, text) if self.secrets else text


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
