"""Every chat template of llama.cpp's collection renders byte for byte as jinja2 renders it, over many
kinds of conversation, and fails where jinja2 fails, with the same message where the template raises one.

The templates come from GANGLION_TEMPLATE_DIR (default: the cache that tools/fetch_models fills)."""
import os
import pathlib

import pytest

import template_cases

oracle = pytest.importorskip("template_oracle", reason="jinja2 is not installed")

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
FOLDER = pathlib.Path(os.environ.get("GANGLION_TEMPLATE_DIR", CACHE / "ganglion" / "templates"))
TEMPLATES = sorted(FOLDER.glob("*.jinja")) if FOLDER.is_dir() else []


@pytest.fixture(scope="module")
def tool():
    path = oracle.find_tool()
    if path is None:
        pytest.skip("template_tool is not built")
    running = oracle.Tool(path)
    yield running
    running.close()


@pytest.mark.skipif(not TEMPLATES, reason=f"no *.jinja in {FOLDER}")
def test_templates_are_all_there():
    assert len(TEMPLATES) >= 60


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_like_jinja2(path, tool):
    with open(path, encoding="utf-8", newline="") as file:
        source = file.read()
    reference = oracle.Oracle()
    wrong = []
    rendered = 0
    for name, context in template_cases.contexts():
        want = reference.render(source, context)
        got = tool.render(source, context)
        rendered += want[0] == "text"
        if not oracle.same(got, want):
            wrong.append((name, want, got))
    assert not wrong, f"{len(wrong)} differ, first {wrong[0]}"
    assert rendered > 0, "no conversation rendered at all"
