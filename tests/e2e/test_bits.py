"""Promise 1 on the real models: the same bits however a sequence is computed (tests/tools/bits_tool.c)."""
import os
import pathlib
import subprocess

import pytest

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GANGLION_BUILD", str(ROOT / "build" / "release")))
TOOL = BUILD / "tests" / "bits_tool"
BIN = os.environ.get("GANGLION_BIN", str(BUILD / "ganglion"))
FULL = os.environ.get("GANGLION_TEST_FULL") == "1"

# Tokens: past the first part of attention (256); with Gemma past its window (512) too.
MODELS = [("smollm2-135m", 300), ("gemma3-270m", 560), ("qwen2.5-coder-0.5b", 300), ("qwen2.5-coder-1.5b", 300)]


@pytest.mark.parametrize("name,n_tok", MODELS)
def test_same_bits(name, n_tok, tmp_path):
    if name != "smollm2-135m" and not FULL:
        pytest.skip("with ./check full")
    path = golden.model_path(name)
    if path is None:
        pytest.skip(f"{name} is not there: tools/fetch_models {name}")
    env = {**os.environ, "GANGLION_CACHE": "auto", "GANGLION_CACHE_DIR": str(tmp_path)}
    # The first use writes the cache file.
    subprocess.run([BIN, "bench", "-m", path, "-p", "1", "-n", "0", "-r", "1", "--no-extras"], env=env,
                   stdout=subprocess.DEVNULL, timeout=300, check=True)
    result = subprocess.run([TOOL, path, str(n_tok)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=600, check=False, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"cache read: {n_tok} positions equal" in result.stdout
    assert "1 to 16 sessions in one pass: equal" in result.stdout
