"""Options of `serve` from a YAML file, and the plan that --dry-run prints."""
import json
import subprocess

import pytest

from served import BIN, Served, model_file

MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="tools/fetch_models smollm2-135m")


def run(*args):
    return subprocess.run([BIN, "serve", *map(str, args)], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("text,line,words", [
    ("port: x\n", 1, ("--port", '"x"', "65535")),
    ("\nprot: 1\n", 2, ("prot",)),
    ("model: {a: b}\n", 1, ("a mapping", "a list")),
    ("port: [1]\n", 1, ("a list",)),
    ("port: 1\nhost: ::1\nport: 2\n", 3, ("second time",)),
    ("- port\n", 1, ("a list",)),
    ("quiet: perhaps\n", 1, ("true or false",)),
    ("quiet: true\nmodel: [a\n", 2, ()),
    ("config: other.yaml\n", 1, ("this key",)),
    ("max-body: 12Q\n", 1, ("--max-body",)),
    ("model: *x\n", 1, ()),
])
def test_faults_name_their_line(tmp_path, text, line, words):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    result = run("--config", path)
    assert result.returncode == 3 and len(result.stderr.splitlines()) == 1
    assert f"{path}: line {line}" in result.stderr or f"{path}: line {line + 1}" in result.stderr
    assert all(w in result.stderr for w in words), result.stderr


def test_a_file_starts_a_server(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(f"model:\n  - file={MODEL}\nquiet: true\nmax-body: 64K\nport: 1\n")
    with Served("--config", path, "-m", f"line={MODEL}") as s:  # --port 0 comes before the file's
        assert {m["id"] for m in s.get("/v1/models")[1]["data"]} == {"file", "line"}
        assert s.ask("POST", "/tokenize", {"content": "x" * 70000})[0] == 413
    assert "{" not in s.output()


def test_dry_run(tmp_path):
    result = run("-m", f"a={MODEL}", "-m", f"b={MODEL}", "--kv-memory", "64M", "--dry-run", "--json")
    assert result.returncode == 0
    plan = json.loads(result.stdout)
    assert [m["name"] for m in plan["models"]] == ["a", "b"] and plan["fits"]
    assert plan["total_bytes"] == sum(m["heap_bytes"] + m["kv_bytes"] for m in plan["models"])
    one = json.loads(run("-m", f"a={MODEL}", "-m", f"b={MODEL}", "--kv-memory", "64M", "--max-loaded", "1",
                         "--dry-run", "--json").stdout)
    assert one["total_bytes"] < plan["total_bytes"]
    large = run("-m", MODEL, "--kv-memory", "9000G", "--dry-run")
    assert large.returncode == 1 and "does not fit" in large.stdout
    assert run("-m", tmp_path / "none.gguf", "--dry-run").returncode == 3
    assert run("-m", MODEL, "--keys", tmp_path / "none", "--dry-run").returncode == 3
