"""Recognizes secrets by a field's name or a text's format. Published specs must not contain secrets."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = frozenset(
    ("apikey", "apitoken", "accesskey", "accesstoken", "auth", "authkey", "authtoken", "authorization", "bearer",
     "cookie", "credential", "credentials", "jwt", "passphrase", "passwd", "password", "privatekey", "pwd", "secret",
     "secretkey", "secrets", "sig", "signature", "subscriptionkey")
)  # fmt: skip
_LAST_WORDS = frozenset(("key", "keys", "token"))
_HARMLESS = frozenset((word, "token") for word in ("bos", "cls", "eos", "mask", "pad", "sep", "special", "stop", "unk"))
_CACHE_KEY = ("cache", "key")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk|csk|nvapi|pplx|xai|glpat|xox[abeprs])-[A-Za-z0-9_-]{16,}"  # most services of models; GitLab, Slack
    r"|(?:hf|gsk|r8|fw|tgp_v1|dop_v1|github_pat|gh[opsru])_[A-Za-z0-9_-]{16,}"
    r"|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|(?:Bearer|Basic) (?=\S*[0-9=])[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:]*:[^\s/?#@]+(?=@)"  # a user and a password in an address
    r")"
)
_ASSIGNED = re.compile(
    r"""([A-Za-z][\w-]*)((?:\s*=\s*|\\?["']\s*:\s*|:\s+)\\?["']?(?:(?:Bearer|Basic) )?)([^\s"'\\,;&)}\]]+)"""
)
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$([A-Z_][A-Z0-9_]*)")
HIDDEN = "…"


def named(field: str) -> bool:
    """Return whether a field's name suggests a secret: ``api_key``, ``X-Auth-Token``, ``password``."""
    words = [word.lower() for word in _WORDS.findall(field)]
    if not words or tuple(words[-2:]) in (*_HARMLESS, _CACHE_KEY):
        return False
    return words[-1] in _LAST_WORDS or not _SECRET_WORDS.isdisjoint(words)


def shaped(text: str) -> bool:
    """Return whether a text contains what looks like an access key, a token, a private key or a URL with a password."""
    return _SHAPES.search(text) is not None


def reference(value: object) -> str | None:
    """Return the name of the environment variable in ``$NAME``, also after a word (``Bearer $NAME``), or None."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match.group(1) if match else None


def redacted(text: str) -> str:
    """Return a text with ``…`` in place of secrets, which are recognized by their format or by the name before them."""
    return _ASSIGNED.sub(_hide, _SHAPES.sub(HIDDEN, text))


def _hide(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    return f"{name}{between}{HIDDEN}" if named(name) and reference(value) is None else match.group()
