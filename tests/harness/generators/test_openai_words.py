"""Error messages of servers, and generator specs, tested without a server."""

import dataclasses
import time
from collections.abc import Mapping
from email.utils import formatdate

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import Request, TooLong
from ctxbench.harness.generators.openai.client import Problem, refused
from ctxbench.harness.generators.openai.settings import OpenAISettings, follows_instructions
from ctxbench.harness.generators.openai.wire import body
from ctxbench.strategies.api import BlockKind
from tests.helpers.requests import make_request

SETTINGS = OpenAISettings(
    model="m", url="http://h/v1", chat=False, concurrency=4, timeout=1, retries=1, backoff=0, window=0,
    fim="auto",
    key_env="K", extra={},
)  # fmt: skip


def say(status: int, text: str, *, headers: Mapping[str, str] | None = None, limit: int = 128) -> Problem:
    return refused(status, headers or {}, text, {"prompt": "p", "max_tokens": limit}, SETTINGS)


@pytest.mark.parametrize(
    "text",
    [
        # vLLM, several versions
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4128 tokens (4000 in the "
            "messages, 128 in the completion). Please reduce the length of the messages or completion."
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 128. This model's maximum context length is 4096 "
            "tokens and your request has 4000 input tokens (128 > 4096 - 4000)."
        ),
        (
            "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please "
            "reduce the length of the input messages."
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 128 output tokens and your "
            "prompt contains at least 3969 input tokens, for a total of at least 4097 tokens."
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        # OpenAI
        (
            "This model's maximum context length is 4097 tokens, however you requested 4128 tokens (4000 in your "
            "prompt; 128 for the completion). Please reduce your prompt; or completion length."
        ),
        # SGLang, TGI, llama.cpp, Anthropic
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total "
            "of 4128 tokens: 4000 tokens from the input messages and 128 tokens for the completion."
        ),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
        ("`inputs` must have less than 1024 tokens. Given: 2000"),
        ("the request exceeds the available context size (4096 tokens), try increasing it"),
        ("prompt is too long: 205000 tokens > 200000 maximum"),
        ("Input tokens exceed the configured limit of 272000 tokens."),
        # OpenRouter; vLLM since 0.11; messages that do not say how many tokens are left
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 8228 tokens (8100 of "
            "text input, 128 in the output)."
        ),
        (
            "You passed 4000 input tokens and requested 128 output tokens. However, the model's context length is only "
            "4096 tokens, resulting in a maximum input length of 3968 tokens."
        ),
        ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."),
        ("This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
        ("input length and `max_tokens` exceed context limit: 199990 + 128 > 200000"),
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
        ("The prompt is too long: 40000, model maximum context length: 32767"),
    ],
)
def test_too_long_messages_of_all_servers_are_recognized(text: str) -> None:
    found = say(400, f'{{"error": {{"message": "{text}", "code": 400}}}}')
    assert isinstance(found.fault, TooLong) and not found.again and found.instead is None


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"message": "odd", "code": 400}}',
        '{"object": "error", "message": "odd", "code": 400}',
        '{"detail": "odd"}',
        '{"detail": [{"msg": "odd"}]}',
        '{"error": "odd"}',
        "odd",
        " odd\n\n",
    ],
)
def test_the_message_is_found_in_every_error_format(text: str) -> None:
    assert str(say(400, text).fault).startswith("m at http://h/v1: the request is refused (status 400): odd; ")


@pytest.mark.parametrize(("given", "seconds"), [("7", 7), ("0.5", 0.5), ("", 0), ("soon", 0), ("-3", 0), ("nan", 0)])
def test_retry_after_is_read_in_seconds(given: str, seconds: float) -> None:
    assert say(429, "no", headers={"retry-after": given}).wait == seconds


def test_retry_after_is_read_as_a_date() -> None:
    found = say(503, "no", headers={"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert 50 < found.wait <= 60


@pytest.mark.parametrize(
    ("model", "follows"),
    [
        ("Qwen/Qwen2.5-Coder-7B-Instruct", True),
        ("codellama/CodeLlama-7b-Instruct-hf", True),
        ("deepseek-chat", True),
        ("google/gemma-2-9b-it", True),
        ("gpt-4o-mini-2024-07-18", True),
        ("openai/gpt-oss-20b", True),
        ("o3-mini", True),
        ("gpt-5.1-codex", True),
        ("deepseek-reasoner", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", True),
        ("deepseek-ai/DeepSeek-V3-Base", False),
        ("Qwen/Qwen2.5-Coder-7B", False),
        ("bigcode/starcoder2-7b", False),
        ("EleutherAI/gpt-neo-1.3B", False),
        ("gpt2", False),
        ("/data/chat/models/tiny", False),
        ("meta-llama/Llama-3.1-8B", False),
    ],
)
def test_a_name_says_whether_a_model_follows_instructions(model: str, follows: bool) -> None:
    assert follows_instructions(model) is follows
    assert openai.openai(model=model, url="http://h").capabilities.instructs is follows
    assert openai.openai(model=model, url="http://h", endpoint="chat").capabilities.instructs
    assert not openai.openai(model=model, url="http://h", endpoint="completions").capabilities.instructs


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("openai", "needs the parameter 'model'"),
        ("openai(model=m, url=localhost:8000)", "use http://HOST:PORT/v1"),
        ("openai(model=m, url='http://a/v1,http://b/v1')", "use the address of a load balancer"),
        ("openai(model=m, url='http://a,http://b')", "use the address of a load balancer"),
        ("openai(model=m, url='http://h:x/v1')", "use http://HOST:PORT/v1"),
        ("openai(model=m, endpoint=talk)", "give auto or chat or completions"),
        ("openai(model=m, concurrency=0)", "at least 1"),
        ("openai(model=m, timeout=0)", "from 0.01 to"),
        ("openai(model=m, retries=-1)", "at least 0"),
        ("openai(model=m, window=-1)", "at least 0"),
        ("openai(model='two words')", "without blanks"),
        ("openai:m@ftp://h/v1", "write openai:MODEL@http://HOST:PORT/v1"),
        ("openai:m@localhost:8000", "write openai:MODEL@http://HOST:PORT/v1"),
        ("openai(model='https://h/v1')", "write openai:MODEL@http://HOST:PORT/v1"),
        ("openai(model=m, revision='a b')", "without blanks"),
        ("openai(model=m, extra='[1]')", "extra is not a JSON object"),
        ("openai(model=m, extra='{')", "extra is not a JSON object"),
        ("""openai(model=m, extra='{"n": 4}')""", "extra contains the field 'n'"),
        ("openai(model=m, bits=maybe)", "true or false"),
    ],
)
def test_bad_specs_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        base.resolve(spec)
    assert words in str(caught.value)


def test_a_model_of_another_server_may_have_any_name() -> None:
    for spec in ("openai(model='@cf/meta/llama-3', url='https://h/v1')", "openai:claude@20240620@https://h/v1"):
        assert base.resolve(spec).capabilities.batch_size == 16


def request(last: BlockKind = BlockKind.INFILE, kind: Kind = Kind.LINE) -> Request:
    return make_request("int a = ", block=last, kind=kind, language=JAVA)


def test_openais_own_service_gets_max_completion_tokens() -> None:
    made = dataclasses.replace(SETTINGS, chat=True)
    official = dataclasses.replace(made, url="https://api.openai.com/v1")
    assert "max_tokens" in body(request(), made) and "max_completion_tokens" not in body(request(), made)
    assert body(request(), official)["max_completion_tokens"] == 128 and "max_tokens" not in body(request(), official)
