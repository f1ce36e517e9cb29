"""Detection of secrets by the names of fields and by the shape of texts, without false alarms."""

import pytest

from ctxbench.bench import secrets, spec
from ctxbench.bench.errors import InputFault

KEYS = [
    "sk-proj-5Zq8Wd2aB3cD4eF5gH6",
    "sk-ant-api03-5Zq8Wd2aB3cD4eF5",
    "hf_5Zq8Wd2aB3cD4eF5gH6iJ7",
    "ghp_5Zq8Wd2aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT",
    "gsk_5Zq8Wd2aB3cD4eF5gH6i",
    "nvapi-5Zq8Wd2aB3cD4eF5gH6i",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA5Zq8Wd2aB3cD4eF5gH6iJ7kL8mN9oP0",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def",
    "Bearer 5Zq8Wd2aB3",
    "https://user:5Zq8Wd2a@host/v1",
    "-----BEGIN RSA PRIVATE KEY-----",
]
PLAIN = [
    "Qwen/Qwen2.5-Coder-7B-Instruct",
    "https://api.openai.com/v1",
    "http://[::1]:8000/v1",
    "deepseek-ai/deepseek-coder-6.7b-base",
    "4d3a4ac1f0b2c3d4e5f60718293a4b5c6d7e8f90",
    '{"chat_template_kwargs": {"enable_thinking": false}, "top_k": 20}',
    "Bearer authentication is described elsewhere",
    "/data/models--sk-hynix--tiny/snapshots/a1b2",
    "risk-of-a-very-long-model-name-7B",
]


@pytest.mark.parametrize("text", KEYS)
def test_keys_are_detected_by_their_shape(text: str) -> None:
    assert secrets.shaped(text) and secrets.shaped(f'{{"a": "{text}"}}')
    assert "5Zq8" not in secrets.redacted(f"openai(model=m, extra='{text}')")


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_texts_are_not_detected_as_keys(text: str) -> None:
    assert not secrets.shaped(text) and secrets.redacted(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "X-Api-Key",
        "key",
        "Ocp-Apim-Subscription-Key",
        "Authorization",
        "auth",
        "access_token",
        "Cookie",
        "password",
        "db_password",
        "client_secret",
        "sig",
        "hf_token",
        "cf-aig-authorization",
        "api_keys",
    ],
)
def test_names_of_secret_fields_are_detected(name: str) -> None:
    assert secrets.named(name)
    assert secrets.redacted(f'{name}="5Zq8"') != f'{name}="5Zq8"'


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "stop_token_ids",
        "top_k",
        "prompt_cache_key",
        "eos_token",
        "skip_special_tokens",
        "key_env",
        "keyboard",
        "X-Title",
        "author",
        "model",
        "tokenizer",
        "monkey",
        "3",
    ],
)
def test_names_of_ordinary_fields_are_not_detected(name: str) -> None:
    assert not secrets.named(name)


@pytest.mark.parametrize(
    ("value", "variable"),
    [("$MY_KEY", "MY_KEY"), ("Bearer $K2", "K2"), ("$my_key", None), ("5Zq8", None), ("a$KEY", None), (3, None)],
)
def test_references_to_environment_variables_are_read(value: object, variable: str | None) -> None:
    assert secrets.reference(value) == variable


@pytest.mark.parametrize(
    "text",
    [
        "openai:m@http://h(api_key='sk-5Zq8Wd2aB3cD4eF5gH6'",
        "x(token=5Zq8, =)",
        "a b(password=5Zq8)",
        "x(k=1, k='sk-5Zq8Wd2aB3cD4eF5gH6')",
    ],
)
def test_a_fault_of_an_invalid_spec_hides_its_secrets(text: str) -> None:
    with pytest.raises(InputFault) as caught:
        spec.parse(text)
    assert "5Zq8" not in str(caught.value)
