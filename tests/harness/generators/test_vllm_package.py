"""Check that the real vLLM package has every name that `vllm` uses. Its source is only read: running it needs a GPU."""

import ast
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from ctxbench.harness.generators import vllm
from tests.helpers.vllm_fake import NAMES

VERSION = "0.33.0"
"""The version that `vllm` was written for."""
FILES = (
    "vllm/__init__.py",
    "vllm/entrypoints/llm.py",
    "vllm/engine/arg_utils.py",
    "vllm/sampling_params.py",
    "vllm/inputs/llm.py",
    "vllm/outputs.py",
    "vllm/logprobs.py",
    "vllm/platforms/interface.py",
    "vllm/platforms/__init__.py",
    "vllm/config/model.py",
    "vllm/envs.py",
    "vllm/v1/engine/llm_engine.py",
    "vllm/v1/engine/core_client.py",
)

pytestmark = [pytest.mark.slow, pytest.mark.network]


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest) -> Path:
    """Return a folder with some source files of the package. Test runs share it, and the wheel itself is deleted."""
    assert request.config.cache is not None
    kept = request.config.cache.mkdir("vllm-source") / VERSION
    if not kept.is_dir():
        made = Path(tempfile.mkdtemp(dir=kept.parent))
        # Name the platform: others have no wheel, and the files read here are the same.
        options = ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.11"]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *options, f"--dest={made}"]
        subprocess.run([*command, f"vllm=={VERSION}"], check=True, timeout=300)
        [wheel] = made.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(made, FILES)
        wheel.unlink()
        try:
            made.rename(kept)
        except OSError:
            # Another process was faster.
            shutil.rmtree(made)
    return kept


def tree(package: Path, file: str) -> ast.Module:
    return ast.parse((package / file).read_text(encoding="utf-8"))


def class_of(package: Path, file: str, name: str) -> ast.ClassDef:
    [found] = [node for node in tree(package, file).body if isinstance(node, ast.ClassDef) and node.name == name]
    return found


def fields(made: ast.ClassDef) -> set[str]:
    """Return the annotated names of a class: the fields of a dataclass, a Struct or a TypedDict."""
    return {
        node.target.id for node in made.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def method(made: ast.ClassDef, name: str) -> ast.FunctionDef:
    [found] = [node for node in made.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found


def parameters(made: ast.ClassDef, name: str) -> set[str]:
    found = method(made, name).args
    return {each.arg for each in (*found.args, *found.kwonlyargs)} - {"self"}


def test_the_package_has_every_name_that_ctxbench_uses(package: Path) -> None:
    llm = class_of(package, "vllm/entrypoints/llm.py", "LLM")
    # The class passes unknown parameters on to EngineArgs.
    assert method(llm, "__init__").args.kwarg is not None
    handed_on = fields(class_of(package, "vllm/engine/arg_utils.py", "EngineArgs"))
    there = {
        "LLM": parameters(llm, "__init__") | handed_on,
        "LLM.generate": parameters(llm, "generate"),
        "SamplingParams": fields(class_of(package, "vllm/sampling_params.py", "SamplingParams")),
        "TokensPrompt": fields(class_of(package, "vllm/inputs/llm.py", "TokensPrompt")),
        "RequestOutput": parameters(class_of(package, "vllm/outputs.py", "RequestOutput"), "__init__"),
        "CompletionOutput": fields(class_of(package, "vllm/outputs.py", "CompletionOutput")),
        "Logprob": fields(class_of(package, "vllm/logprobs.py", "Logprob")),
    }
    assert {name: sorted(NAMES[name] - found) for name, found in there.items()} == {name: [] for name in NAMES}


def test_prompts_and_parameters_may_be_positional(package: Path) -> None:
    generate = method(class_of(package, "vllm/entrypoints/llm.py", "LLM"), "generate")
    assert [each.arg for each in generate.args.args] == ["self", "prompts", "sampling_params"]


def test_imported_names_are_in_the_expected_modules(package: Path) -> None:
    [table] = [
        ast.literal_eval(node.value)
        for node in tree(package, "vllm/__init__.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULE_ATTRS"
    ]
    assert {"LLM", "SamplingParams", "TokensPrompt"} <= set(table)
    assert method(class_of(package, "vllm/platforms/interface.py", "Platform"), "is_unspecified")
    assert method(class_of(package, "vllm/platforms/interface.py", "Platform"), "is_cpu")
    assert "current_platform" in (package / "vllm/platforms/__init__.py").read_text(encoding="utf-8")


def test_the_engine_has_the_attributes_for_shutdown(package: Path) -> None:
    def sets(file: str, name: str, attribute: str) -> bool:
        nodes = ast.walk(method(class_of(package, file, name), "__init__"))
        return any(isinstance(node, ast.Attribute) and ast.unparse(node) == f"self.{attribute}" for node in nodes)

    assert sets("vllm/entrypoints/llm.py", "LLM", "llm_engine")
    assert sets("vllm/v1/engine/llm_engine.py", "LLMEngine", "engine_core")
    for client in ("EngineCoreClient", "InprocClient"):
        assert method(class_of(package, "vllm/v1/engine/core_client.py", client), "shutdown")


def test_environment_variables_set_for_vllm_are_known_to_it(package: Path) -> None:
    known = (package / "vllm/envs.py").read_text(encoding="utf-8")
    assert vllm._ENVIRONMENT and [name for name in vllm._ENVIRONMENT if f'"{name}"' not in known] == []


def test_bits_use_the_models_own_probabilities(package: Path) -> None:
    """Temperatures and penalties would change the probabilities."""
    [mode] = [
        ast.literal_eval(node.value)
        for node in class_of(package, "vllm/config/model.py", "ModelConfig").body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "logprobs_mode" and node.value is not None
    ]
    assert mode == "raw_logprobs"
