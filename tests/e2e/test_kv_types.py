"""What smaller types of the KV cache lose: the KL divergence from the same model with f32 keys and values over the
text of tests/golden/kld, top 64 tokens and the rest. Activations are f32 in both, so that it is the cache's
own loss: with int8 activations the least change of a key turns roundings over, and f16 against f32 keys and
values already differ by 0.0009 on SmolLM2-135M."""
import math
import os

import pytest

import golden

FULL = os.environ.get("GANGLION_TEST_FULL") == "1"
TOP = 64
NAMES = ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
MODELS = [pytest.param(name, marks=pytest.mark.skipif(
    name != "smollm2-135m" and not FULL, reason="GANGLION_TEST_FULL=1 runs it")) for name in NAMES]
MOST = {"q8": 1e-3, "fp8": 5e-3, "q4": 2e-2}


def need(name):
    path = golden.model_path(name)
    if path is None:
        pytest.skip(f"{name} is not there: tools/fetch_models {name}")
    return path


# In full 2,048 positions of the smallest model; else the first window of them, as f32 activations are slow.
WINDOWS = {"smollm2-135m": None if FULL else 1}


def rows(name, *kv):
    found = []
    for ids in golden.Kld(name).windows()[:WINDOWS.get(name, 1)]:
        found += golden.logits(need(name), ids, 4 * TOP, "--activations", "f32", *kv)
    return found


@pytest.fixture(scope="module")
def base():
    known = {}

    def get(name):
        if name not in known:
            known[name] = rows(name)
        return known[name]

    return get


def divergence(truth, other):
    """Over the truth's top tokens and the rest as one; tokens that the other does not list lie below its last."""
    least = min(other.values())
    top = sorted(truth, key=truth.get, reverse=True)[:TOP]
    p = [math.exp(truth[i]) for i in top]
    q = [math.exp(other.get(i, least)) for i in top]
    p.append(max(1e-12, 1.0 - sum(p)))
    q.append(max(1e-12, 1.0 - sum(q)))
    return sum(a * math.log(a / b) for a, b in zip(p, q))


# Above the aim, and by how much at most: docs/adr/0017-kv-types.md.
MISSED = {("gemma3-270m", "fp8"): 1e-2, ("qwen2.5-coder-0.5b", "fp8"): 1e-2}


@pytest.mark.parametrize("kv", MOST)
@pytest.mark.parametrize("name", MODELS)
def test_divergence(name, kv, base):
    truth = base(name)
    kld = [divergence(t, o) for t, o in zip(truth, rows(name, "--kv", kv))]
    mean = sum(kld) / len(kld)
    print(f"{name} {kv}: mean {mean:.3g}, largest {max(kld):.3g}, {len(kld)} positions")
    assert mean <= MISSED.get((name, kv), MOST[kv])
    if mean > MOST[kv]:
        pytest.xfail(f"mean {mean:.3g}, aimed at {MOST[kv]}")
