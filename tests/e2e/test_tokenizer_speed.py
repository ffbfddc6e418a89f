"""Tokenizing is linear in the text: 10 MB of every kind in seconds. The bound is wide (a loaded machine
with sanitizers keeps it); a quadratic step would take hours."""
import os
import random
import time

import pytest

from toktool import MODELS, VOCABS, TokTool, tool_path

FULL = os.environ.get("GANGLION_TEST_FULL") == "1"
SIZE = 10_000_000 if FULL else 2_000_000
LIMIT_S = 90


def fill(unit, size=SIZE):
    data = unit.encode("utf-8")
    return (data * (size // len(data) + 1))[:size - size % len(data)]


def random_text(size):
    rng = random.Random(3)
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x900, 0x97F), (0x3040, 0x30FF),
              (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF)]
    block = "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(200_000))
    return fill(block, size)


TEXTS = {
    "one letter": lambda: fill("a"),
    "upper case": lambda: fill("A"),
    "spaces": lambda: fill(" "),
    "spaces, then a letter": lambda: fill(" ", SIZE - 1) + "中".encode(),
    "newlines": lambda: fill("\n"),
    "digits": lambda: fill("7"),
    "marks": lambda: "a".encode() + fill("\u0316\u0301"),
    "random Unicode": lambda: random_text(SIZE),
    "code": lambda: fill("    for (int i = 0; i < n_rows; ++i) {\n\tsum += row[i] * 3.14f; // don't\r\n    }\n"),
    "one word of CJK": lambda: fill("漢"),
    "not UTF-8": lambda: b"\xff\xc3" * (SIZE // 2),
}


def models():
    smollm = sorted((MODELS / "smollm2-135m").glob("*.gguf"))
    qwen = sorted((MODELS / "qwen2.5-coder-0.5b").glob("*.gguf"))
    gemma = sorted((MODELS / "gemma3-270m").glob("*.gguf"))
    minilm = MODELS / "all-minilm-l6-v2"
    vocabs = [VOCABS / f"ggml-vocab-{n}.gguf" for n in ("deepseek-llm", "nomic-bert-moe")]
    found = smollm[:1] + qwen[:1] + gemma[:1] + ([minilm] if minilm.exists() else [])
    found += [v for v in vocabs if v.exists()]
    return found if FULL else found[:1]


@pytest.mark.parametrize("path", models(), ids=lambda p: p.stem)
def test_linear(path):
    if not tool_path().exists():
        pytest.skip(f"{tool_path()} is not built")
    size = SIZE if "SmolLM2" in path.stem else SIZE // 5  # one in full, the rest for their own steps
    with TokTool(path) as tool:
        for name, make in TEXTS.items():
            text = make()[:size]
            start = time.monotonic()
            ids = tool.encode([text])[0]
            seconds = time.monotonic() - start
            assert ids is not None, f"{name}: {tool.messages()}"
            print(f"{path.stem}: {name}: {len(ids)} ids, {seconds:.2f} s")
            assert seconds < LIMIT_S, f"{name}: {seconds:.1f} s"
            assert len(ids) <= len(text) + 2


def test_material_is_there():
    if not models():
        pytest.skip("no model is there: tools/fetch_models brings them")
