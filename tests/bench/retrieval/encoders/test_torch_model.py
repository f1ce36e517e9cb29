"""The papers' encoders in torch, with small models of the right architecture and random weights.

These tests need the extra ``hf``. They need no published weights and download nothing. `test_recipes` tests
everything that works without torch.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.extras import needed

torch = needed("torch", "hf")
transformers = needed("transformers", "hf")
tokenizers = needed("tokenizers", "hf")


from ctxbench.bench.errors import InputFault  # noqa: E402
from ctxbench.bench.retrieval import encoders  # noqa: E402
from ctxbench.bench.retrieval.encoders import get  # noqa: E402
from ctxbench.bench.retrieval.encoders.recipes import EncoderRecipe, torch_encoder  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    # Both libraries emit warnings of their own.
    pytest.mark.filterwarnings("ignore"),
]
TEXTS = ["def load(path):", "", "x", "load a file and give what it holds " * 40, "é \udc80 日本", "def read(path):"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_ENCODERS", {})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.manual_seed(0)


def word_pieces(folder: Path) -> int:
    letters = "abcdefghijklmnopqrstuvwxyz()_:."
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{letter}" for letter in letters),
        "load",
    ]
    folder.joinpath("vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return len(vocabulary)


def byte_pairs(folder: Path, *special: str) -> int:
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        [*TEXTS[:4]], vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", *special]
    )
    trained.save_model(str(folder))
    (folder / "special_tokens_map.json").write_text(
        json.dumps({"cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"})
    )
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "RobertaTokenizer"}))
    return int(trained.get_vocab_size())


def check(encoder: Any, width: int) -> np.ndarray:
    """Check an encoder's contract and return its vectors of `TEXTS`."""
    found: np.ndarray = encoder.encode(TEXTS)
    assert encoder.width == width
    assert found.shape == (len(TEXTS), width)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.abs(encoder.encode(TEXTS[::-1])[::-1] - found).max() < 1e-5
    assert np.abs(found[0] - found[1]).max() > 1e-3
    return found


def test_a_bert_vector_is_the_mean_of_the_last_layer(tmp_path: Path) -> None:
    count = word_pieces(tmp_path)
    config = transformers.BertConfig(vocab_size=count, max_position_embeddings=512, **SIZES)
    model = transformers.BertModel(config).eval()
    model.save_pretrained(tmp_path)
    found = check(get(f"contriever(path={tmp_path}, batch=1)"), 32)
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path)
    ids = [tokenizer(text.replace("\udc80", "?"), truncation=True, max_length=512)["input_ids"] for text in TEXTS]
    with torch.inference_mode():
        means = np.stack([model(torch.tensor([row])).last_hidden_state[0].mean(dim=0).numpy() for row in ids])
    assert np.abs(means / np.linalg.norm(means, axis=1, keepdims=True) - found).max() < 2e-6
    same = check(get(f"minilm(path={tmp_path})"), 32)
    assert np.abs(same[:3] - found[:3]).max() < 1e-5
    # `minilm` reads 256 tokens of the long text, `contriever` 512.
    assert np.abs(same[3] - found[3]).max() > 1e-5


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_unixcoder_receives_its_mode_token(tmp_path: Path, pooling: str) -> None:
    count = byte_pairs(tmp_path, "<encoder-only>")
    config = transformers.RobertaConfig(vocab_size=count, max_position_embeddings=1026, pad_token_id=1, **SIZES)
    model = transformers.RobertaModel(config).eval()
    model.save_pretrained(tmp_path)
    found = check(get(f"unixcoder(path={tmp_path}, pooling={pooling})"), 32)
    tokenizer = transformers.RobertaTokenizer.from_pretrained(tmp_path)
    for row, text in zip(found, TEXTS, strict=True):
        words = tokenizer.tokenize(text.replace("\udc80", "?"))[:508]
        ids = tokenizer.convert_tokens_to_ids(["<s>", "<encoder-only>", "</s>", *words, "</s>"])
        with torch.inference_mode():
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        vector = hidden.mean(dim=0) if pooling == "mean" else hidden[0]
        assert np.abs((vector / vector.norm()).numpy() - row).max() < 1e-5


def test_another_roberta_model_is_rejected_as_unixcoder(tmp_path: Path) -> None:
    count = byte_pairs(tmp_path)
    transformers.RobertaModel(transformers.RobertaConfig(vocab_size=count, **SIZES)).save_pretrained(tmp_path)
    with pytest.raises(InputFault, match="lacks the special tokens of microsoft/unixcoder-base"):
        get(f"unixcoder(path={tmp_path})").encode(["a"])


def test_mpnet_cuts_texts_at_384_tokens(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz()_:."
    vocabulary = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.MPNetTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    config = transformers.MPNetConfig(vocab_size=len(vocabulary), **SIZES)
    transformers.MPNetModel(config).save_pretrained(tmp_path)
    encoder = get(f"mpnet(path={tmp_path})")
    check(encoder, 32)
    full = "a " * 382
    one, two, three = encoder.encode([full, full + "b", "b " + full])
    assert np.abs(one - two).max() < 1e-6
    assert np.abs(one - three).max() > 1e-6


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_codet5p_projects_the_first_vector_and_runs_no_code_of_the_folder(tmp_path: Path, kind: str) -> None:
    count = byte_pairs(tmp_path)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": count}
    model = transformers.T5EncoderModel(transformers.T5Config(**sizes)).eval()
    projection = torch.nn.Linear(32, 6)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tensors |= {f"proj.{name}": tensor for name, tensor in projection.state_dict().items()}
    if kind == "bin":
        torch.save(tensors, tmp_path / "pytorch_model.bin")
    else:
        import safetensors.torch

        safetensors.torch.save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "model.safetensors"
        )
    config = {"model_type": "codet5p_embedding", "embed_dim": 6, "auto_map": {"AutoModel": "evil.Model"}, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text("raise SystemExit('was run')\n")
    found = check(get(f"codet5p-110m(path={tmp_path})"), 6)
    tokenizer = transformers.RobertaTokenizer.from_pretrained(tmp_path)
    ids = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    assert ids[0, 0] == tokenizer.cls_token_id
    with torch.inference_mode():
        vector = projection(model(input_ids=ids).last_hidden_state[:, 0])[0]
    assert np.abs((vector / vector.norm()).numpy() - found[0]).max() < 1e-5


def test_a_folder_of_another_model_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 4, "embed_dim": 2}')
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    for name in ("contriever", "unixcoder", "mpnet", "codet5p-110m"):
        with pytest.raises(InputFault) as caught:
            get(f"{name}(path={tmp_path})").encode(["a"])
        assert "cannot be loaded" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_missing_tensor_is_a_fault(tmp_path: Path) -> None:
    import safetensors.torch

    count = word_pieces(tmp_path)
    transformers.BertModel(transformers.BertConfig(vocab_size=count, **SIZES)).save_pretrained(tmp_path)
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputFault, match=r"lacks 1 tensors \(encoder\.layer\.1\.output\.dense\.weight\)"):
        get(f"contriever(path={tmp_path})").encode(["a"])


def test_a_device_that_does_not_exist_is_a_fault(tmp_path: Path) -> None:
    count = word_pieces(tmp_path)
    config = transformers.BertConfig(vocab_size=count, **SIZES)
    transformers.BertModel(config).save_pretrained(tmp_path)
    recipe = EncoderRecipe(model="m", limit=16, architecture="BertModel")
    with pytest.raises(InputFault, match="an existing device"):
        torch_encoder("x", recipe, tmp_path, device="nowhere", batch=1).encode(["a"])
