"""Models whose weights are on this machine: how they are asked, their files, and what `hf` and `vllm` share."""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, read_text
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.bench.retrieval.encoders.weights import WEIGHTS, weight_files
from ctxbench.harness.generators import answers, fim, models
from ctxbench.harness.generators.answers import End, end_of
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, TooLong
from ctxbench.harness.generators.fim import Template
from ctxbench.harness.generators.fitting import priced_pieces, priced_tokens
from ctxbench.harness.generators.openai.settings import follows_instructions
from ctxbench.strategies.api import BlockKind, Prompt

AUTO = "auto"
DTYPES = ("float32", "bfloat16", "float16", AUTO)
_CACHED = "models--"
"""The beginning of a model's folder name in a hub's cache."""
_TEXTS = (".json", ".txt", ".model", ".jinja")
_STRETCHES, _STRETCH = 16, 4096
"""The number of stretches of a file of weights that enter the digest, and the bytes of each."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""The names that configurations have for the longest text that a model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model whose weights are on this machine, and how it is asked."""

    by: str
    """The generator that runs it, for messages."""
    model: str
    """A name of `ctxbench model list`, a folder, or a name on the hub."""
    revision: str
    dtype: str
    batch: int
    """Requests that are computed at once."""
    window: int
    """Tokens of prompt and answer; 0: as the model's configuration says."""
    chat: bool
    """Whether it is asked by its chat template."""

    def __post_init__(self) -> None:
        """Check a spec's parameters.

        Raises:
            InputFault: naming the first that does not fit.
        """
        if not self.model.strip():
            raise InputFault("the model has no name", where=self.by, cure="give a folder, or a name on the hub")
        if self.dtype not in DTYPES:
            raise InputFault(f"dtype={self.dtype} does not fit", where=self.by, cure=f"give {', '.join(DTYPES)}")
        for name, number, least in (("batch", self.batch, 1), ("window", self.window, 0)):
            if number < least:
                raise InputFault(f"{name}={number} does not fit", where=self.by, cure=f"give {least} or more")

    @property
    def where(self) -> str:
        """The model, for messages."""
        return f"{self.by} {self.model}"


def is_chat(chat: str, model: str, *, by: str) -> bool:
    """Return whether a model is asked by its chat template; `AUTO` goes by the table of models, or the model's name.

    A template alone says nothing: models that only continue text are published with one too.

    Raises:
        InputFault: if `chat` is not ``on``, ``off`` or `AUTO`.
    """
    if chat not in ("on", "off", AUTO):
        raise InputFault(f"chat={chat} does not fit", where=by, cure=f"give on, off, {AUTO}")
    if chat != AUTO:
        return chat == "on"
    if (entry := models.known(model)) is not None:
        return entry.chat
    path = PurePath(model)
    cached = (part.replace("--", "/") for part in path.parts if part.startswith(_CACHED))
    return any(follows_instructions(name) for name in (path.name, *cached))


def model_folder(settings: LocalModel) -> Path:
    """Return the folder of a model: that of its name in the table, the named one, or that in the hub's cache.

    The hub is not asked about a model that is on this machine, and not at all where ``HF_HUB_OFFLINE`` is set. It
    fetches what is not in its cache.

    Raises:
        InputFault: if the folder holds no model, the hub has none of that name or may not be asked, or a model of the
            table is not on this machine.
        MachineFault: if the hub cannot be reached.
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
        raise _unknown(settings, "is no folder, and the hub has none of that name that you may read") from error
    except (hub.errors.OfflineModeIsEnabled, hub.errors.LocalEntryNotFoundError) as error:
        raise _unknown(settings, "is no folder, is not in the hub's cache, and the hub cannot be asked") from error
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        reason = str(error).partition("\n")[0]
        cure = "run the same command again, or give a folder"
        raise MachineFault(f"cannot be fetched ({reason})", where=settings.where, cure=cure) from error
    return weights.local(str(folder), where=settings.by)


def _unknown(settings: LocalModel, what: str) -> InputFault:
    cure = (
        "check the name (`ctxbench model list` has some) and revision=, or fetch it where the hub can be reached and "
        "give its folder"
    )
    return InputFault(what, where=settings.where, cure=cure)


def model_digest(folder: Path) -> str:
    """Return a digest of the files that decide a model's answers, cheap for any size.

    It is over configuration, tokenizer and chat template as a whole, and of every file of weights over its name, its
    size and 16 stretches of 4 KiB spread evenly, from its beginning (which lists the tensors) to its end.
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
    """Return how many tokens a model takes by its ``config.json``; 0 if that does not say.

    Raises:
        InputFault: if the file is no JSON object.
    """
    config = _configuration(folder)
    # Models that also read pictures have a part of its own for text.
    parts = [config, config.get("text_config") or {}]
    numbers = (part.get(key) for part in parts for key in _POSITIONS)
    return next((number for number in numbers if type(number) is int and number > 0), 0)


def configured_dtype(folder: Path) -> str:
    """Return the format of a model's weights by its ``config.json``, such as ``bfloat16``; empty if it does not say.

    Raises:
        InputFault: if the file is no JSON object.
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
        raise InputFault("is no JSON object", where=str(path), cure="fetch the model again")
    return config


_TAIL = 16
"""Tokens of the prompt that are decoded with an answer, because some tokenizers drop a text's first blank."""
_DATE = "26 Jul 2024"
"""The date for templates that show one; a prompt that changes every day could not be compared."""


def transformers_module() -> Any:
    """Import transformers, without its progress bars and advice."""
    # It carries no types, and is absent where no model is run.
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
        """Read it; nothing is fetched.

        Raises:
            InputFault: if there is none that transformers can read, or no template for a chat.
        """
        self._settings = settings
        # Prompts are counted while answers are decoded, and the library's tokenizers are not safe for two threads.
        self._lock = threading.Lock()
        module = transformers_module()
        try:
            self._tokenizer: Any = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:
            # The library raises all kinds of exceptions for wrong files.
            raise unreadable(settings, error) from error
        if settings.chat and not self._tokenizer.chat_template:
            raise InputFault("has no chat template", where=settings.where, cure="give chat=off, or another model")

    def prompt(self, request: Request) -> list[int]:
        """Return the tokens that a request's answer goes on after; at least one.

        Raises:
            InputFault: if the chat template does not take a message of the user alone.
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
            # A template is a program, which may fail in any way.
            raise unreadable(self._settings, error) from error
        return self._ids(text, special=False)

    def plain(self, text: str) -> list[int]:
        """Return the tokens of a text as the model was trained to read it, its mark of a beginning first."""
        return self._ids(utf8(text), special=True) or [self.begin]

    def text(self, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of tokens that were generated after others."""
        tail = list(before[-_TAIL:])
        return self._decoded([*tail, *generated])[len(self._decoded(tail)) :]

    def answer(self, request: Request, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of tokens generated for a request, without a token that ended its middle."""
        last = len(generated) - (bool(generated) and generated[-1] in self.middle_ends(request))
        return self.text(before, generated[:last])

    def middle_ends(self, request: Request) -> frozenset[int]:
        """Return the tokens that end an answer beside the usual ones: none but where it fills in the middle."""
        return self._middle_ends if request.sampling.fim else frozenset()

    @functools.cached_property
    def template(self) -> Template:
        """The template by which the model sees the text after the cursor.

        Raises:
            InputFault: if its vocabulary has no marks for that, or it is asked as a chat model.
        """
        return fim.of_vocabulary(self._vocabulary, chat=self._settings.chat, where=self._settings.where)

    @property
    def begin(self) -> int:
        """The token that stands for the beginning of a text; models without one were trained on ends of texts."""
        begin, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        return next((token for token in (begin, end) if token is not None), 0)

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that the tokenizer ends texts with."""
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
        """Return the tokens of a prompt with marks: those by their number, the texts between them each as one."""
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
    """Return the fault of a model that a library cannot read."""
    reason = str(error).strip().partition("\n")[0]
    return InputFault(
        f"cannot be read ({type(error).__name__}: {reason})",
        where=settings.where,
        cure="give the folder of a model for text generation, with its weights and its tokenizer",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRequest:
    """A request as tokens."""

    request: Request
    ids: list[int]
    """The prompt; at least one token."""
    most: int
    """Tokens of the answer at most; at least one."""
    end: End


class Local(Generator):
    """A model whose tokenizer is read here, wherever its answers are computed."""

    def __init__(self, model: LocalModel, *, batch_size: int) -> None:
        """Prepare; files are found when they are first needed.

        Args:
            model: the model.
            batch_size: requests to be given at once.
        """
        self._model = model
        self._opening = threading.Lock()
        self._words: Tokens | None = None
        self.capabilities = Capabilities(
            weights=True, batch_size=batch_size, instructs=model.chat, prices=True, fills=True, counts=True
        )

    @functools.cached_property
    def window(self) -> int:  # type: ignore[override] # found when first asked for
        """Tokens of prompt and answer that the model takes; 0 if unknown."""
        return self._model.window or configured_window(self._folder)

    def count(self, request: Request) -> int:
        """Return how many tokens a request's prompt has for this model, template and marks included.

        Any thread may ask while others have answers made.
        """
        return len(self._tokens.prompt(request))

    def infilling(self) -> Template:
        """Return the template by which the model sees the text after the cursor.

        Raises:
            InputFault: if its vocabulary has no marks for that, or it is asked as a chat model.
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
        """Return the requests as tokens, and the faults of those that leave no room for an answer, by their places."""
        fitting: dict[int, LocalRequest] = {}
        faults: dict[int, TooLong] = {}
        for number, request in enumerate(requests):
            ids, most = self._tokens.prompt(request), max(1, request.sampling.max_tokens)
            if self.window and len(ids) >= self.window:
                faults[number] = TooLong(
                    f"the prompt has {len(ids)} tokens, the model's window {self.window}",
                    where=self._model.where,
                    cure="give the strategy a smaller window or limit, or take a model with a longer one",
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
            # The limit may fall between the tokens of one character.
            text = text.rstrip("\ufffd")
        return Response(
            text=answers.line_answer(tokenized.request, text) if self._model.chat else text,
            finish="stop" if stopped else "length",
            tokens_in=len(tokenized.ids),
            tokens_out=len(generated),
            seconds=seconds,
            cached=min(cached, len(tokenized.ids)),
        )

    def _priced(self, prompts: Sequence[Prompt], texts: Sequence[str], window: int) -> list[tuple[int, list[int], int]]:
        """Return what the model reads to price texts: number of the text, tokens, how many of the last are priced.

        Chat models read the bare prompt too: the code is priced, not the talk around it.
        """
        tokens = self._tokens
        return [
            (number, *piece)
            for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
            for piece in priced_pieces(*priced_tokens(prompt.text, text, tokens.plain, tokens.begin), window)
        ]
