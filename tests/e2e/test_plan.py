"""What `ganglion plan` foretells is what a run takes."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
FULL = os.environ.get("GANGLION_TEST_FULL") == "1"
TINY = ROOT / "tests" / "golden" / "tiny"
LLAMA = str(TINY / "gguf_llama" / "model.gguf")

# A model, tokens of context, users. A pass has up to 256 rows, and less context would leave scratch untouched.
PAIRS = [("smollm2-135m", 256, 1), ("smollm2-135m", 512, 4), ("smollm2-135m", 2048, 1),
         ("smollm2-135m", 1024, 2), ("gemma3-270m", 512, 2), ("gemma3-270m", 4096, 1),
         ("qwen2.5-coder-0.5b", 512, 1), ("qwen2.5-coder-0.5b", 512, 4),
         ("qwen2.5-coder-1.5b", 256, 1), ("qwen2.5-coder-1.5b", 512, 2)]
RUNS = [(*pair, "f16") for pair in PAIRS] + [(*pair, kv) for kv in ("q8", "q4") for pair in PAIRS[2:3] + PAIRS[5:6]]


def ganglion(*args, code=0):
    result = subprocess.run([BIN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
    assert result.returncode == code, result.stderr.decode()
    return result


def plan(*args, code=0):
    result = ganglion("plan", *args, "--json", code=code)
    return json.loads(result.stdout)


def path_of(name):
    if name != "smollm2-135m" and not FULL:
        pytest.skip("with ./check full")
    result = subprocess.run([sys.executable, ROOT / "tools" / "fetch_models", "--path", name],
                            stdout=subprocess.PIPE, text=True, check=False, stderr=subprocess.DEVNULL)
    if result.returncode != 0:
        pytest.skip(f"{name} is not fetched")
    return result.stdout.strip()


@pytest.mark.parametrize("name,ctx,users,kv", RUNS)
def test_peak(name, ctx, users, kv):
    path = path_of(name)
    told = plan("-m", path, "--ctx", str(ctx), "--users", str(users), "-t", "2", "--bandwidth", "20",
                "--kv", kv)
    run = json.loads(ganglion("bench", "-m", path, "-p", "0", "-n", "1", "-d", str(ctx - 1), "-b", str(users),
                              "-t", "2", "-r", "1", "--no-extras", "--json", "--kv", kv).stdout)
    assert run["results"][0]["kv"] == kv
    peak = next(row["peak_bytes"] for row in run["results"] if row["test"] == "memory")
    assert told["memory"]["total"] == pytest.approx(peak, rel=0.03), told


def test_peak_with_a_cache_file(tmp_path, monkeypatch):
    path = path_of("smollm2-135m")
    monkeypatch.setenv("GANGLION_CACHE", "auto")
    monkeypatch.setenv("GANGLION_CACHE_DIR", str(tmp_path))
    args = ["bench", "-m", path, "-p", "0", "-n", "1", "-d", "511", "-b", "2", "-t", "2", "-r", "1", "--no-extras",
            "--json"]
    ganglion(*args)  # writes the file, which maps other pages
    run = json.loads(ganglion(*args).stdout)
    told = plan("-m", path, "--ctx", "512", "--users", "2", "-t", "2", "--bandwidth", "20")
    assert told["memory"]["cache_file"] > 0 and run["cache_bytes"] > 0
    peak = next(row["peak_bytes"] for row in run["results"] if row["test"] == "memory")
    assert told["memory"]["total"] == pytest.approx(peak, rel=0.03), told


def test_sums():
    told = plan("-m", LLAMA, "--ctx", "100", "--users", "3", "--bandwidth", "1")
    memory = dict(told["memory"])
    assert memory.pop("total") == sum(memory.values())
    # 2 layers, keys and values, 2 heads of 8 that pages pad to 16, f16, in pages of 64 tokens.
    per_tok = 2 * 2 * 2 * 16 * 2
    assert memory["kv"] == 3 * 128 * per_tok
    assert told["kv_read_bytes_per_tok"] == 100 * per_tok
    weights = told["read_bytes_per_tok"]
    assert told["tok_s"] == pytest.approx(1e9 / (weights + 100 * per_tok), abs=0.01)
    assert told["tok_s_users"] == pytest.approx(3e9 / (weights + 300 * per_tok), abs=0.01)


def test_kv_types_take_less():
    path = path_of("smollm2-135m")  # heads of 64, which no type pads
    told = {kv: plan("-m", path, "--ctx", "128", "--users", "2", "--bandwidth", "1", "--kv", kv)
            for kv in ("f16", "q8", "fp8", "q4")}
    size = {kv: told[kv]["memory"]["kv"] for kv in told}
    assert all(told[kv]["kv"] == kv for kv in told)
    assert size["f16"] > size["q8"] > size["q4"] > 0 and size["f16"] > size["fp8"] > size["q4"]
    assert told["f16"]["kv_read_bytes_per_tok"] > told["q8"]["kv_read_bytes_per_tok"] \
        > told["q4"]["kv_read_bytes_per_tok"] > 0
    table = ganglion("plan", "-m", LLAMA, "--bandwidth", "1", "--kv", "q4").stdout
    assert b"keys and values in q4" in table
    assert plan("-m", LLAMA, "--bandwidth", "1", "--activations", "f32")["kv"] == "f32"


def test_a_window_is_not_read_past():
    far = plan("-m", str(TINY / "gguf_gemma3" / "model.gguf"), "--ctx", "20000", "--bandwidth", "1")
    near = plan("-m", str(TINY / "gguf_gemma3" / "model.gguf"), "--ctx", "10000", "--bandwidth", "1")
    assert near["kv_read_bytes_per_tok"] < far["kv_read_bytes_per_tok"] < 2 * near["kv_read_bytes_per_tok"]
    # Nor kept: what is, but for the layers without a window, is the same for both.
    grown = far["memory"]["kv"] - near["memory"]["kv"]
    assert near["memory"]["kv"] > grown > 0
    assert plan("-m", str(TINY / "mistral"), "--ctx", "20000", "--bandwidth", "1")["memory"]["kv"] == \
        plan("-m", str(TINY / "mistral"), "--ctx", "10000", "--bandwidth", "1")["memory"]["kv"]


def test_too_large_is_exit_1():
    assert plan("-m", LLAMA, "--memory", "1M", "--bandwidth", "1", code=1)["fits"] is False
    result = ganglion("plan", "-m", LLAMA, "--memory", "1M", "--bandwidth", "1", code=1)
    assert b"DOES NOT FIT" in result.stdout and result.stderr == b""
    # Larger than any machine, and nothing is allocated for it.
    assert plan("-m", LLAMA, "--ctx", "2147483647", "--users", "65536", "--bandwidth", "1", code=1)["fits"] is False


def test_an_encoder_has_no_speed_of_decode():
    told = plan("-m", str(TINY / "bert"))
    assert told["memory"]["kv"] == 0 and told["read_bytes_per_tok"] == 0


def test_bandwidth_is_measured():
    assert plan("-m", LLAMA, "-t", "1")["read_bytes_s"] > 1e8
