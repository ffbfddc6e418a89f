"""Every quantized format gives the floats that the gguf package gives, bit for bit.

Blocks are random bytes (every byte string is a valid block), with the special half-precision values
put into the places of the factors. Kernel levels below the machine's own are tried as well."""
import os
import pathlib
import subprocess

import pytest

np = pytest.importorskip("numpy", reason="needs numpy to make blocks")
gguf = pytest.importorskip("gguf", reason="needs the gguf package to compare with")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("GANGLION_DEQUANT_TOOL",
                                   ROOT / "build/release/tests/kernels/dequant_tool"))
# Offsets of half-precision factors in a block.
FACTORS = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
    "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}
SPECIAL_F16 = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF,
                        0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01], dtype="<u2")


def make_blocks(name, n_blocks):
    rng = np.random.default_rng(list(name.encode()))
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = rng.integers(0, 256, (n_blocks, size), dtype=np.uint8)
    for at in FACTORS[name]:
        pick = rng.integers(0, len(SPECIAL_F16), n_blocks // 4)
        blocks[: n_blocks // 4, at:at + 2] = SPECIAL_F16[pick].view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":
        blocks[:256, 0] = np.arange(256)
    return blocks


@pytest.mark.parametrize("level", ["", "ref", "avx2"])
@pytest.mark.parametrize("name", sorted(FACTORS))
def test_same_floats(name, level):
    if not TOOL.exists():
        pytest.skip(f"{TOOL} is not built")
    if level == "avx2" and os.uname().machine != "x86_64":
        pytest.skip("level avx2 is one of x86")
    blocks = make_blocks(name, 2048)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).reshape(-1)
    out = subprocess.run([TOOL, name.lower()], input=blocks.tobytes(), stdout=subprocess.PIPE,
                         check=True, env={**os.environ, "GANGLION_CPU": level}, timeout=60)
    found = np.frombuffer(out.stdout, dtype="<f4")
    assert found.shape == expected.shape
    nan = np.isnan(expected)
    assert (np.isnan(found) == nan).all()
    differ = (found.view(np.uint32) != expected.view(np.uint32)) & ~nan
    assert not differ.any(), f"{differ.sum()} differ, first at {differ.argmax()}"
