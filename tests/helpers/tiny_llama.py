"""A tiny Llama with a million parameters, trained on the standard library's source.

Training from fixed seeds takes under a minute, once per machine and version of the libraries.
"""

import hashlib
import platform
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

_MODULES = [
    "argparse",
    "ast",
    "calendar",
    "configparser",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "doctest",
    "email/message",
    "fractions",
    "functools",
    "gettext",
    "heapq",
    "http/client",
    "http/cookies",
    "inspect",
    "ipaddress",
    "json/decoder",
    "json/encoder",
    "locale",
    "logging/config",
    "mailbox",
    "netrc",
    "optparse",
    "os",
    "pathlib",
    "pickle",
    "pprint",
    "queue",
    "random",
    "sched",
    "shlex",
    "shutil",
    "smtplib",
    "statistics",
    "string",
    "subprocess",
    "tarfile",
    "tempfile",
    "textwrap",
    "threading",
    "tokenize",
    "trace",
    "traceback",
    "turtle",
    "typing",
    "unittest/case",
    "unittest/mock",
    "urllib/parse",
    "uuid",
    "weakref",
    "zipfile",
]
VOCABULARY, WIDTH, WINDOW = 2048, 128, 1024
STEPS, ROWS, LENGTH = 160, 8, 256
CHAT = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def corpus() -> str:
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [folder / f"{name}.py" for name in _MODULES]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())


def tiny_llama(cache: Path) -> Path:
    import tokenizers
    import torch
    import transformers

    parts = (torch.__version__, transformers.__version__, tokenizers.__version__, platform.python_version())
    key = hashlib.sha256("\n".join([*parts, Path(__file__).read_text(encoding="utf-8")]).encode()).hexdigest()[:12]
    folder = cache / f"tiny-llama-{key}"
    if not folder.is_dir():
        made = Path(tempfile.mkdtemp(dir=cache))
        _train(made)
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster.
            shutil.rmtree(made)
    return folder


def _train(folder: Path) -> None:
    import torch
    import transformers

    text = corpus()
    tokenizer = _tokenizer(text)
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = transformers.LlamaForCausalLM(config)
            _fit(model, torch.tensor(tokenizer(text, verbose=False)["input_ids"]))
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)


def _tokenizer(text: str) -> Any:
    import tokenizers
    import transformers

    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        text.splitlines(keepends=True), vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], show_progress=False
    )
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, bos_token="<s>", eos_token="</s>")
    made.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.bos_token_id)]
    )
    made.chat_template = CHAT
    return made


def _fit(model: Any, ids: Any) -> None:
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS, pct_start=0.1)
    model.train()
    for _ in range(STEPS):
        starts = torch.randint(0, len(ids) - LENGTH, (ROWS,))
        batch = torch.stack([ids[start : start + LENGTH] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()
