"""The forward pass against the truth of tests/golden: tiny random checkpoints of every architecture
against `transformers`, and real quantized models against float32 over the same weights, next to
llama.cpp. The recipes stand in tests/golden/make_tiny.py and make_kld.py."""
import json
import os

import pytest

import golden

FULL = os.environ.get("GANGLION_TEST_FULL") == "1"
TINY = golden.GOLDEN / "tiny"

DECODERS = sorted(p.parent.name for p in TINY.glob("*/golden.json") if p.parent.name != "bert")

# How much of llama.cpp's own divergence is allowed. Its blocks of 256 activations lose more on K-quants
# than blocks of 32 do.
RATIO = {"smollm2-135m": 1.02, "gemma3-270m": 1.02, "qwen2.5-coder-0.5b": 0.7,
         "qwen2.5-coder-1.5b": 0.35}
WORST = 0.05
EXACT = 1e-6

MODELS = [pytest.param(name, marks=pytest.mark.skipif(
    name != "smollm2-135m" and not FULL, reason="GANGLION_TEST_FULL=1 runs it")) for name in RATIO]


def tiny_model(name):
    file = TINY / name / "model.gguf"
    return file if file.exists() else TINY / name


def tiny_golden(name):
    info = json.loads((TINY / name / "golden.json").read_text())
    rows = golden.floats(TINY / name / "golden.f32")
    n = info["columns"]
    assert len(rows) == info["rows"] * n
    return info, [rows[i:i + n] for i in range(0, len(rows), n)]


def need(name):
    path = golden.model_path(name)
    if path is None:
        pytest.skip(f"{name} is not there: tools/fetch_models {name}")
    return path


@pytest.mark.parametrize("name", DECODERS)
def test_tiny_decoder_agrees_with_transformers(name):
    info, truth = tiny_golden(name)
    rows = golden.logits(tiny_model(name), info["ids"], info["columns"], "--activations", "f32")
    difference, position, token = max(
        (abs(lp - truth[i][token]), i, token) for i, row in enumerate(rows) for token, lp in row.items())
    print(f"{name}: largest difference {difference:.2e} at position {position}, token {token}; a "
          f"float16 cache alone makes {info['float16_cache']:.1e}")
    assert difference <= 1e-3


def embedding_rows(model, texts):
    data = "".join(text + "\n" for text in texts).encode()
    lines = golden.run("embed", "-m", model, data=data).decode().splitlines()
    assert len(lines) == len(texts)
    return [json.loads(line) for line in lines]


def check_embeddings(model, info, truth):
    for text, ours, row in zip(info["texts"], embedding_rows(model, info["texts"]), truth):
        assert len(ours) == len(row)
        difference = max(abs(a - b) for a, b in zip(ours, row))
        assert difference <= 1e-4, f"{text!r} differs by {difference:.2e}"


def test_tiny_encoder_agrees_with_transformers():
    check_embeddings(TINY / "bert", *tiny_golden("bert"))


def test_sentence_embeddings_agree_with_transformers():
    path = need("all-minilm-l6-v2")
    info = json.loads((TINY / "minilm.json").read_text(encoding="utf-8"))
    rows, n = golden.floats(TINY / "minilm.f32"), info["columns"]
    check_embeddings(path, info, [rows[i:i + n] for i in range(0, len(rows), n)])


@pytest.fixture(scope="module")
def figures():
    """Figures of a model in its ordinary mode; measured once for all tests."""
    known = {}

    def get(name):
        if name not in known:
            path = need(name)
            known[name] = golden.measure(golden.Kld(name), path)
            print(f"{name}: {known[name]}")
        return known[name]

    return get


@pytest.mark.parametrize("name", MODELS)
def test_divergence_next_to_llamacpp(name, figures):
    f = figures(name)
    assert f.mean <= RATIO[name] * f.mean_llamacpp, str(f)
    # The first tokens of Qwen2.5 are so far off in llama.cpp that they would decide the mean alone.
    assert f.late <= RATIO[name] * f.late_llamacpp, str(f)


@pytest.mark.parametrize("name", MODELS)
def test_no_position_is_far_off(name, figures):
    f = figures(name)
    above = [(i, round(kld, 4)) for i, kld in enumerate(f.kld) if kld > WORST]
    assert not above, f"rows above {WORST} nats: {above}; {f}"


@pytest.mark.parametrize("name", MODELS)
def test_perplexity_is_no_further_off_than_llamacpps(name, figures):
    f = figures(name)
    assert f.n_missing <= 2 and f.n_next >= 1800, str(f)
    assert f.off <= f.off_allowed, str(f)


@pytest.mark.parametrize("name", MODELS)
def test_exact_mode(name):
    path, truth = need(name), golden.Kld(name)
    f = golden.measure(truth, path, "--activations", "f32")
    print(f"{name}, f32 activations: {f}")
    assert f.mean <= EXACT, str(f)
