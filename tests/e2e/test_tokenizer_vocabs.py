"""llama.cpp's ggml-vocab-*.gguf: the ids beside each file are the ids we give."""
import pytest

from toktool import VOCABS, TokTool, tool_path

FILES = sorted(p for p in VOCABS.glob("ggml-vocab-*.gguf") if p.with_suffix(".gguf.inp").exists())

# file → {index of the string: why the ids differ}. Each was looked at; ours are those of the model's
# own tokenizer.
NFC = "the model composes (NFC) before it cuts; llama.cpp does not"
EXPLAINED = {"qwen35": {46: NFC, 47: NFC, 48: NFC}}


def test_material_is_there():
    if not tool_path().exists():
        pytest.skip(f"{tool_path()} is not built")
    if not FILES:
        pytest.skip(f"no vocabularies in {VOCABS}: tools/fetch_models vocabs brings them")
    assert len(FILES) >= 15


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem.removeprefix("ggml-vocab-"))
def test_ids(path):
    if not tool_path().exists():
        pytest.skip(f"{tool_path()} is not built")
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text().split("\n")
    wanted = [[int(x) for x in line.split()] for line in lines]
    assert len(wanted) >= len(texts) > 40
    with TokTool(path) as tool:
        got = tool.encode(texts)
    explained = EXPLAINED.get(path.stem.removeprefix("ggml-vocab-"), {})
    wrong = {i: (t, w, g) for i, (t, w, g) in enumerate(zip(texts, wanted, got))
             if w != g and i not in explained}
    assert not wrong
