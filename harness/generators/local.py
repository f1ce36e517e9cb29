"""Models with weights on this machine: the settings, files and tokenizers that the generators `hf` and `vllm` share."""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO, Literal

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, read_text
from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.bench.retrieval.encoders.weights import WEIGHTS, weight_files
from ctxbench.harness.generators import answers, fim, models
from ctxbench.harness.generators.answers import End, end_of
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, TooLong
from ctxbench.harness.generators.fim import Template
from ctxbench.harness.generators.fitting import encode_pair, rolling_windows
from ctxbench.harness.generators.openai.settings import follows_instructions
from ctxbench.strategies.api import BlockKind, Prompt

AUTO = "auto"
UseOfTemplate = Literal["on", "off", "auto"]
NumberFormat = Literal["float32", "bfloat16", "float16", "auto"]
BatchSize = Annotated[int, AtLeast(1)]
Window = Annotated[int, AtLeast(0)]
_CACHED = "models--"
_TEXTS = (".json", ".txt", ".model", ".jinja")
_STRETCHES, _STRETCH = 16, 4096
"""Number of parts of a weights file that its digest covers, and bytes per part."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model with weights on this machine, and its settings."""

    by: str
    model: str
    """A name in `ctxbench model list`, a folder, or a name on the Hugging Face hub."""
    revision: str
    dtype: str
    batch: int
    window: int
    """Maximum tokens of prompt and answer; 0 for the model's configured length."""
    chat: bool

    @property
    def where(self) -> str:
        """The generator and its model, for messages."""
        return f"{self.by} {self.model}"


def is_chat(chat: str, model: str) -> bool:
    """Return whether prompts use the model's chat template. `AUTO` decides by the table of models, or the model's name.

    The presence of a template does not decide, because models that only continue text may have a template too.
    """
    if chat != AUTO:
        return chat == "on"
    if (entry := models.known(model)) is not None:
        return entry.chat
    path = PurePath(model)
    cached = (part.replace("--", "/") for part in path.parts if part.startswith(_CACHED))
    return any(follows_instructions(name) for name in (path.name, *cached))


def model_folder(settings: LocalModel) -> Path:
    """Return the folder of a model, which is in the table of models, named by its path, or in the hub's cache.

    A model of the hub that the cache lacks is fetched, unless ``HF_HUB_OFFLINE`` is set.

    Raises:
        InputFault: if the folder contains no model, the model is neither on this machine nor on a reachable hub, or a
            model of the table is missing.
        MachineFault: if fetching the model from the hub fails, or the disk has too little space.
    """
    if models.known(settings.model) is not None:
        return models.folder(settings.model)
    if Path(settings.model).expanduser().exists():
        return weights.local(settings.model, where=settings.by)
    hub: Any = importlib.import_module("huggingface_hub")
    options: dict[str, Any] = {"repo_id": settings.model, "revision": settings.revision or None}
    try:
        folder = Path(hub.snapshot_download(local_files_only=True, **options))
        if weight_files(folder):
            return folder
    except (OSError, ValueError):
        pass
    patterns = [f"*{suffix}" for suffix in (*_TEXTS, WEIGHTS[0])]
    try:
        folder = Path(hub.snapshot_download(allow_patterns=patterns, ignore_patterns="*/*", **options))
        if not weight_files(folder):
            patterns.append(f"*{WEIGHTS[1]}")
            folder = Path(hub.snapshot_download(allow_patterns=patterns, ignore_patterns="*/*", **options))
    except (
        hub.errors.RepositoryNotFoundError,
        hub.errors.RevisionNotFoundError,
        hub.errors.HFValidationError,
    ) as error:
        raise _unknown(
            settings, "the model is not a folder, and the hub has no such model or does not let you read it"
        ) from error
    except (hub.errors.OfflineModeIsEnabled, hub.errors.LocalEntryNotFoundError) as error:
        raise _unknown(
            settings, "the model is neither a folder nor in the hub's cache, and the hub cannot be reached"
        ) from error
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        reason = str(error).partition("\n")[0]
        cure = "run the same command again, or name a folder"
        raise MachineFault(f"the model cannot be fetched ({reason})", where=settings.where, cure=cure) from error
    return weights.local(str(folder), where=settings.by)


def _unknown(settings: LocalModel, what: str) -> InputFault:
    cure = (
        "check the name (`ctxbench model list` lists some) and revision=, or fetch the model on another machine "
        "and name its folder"
    )
    if near := difflib.get_close_matches(settings.model, models.names(), n=1, cutoff=0.5):
        cure = f"did you mean {near[0]}?"
    return InputFault(what, where=settings.where, cure=cure)


def model_digest(folder: Path) -> str:
    """Return a digest of the files that determine a model's answers, quickly for files of any size.

    The digest covers configuration, tokenizer and chat template completely. Of each weights file, it covers name, size
    and 16 evenly spaced parts of 4 KiB; the first part begins the list of tensors.
    """
    whole = hashlib.sha256()
    with explained(folder):
        for path in sorted(path for path in folder.iterdir() if path.suffix in _TEXTS):
            whole.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
        for path in weight_files(folder):
            size = path.stat().st_size
            whole.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as handle:
                for stretch in _stretches(handle, size):
                    whole.update(stretch)
    return whole.hexdigest()[:12]


def _stretches(handle: BinaryIO, size: int) -> Iterator[bytes]:
    last = max(0, size - _STRETCH)
    for number in range(_STRETCHES):
        handle.seek(last * number // (_STRETCHES - 1))
        yield handle.read(_STRETCH)


def configured_window(folder: Path) -> int:
    """Return the window in a model's ``config.json``, in tokens; 0 if unknown.

    Raises:
        InputFault: if the file cannot be read or is not a JSON object.
    """
    config = _configuration(folder)
    # Models that also read images have a separate configuration for text.
    parts = [config, config.get("text_config") or {}]
    numbers = (part.get(key) for part in parts for key in _POSITIONS)
    return next((number for number in numbers if type(number) is int and number > 0), 0)


def configured_dtype(folder: Path) -> str:
    """Return the number format of a model's weights in its ``config.json``, such as ``bfloat16``; empty if unknown.

    Raises:
        InputFault: if the file cannot be read or is not a JSON object.
    """
    config = _configuration(folder)
    return str(config.get("dtype") or config.get("torch_dtype") or "")


def _configuration(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(read_text(path))
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise InputFault("the file is not a JSON object", where=str(path), cure="fetch the model again")
    return config


_TAIL = 16
"""Number of prompt tokens to decode together with an answer, because some tokenizers drop a text's first blank."""
_DATE = "26 Jul 2024"
"""Fixed date for chat templates that insert the date, so that prompts are the same every day."""


def transformers_module() -> Any:
    """Return the module transformers, with progress bars and advice off; raises `InputFault` if it is missing."""
    # Imported by name: the package is optional and has no types.
    try:
        module: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise InputFault(f"transformers cannot be imported ({error})", where="hf", cure=CURE) from error
    module.utils.logging.disable_progress_bar()
    module.utils.logging.set_verbosity_error()
    return module


class Tokens:
    """The tokenizer of one model."""

    def __init__(self, folder: Path, settings: LocalModel) -> None:
        self._settings = settings
        # Other threads count prompts while answers are decoded, and tokenizers are not thread-safe.
        self._lock = threading.Lock()
        module = transformers_module()
        try:
            self._tokenizer: Any = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:
            # The library raises many kinds of exceptions for unusable files.
            raise unreadable(settings, error) from error
        if settings.chat and not self._tokenizer.chat_template:
            raise InputFault(
                "the model has no chat template", where=settings.where, cure="set chat=off, or use another model"
            )

    def prompt(self, request: Request) -> list[int]:
        """Return the tokens of a request's prompt, at least one.

        Raises:
            InputFault: if the chat template refuses the request's messages, or the model cannot fill in the middle.
        """
        if request.sampling.fim:
            return self._marked(request.prompt)
        if not self._settings.chat:
            return self.plain(request.prompt.text)
        system = [{"role": "system", "content": request.system}] * bool(request.system)
        message = {"role": "user", "content": utf8(answers.line_message(request))}
        try:
            text = self._tokenizer.apply_chat_template(
                [*system, message], tokenize=False, add_generation_prompt=True, date_string=_DATE
            )
        except Exception as error:
            # A chat template is a program, so it can fail in any way.
            raise unreadable(self._settings, error) from error
        return self._ids(text, special=False)

    def plain(self, text: str) -> list[int]:
        """Return the tokens of a text, with the model's usual special tokens, such as the start token."""
        return self._ids(utf8(text), special=True) or [self.begin]

    def text(self, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of the generated tokens that follow `before`."""
        tail = list(before[-_TAIL:])
        return self._decoded([*tail, *generated])[len(self._decoded(tail)) :]

    def answer(self, request: Request, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of tokens generated for a request, without the token that ended a filled-in middle."""
        last = len(generated) - (bool(generated) and generated[-1] in self.middle_ends(request))
        return self.text(before, generated[:last])

    def middle_ends(self, request: Request) -> frozenset[int]:
        """Return the additional tokens that end an answer if the request is for fill in the middle; otherwise empty."""
        return self._middle_ends if request.sampling.fim else frozenset()

    @functools.cached_property
    def template(self) -> Template:
        """The model's fill-in-the-middle template; raises the same exceptions as `Local.infilling`."""
        return fim.of_vocabulary(self._vocabulary, chat=self._settings.chat, where=self._settings.where)

    @property
    def begin(self) -> int:
        """The start token, or the end token if the model has no start token; 0 without both."""
        begin, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        return next((token for token in (begin, end) if token is not None), 0)

    @property
    def ends(self) -> frozenset[int]:
        """The tokenizer's end tokens."""
        end = self._tokenizer.eos_token_id
        return frozenset() if end is None else frozenset([end])

    @functools.cached_property
    def _vocabulary(self) -> dict[str, int]:
        with self._lock:
            vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        return vocabulary

    @functools.cached_property
    def _middle_ends(self) -> frozenset[int]:
        return frozenset(self._vocabulary[token] for token in fim.ends(self._vocabulary, self.template))

    def _marked(self, prompt: Prompt) -> list[int]:
        ids = self._ids("", special=True)
        for is_mark, blocks in itertools.groupby(prompt.blocks, lambda block: block.kind is BlockKind.MARK):
            if is_mark:
                ids = ids + [self._vocabulary[self.template.token(block.text)] for block in blocks]
            else:
                ids = ids + self._ids(utf8("".join(block.text for block in blocks)), special=False)
        return ids

    def _ids(self, text: str, *, special: bool) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return ids

    def _decoded(self, ids: list[int]) -> str:
        with self._lock:
            text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def unreadable(settings: LocalModel, error: Exception) -> InputFault:
    """Return the fault for a model that a library cannot read."""
    reason = str(error).strip().partition("\n")[0]
    return InputFault(
        f"the model cannot be read ({type(error).__name__}: {reason})",
        where=settings.where,
        cure="name the folder of a model for text generation, with weights and tokenizer",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRequest:
    """A request with its tokenized prompt."""

    request: Request
    ids: list[int]
    most: int
    """Maximum tokens of the answer, at least one."""
    end: End


class Local(Generator):
    """A model whose tokenizer is loaded in this process. Other processes may compute the answers."""

    def __init__(self, model: LocalModel, *, batch_size: int) -> None:
        self._model = model
        self._opening = threading.Lock()
        self._words: Tokens | None = None
        self.capabilities = Capabilities(
            weights=True, batch_size=batch_size, instructs=model.chat, log_likelihoods=True, fills=True, counts=True
        )

    @functools.cached_property
    def window(self) -> int:  # type: ignore[override] # computed on first use
        """Maximum tokens of prompt and answer together; 0 if unknown."""
        return self._model.window or configured_window(self._folder)

    def count(self, request: Request) -> int:
        """Return the number of the model's tokens in a request's prompt, including template and special tokens."""
        return len(self._tokens.prompt(request))

    def infilling(self) -> Template:
        """Return the model's fill-in-the-middle template.

        Raises:
            InputFault: if the vocabulary lacks the special tokens, or the model is used as a chat model.
        """
        return self._tokens.template

    @functools.cached_property
    def _folder(self) -> Path:
        return model_folder(self._model)

    @property
    def _tokens(self) -> Tokens:
        with self._opening:
            if self._words is None:
                self._words = Tokens(self._folder, self._model)
            return self._words

    def _tokenized(self, requests: Sequence[Request]) -> tuple[dict[int, LocalRequest], dict[int, TooLong]]:
        fitting: dict[int, LocalRequest] = {}
        faults: dict[int, TooLong] = {}
        for number, request in enumerate(requests):
            ids, most = self._tokens.prompt(request), max(1, request.sampling.max_tokens)
            if self.window and len(ids) >= self.window:
                faults[number] = TooLong(
                    f"the prompt has {len(ids)} tokens, but the model's window has {self.window}",
                    where=self._model.where,
                    cure="set a smaller window or limit for the strategy, or use a model with a longer window",
                )
            else:
                most = min(most, self.window - len(ids)) if self.window else most
                end = end_of(request, chat=self._model.chat)
                fitting[number] = LocalRequest(request=request, ids=ids, most=most, end=end)
        return fitting, faults

    def _response(
        self, tokenized: LocalRequest, generated: Sequence[int], *, stopped: bool, seconds: float, cached: int = 0
    ) -> Response:
        text = self._tokens.answer(tokenized.request, tokenized.ids, generated)
        end = tokenized.end.find(text)
        stopped, text = stopped or end is not None, text[:end]
        if not stopped:
            # The token limit may have cut a character in two.
            text = text.rstrip("\ufffd")
        return Response(
            text=answers.line_answer(tokenized.request, text) if self._model.chat else text,
            finish="stop" if stopped else "length",
            tokens_in=len(tokenized.ids),
            tokens_out=len(generated),
            seconds=seconds,
            cached=min(cached, len(tokenized.ids)),
        )

    def _reads(self, prompts: Sequence[Prompt], texts: Sequence[str], window: int) -> list[tuple[int, list[int], int]]:
        """Return what the model reads to measure texts: text index, tokens, and number of last tokens to measure."""
        tokens = self._tokens
        return [
            (number, *part)
            for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
            for part in rolling_windows(*encode_pair(prompt.text, text, tokens.plain, tokens.begin), window)
        ]
