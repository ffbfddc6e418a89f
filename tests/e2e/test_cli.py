"""The command line's contract: names, output shapes, exit codes and one-line errors."""
import json
import math
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
TINY = ROOT / "tests" / "golden" / "tiny"
LLAMA = str(TINY / "gguf_llama" / "model.gguf")
BERT = str(TINY / "bert")
COMMANDS = ["run", "pull", "inspect", "tokenize", "embed", "template", "logits", "eval", "bench", "plan"]


def ganglion(*args, stdin=b"", **env):
    return subprocess.run([BIN, *args], input=stdin, capture_output=True, timeout=120, check=False,
                          env={**os.environ, **env})


def answer(*args, stdin=b""):
    result = ganglion(*args, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def refused(code, *args, stdin=b""):
    result = ganglion(*args, stdin=stdin)
    line = result.stderr.decode()
    assert result.returncode == code, line
    assert line.startswith("ganglion") and line.count("\n") == 1, line
    assert not any(ord(ch) < 32 for ch in line[:-1]), repr(line)
    return line


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


# The program


def test_overview_names_every_command():
    for args in [("--help",), ("help",), ("-h",)]:
        text = ganglion(*args).stdout.decode()
        assert all(f"  {name} " in text for name in COMMANDS)


def test_no_command_is_a_usage_error():
    assert ganglion().returncode == 2


def test_version():
    assert ganglion("--version").stdout.startswith(b"ganglion 0.")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command):
    text = ganglion(command, "--help").stdout.decode()
    assert f"Usage: ganglion {command} " in text and "Example:" in text and "--json" in text
    assert ganglion("help", command).stdout.decode() == text
    page = ganglion("generate", "man", command).stdout.decode()
    assert page.startswith(".TH ") and ".SH OPTIONS" in page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_command(shell):
    text = ganglion("generate", "completion", shell).stdout.decode()
    assert all(name in text for name in COMMANDS)


@pytest.mark.parametrize("typo,meant", [("rnu", "run"), ("inspct", "inspect"), ("tokenise", "tokenize")])
def test_nearest_command(typo, meant):
    assert f"`{meant}`" in refused(2, typo)


def test_unknown_command_with_control_characters():
    assert "\\x1b" in refused(2, "a\x1b[31mb\n")


@pytest.mark.parametrize("args", [
    ("logits", "--tpo", "3"), ("logits", "--top"), ("logits", "--top", "0"), ("logits", "--top=x"),
    ("logits", "--top", "1e99"), ("logits", "--all=1"), ("logits", "-Z"), ("logits", "extra"),
    ("bench", "-b", "1,,2"), ("bench", "-b", "0"), ("bench", "-p", "1,2,"), ("logits", "--kv-memory", "-5"),
    ("logits", "--kv-memory", "5Q"), ("logits", "--activations", "f16"), ("inspect",), ("inspect", "a", "b"),
    ("tokenize",), ("eval",), ("eval", "speed"), ("eval", "ppl"), ("pull",), ("template",),
])
def test_usage_errors(args):
    refused(2, *args)


def test_options_in_every_form(tmp_path):
    ids = write(tmp_path / "ids.json", "[1,5,9]")
    forms = [("-t", "1"), ("-t1",), ("--threads", "1"), ("--threads=1",)]
    outputs = {ganglion("logits", "-m", LLAMA, "--tokens", ids, *form).stdout for form in forms}
    assert len(outputs) == 1 and outputs != {b""}


def test_double_dash_ends_options(tmp_path):
    line = refused(3, "inspect", "--", "--json")
    assert "--json: " in line


def test_full_output_device_is_no_success():
    with open("/dev/full", "wb") as full:
        result = subprocess.run([BIN, "inspect", LLAMA], stdout=full, stderr=subprocess.PIPE,
                                check=False)
    assert result.returncode == 5
    assert b"standard output" in result.stderr


def test_closed_streams_do_no_harm():
    result = subprocess.run(["sh", "-c", f'"{BIN}" inspect "{LLAMA}" >&- 2>&-'], check=False)
    assert result.returncode in (0, 5)


# tokenize


def test_tokenize_shapes():
    text = b"abba"  # the tiny vocabulary holds a, b and ab
    ids = answer("tokenize", "-m", LLAMA, "--ids", stdin=text)
    pieces = answer("tokenize", "-m", LLAMA, stdin=text)
    both = answer("tokenize", "-m", LLAMA, "--json", stdin=text)
    assert all(isinstance(i, int) for i in ids) and len(ids) == len(pieces)
    assert both == {"ids": ids, "pieces": pieces}
    assert pieces == ["ab", "b", "a"]


def test_tokenize_nothing_and_no_text():
    assert answer("tokenize", "-m", LLAMA, "--ids", stdin=b"") == []
    assert isinstance(answer("tokenize", "-m", LLAMA, "--ids", stdin=b"\xff\x00\xfe"), list)


# logits


def test_logits_shape_and_sum(tmp_path):
    ids = write(tmp_path / "ids.json", "[1, 5, 9, 7]")
    n_vocab = answer("inspect", "--json", LLAMA)["n_vocab"]
    got = answer("logits", "-m", LLAMA, "--tokens", ids, "--top", str(n_vocab), "--all")["positions"]
    assert [p["pos"] for p in got] == [0, 1, 2, 3]
    for position in got:
        top = position["top"]
        assert sorted(i for i, _ in top) == list(range(n_vocab))
        assert [lp for _, lp in top] == sorted((lp for _, lp in top), reverse=True)
        assert abs(sum(math.exp(lp) for _, lp in top) - 1) < 1e-4
    last = answer("logits", "-m", LLAMA, "--tokens", ids, "--top", "3")["positions"]
    assert last == [{"pos": 3, "top": got[3]["top"][:3]}]


def test_logits_have_six_decimals(tmp_path):
    ids = write(tmp_path / "ids.json", "[1]")
    text = ganglion("logits", "-m", LLAMA, "--tokens", ids, "--top", "1").stdout.decode()
    number = text.split(",")[2].split("]")[0]
    assert len(number.split(".")[1]) >= 6


@pytest.mark.parametrize("text", ["", "[]", "{}", "[-1]", "[1.5]", '["1"]', "[99999999]", "[1", "[null]"])
def test_logits_bad_ids(tmp_path, text):
    ids = write(tmp_path / "ids.json", text)
    assert ids in refused(3, "logits", "-m", LLAMA, "--tokens", ids)


def test_logits_top_beyond_the_vocabulary(tmp_path):
    ids = write(tmp_path / "ids.json", "[1]")
    refused(2, "logits", "-m", LLAMA, "--tokens", ids, "--top", "1000000")


# template


TEMPLATE = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}" \
           "{% if add_generation_prompt %}<assistant>{% endif %}"


def test_template_is_exactly_the_bytes(tmp_path):
    template = write(tmp_path / "t.jinja", TEMPLATE)
    messages = write(tmp_path / "m.json", json.dumps([{"role": "user", "content": "häé\n"}]))
    args = ("template", "--template", template, "--messages", messages)
    assert ganglion(*args).stdout == "<user>häé\n\n<assistant>".encode()
    assert ganglion(*args, "--no-generation-prompt").stdout == "<user>häé\n\n".encode()
    assert answer(*args, "--json") == {"prompt": "<user>häé\n\n<assistant>"}


def test_template_context(tmp_path):
    template = write(tmp_path / "t.jinja", "{{ a.b }}{{ tools | length }}{{ strftime_now('%Y') }}")
    messages = write(tmp_path / "m.json", '{"messages": [], "a": {"b": "x"}}')
    tools = write(tmp_path / "tools.json", "[1, 2]")
    result = ganglion("template", "--template", template, "--messages", messages, "--tools", tools,
                      "--now", "1000000000")
    assert result.stdout == b"x22001", result.stderr


def test_template_keeps_key_order(tmp_path):
    template = write(tmp_path / "t.jinja", "{{ messages | tojson }}")
    text = '[{"z": 1, "a": {"y": [1.5, null, true], "b": "\\u00e9"}}]'
    messages = write(tmp_path / "m.json", text)
    result = ganglion("template", "--template", template, "--messages", messages)
    assert result.stdout.decode() == json.dumps(json.loads(text), ensure_ascii=False)


def test_template_refusal(tmp_path):
    template = write(tmp_path / "t.jinja", "{{ raise_exception('no such role') }}")
    messages = write(tmp_path / "m.json", "[]")
    line = refused(1, "template", "--template", template, "--messages", messages)
    assert "no such role" in line


@pytest.mark.parametrize("template", ["{% if %}", "{{ 1 + }}", "{% for x in 5 %}{% endfor %}"])
def test_template_faults(tmp_path, template):
    path = write(tmp_path / "t.jinja", template)
    messages = write(tmp_path / "m.json", "[]")
    assert "t.jinja" in refused(3, "template", "--template", path, "--messages", messages)


def test_template_bad_messages(tmp_path):
    path = write(tmp_path / "t.jinja", "x")
    for text in ["", "5", "{}", "[", '{"messages": 1}']:
        messages = write(tmp_path / "m.json", text)
        assert "m.json" in refused(3, "template", "--template", path, "--messages", messages)


# inspect


def test_inspect_json():
    got = answer("inspect", "--json", LLAMA)
    assert got["architecture"] == "llama" and got["format"] == "gguf"
    assert got["n_params"] == sum(math.prod(t["shape"]) for t in got["tensors"])
    assert got["weight_bytes"] == sum(t["bytes"] for t in got["tensors"])
    assert sum(t["tensors"] for t in got["types"].values()) == len(got["tensors"])
    assert got["metadata"]["general.architecture"] == "llama"
    for row in got["memory"]:
        assert row["kv_bytes"] == row["ctx"] * got["kv_bytes_per_token"]
    assert LLAMA in ganglion("inspect", LLAMA).stdout.decode()


def test_inspect_folder():
    got = answer("inspect", "--json", BERT)
    assert got["architecture"] == "bert" and got["format"] == "safetensors"
    assert got["kv_bytes_per_token"] == 0
    assert got["metadata"]["model_type"] == "bert"


def test_inspect_full_prints_whole_arrays():
    short = answer("inspect", "--json", LLAMA)["metadata"]["tokenizer.ggml.tokens"]
    full = answer("inspect", "--json", "--full", LLAMA)["metadata"]["tokenizer.ggml.tokens"]
    assert isinstance(full, list) and len(full) == (short["n"] if isinstance(short, dict) else len(short))


def test_inspect_no_model(tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF\x03\0\0\0")
    assert str(bad) in refused(3, "inspect", str(bad))
    refused(3, "inspect", str(tmp_path / "none.gguf"))
    refused(3, "inspect", str(tmp_path))


# embed


def test_embed_is_one_array_a_line():
    result = ganglion("embed", "-m", BERT, stdin=b"a b\nc\n\nlast")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 4 and len({len(r) for r in rows}) == 1
    for row in rows:
        assert abs(sum(v * v for v in row) - 1) < 1e-4


# eval


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("eval") / "text.txt"
    return write(path, "abbabaabbaabab" * 60)


def test_eval_ppl(text):
    got = answer("eval", "ppl", "-m", LLAMA, "--ctx", "32", "--limit", "4", "--json", text)
    assert got["windows"] == 4 and got["positions"] == 4 * 15
    assert abs(got["ppl"] - math.exp(got["nll"])) < 1e-3


def test_eval_ppl_agrees_with_logits(text, tmp_path):
    """The same number from `tokenize` and `logits`: windows, BOS and counted positions by hand."""
    got = answer("eval", "ppl", "-m", LLAMA, "--ctx", "32", "--limit", "1", "--json", text)
    data = pathlib.Path(text).read_bytes()
    ids = answer("tokenize", "-m", LLAMA, "--ids", "--bos", "--no-special", stdin=data)[:32]
    path = write(tmp_path / "ids.json", json.dumps(ids))
    n_vocab = answer("inspect", "--json", LLAMA)["n_vocab"]
    rows = answer("logits", "-m", LLAMA, "--tokens", path, "--all", "--top", str(n_vocab))["positions"]
    nll = [-dict(map(tuple, rows[i]["top"]))[ids[i + 1]] for i in range(16, 31)]
    assert abs(got["nll"] - sum(nll) / len(nll)) < 1e-5


def test_eval_kld_of_a_model_with_itself_is_zero(text, tmp_path):
    args = ("eval", "kld", "-m", LLAMA, "--ctx", "32", "--limit", "2", "--json")
    got = answer(*args, "--base", LLAMA, text)
    assert got["mean_kld"] == 0 and got["same_top"] == 1 and got["ppl"] == got["ppl_base"]
    saved = str(tmp_path / "base.bin")
    assert ganglion(*args, "--save-base", saved, text).returncode == 0
    assert answer(*args, "--base", saved) == got
    data = pathlib.Path(saved).read_bytes()
    for cut in (9, 20, len(data) // 2, len(data) - 1):
        pathlib.Path(saved).write_bytes(data[:cut])
        assert "base.bin" in refused(3, *args, "--base", saved)


def test_eval_kld_of_two_types(text):
    got = answer("eval", "kld", "-m", LLAMA, "--base", LLAMA, "--base-activations", "f32", "--ctx", "32",
                 "--limit", "2", "--json", text)
    assert 0 <= got["mean_kld"] < 0.1 and got["p999_kld"] >= got["mean_kld"]


def test_eval_hellaswag(tmp_path):
    tasks = [{"ctx": "abab", "endings": ["ba", "baabba"], "label": 0},
             {"ctx": "abab", "endings": ["ba", "baabba"], "label": "1"}]
    path = write(tmp_path / "tasks.jsonl", "\n".join(map(json.dumps, tasks)) + "\n\n")
    got = answer("eval", "hellaswag", "-m", LLAMA, "--json", path)
    assert got["tasks"] == 2 and got["acc"] == 0.5 and got["acc_norm"] == 0.5


@pytest.mark.parametrize("line", ["", "5", "{}", '{"ctx":"a","endings":["b"],"label":0}',
                                  '{"ctx":"a","endings":["b","c"],"label":2}',
                                  '{"ctx":"a","endings":["b",3],"label":0}', "{"])
def test_eval_hellaswag_bad_tasks(tmp_path, line):
    path = write(tmp_path / "tasks.jsonl", line + "\n")
    assert "tasks.jsonl" in refused(3, "eval", "hellaswag", "-m", LLAMA, path)


def test_eval_text_too_short(tmp_path):
    path = write(tmp_path / "t.txt", "ab")
    assert "expected at least one window" in refused(3, "eval", "ppl", "-m", LLAMA, path)


# bench


def test_bench_shape():
    got = answer("bench", "-m", LLAMA, "-p", "8", "-n", "4", "-b", "1,2", "-d", "0,4", "-r", "2", "-t", "1",
                 "--json")
    assert got["threads"] == 1 and got["level"] and got["commit"] and got["model"] == LLAMA
    tests = [(r["test"], r.get("batch"), r.get("depth")) for r in got["results"]]
    assert tests == [("prefill", 1, 0), ("decode", 1, 0), ("decode", 2, 0), ("prefill", 1, 4),
                     ("decode", 1, 4), ("decode", 2, 4), ("cold_start", None, None),
                     ("memory", None, None), ("bandwidth", None, None)]
    for row in got["results"][:6]:
        assert row["kv"] == "f16"
        assert 0 < row["tok_s"]["min"] <= row["tok_s"]["median"] <= row["tok_s"]["max"]
    assert got["results"][6]["seconds"] > 0
    assert got["results"][7]["private_bytes"] > 0 and got["results"][7]["shared_bytes"] > 0
    assert got["results"][8]["read_bytes_s"] > 1e8 and got["results"][8]["share"] > 0


def test_bench_without_extras_or_tokenizer():
    got = answer("bench", "-m", LLAMA, "-p", "0", "-n", "2", "-b", "3,16", "-r", "1", "--no-extras", "--json")
    assert [(r["test"], r.get("batch")) for r in got["results"]] == [("decode", 3), ("decode", 16), ("memory", None)]
    got = answer("bench", "-m", str(TINY / "qwen2"), "-p", "4", "-n", "0", "-r", "1", "--json")
    assert [r["test"] for r in got["results"]] == ["prefill", "memory", "bandwidth"]
    assert got["results"][2]["share"] is None


def test_bench_names_the_kv_format():
    got = answer("bench", "-m", LLAMA, "-p", "4", "-n", "2", "-r", "1", "-t", "1", "--kv", "q8", "--json")
    assert [r["kv"] for r in got["results"] if "kv" in r] == ["q8", "q8"]
    assert "cold_start" in [r["test"] for r in got["results"]]


def test_kv_format_beside_exact_activations():
    for given, named in (((), "f32"), (("--kv", "q8"), "q8")):
        got = answer("bench", "-m", LLAMA, "-p", "4", "-n", "0", "-r", "1", "--no-extras", "--json",
                     "--activations", "f32", *given)
        assert [r["kv"] for r in got["results"] if "kv" in r] == [named]


def test_bench_past_the_trained_context():
    result = ganglion("bench", "-m", LLAMA, "-p", "4", "-n", "0", "-d", "300", "-r", "1", "--no-extras",
                      "--json", "--kv-memory", "1G")
    assert b"more than the context of" in result.stderr


# names of models


def test_model_by_name(tmp_path):
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "anything.gguf").symlink_to(LLAMA)
    result = ganglion("tokenize", "-m", "tiny", "--ids", stdin=b"hello",
                      GANGLION_MODELS=str(tmp_path / "models"))
    assert result.returncode == 0, result.stderr
    result = ganglion("tokenize", "-m", "../models/tiny", "--ids", stdin=b"hello",
                      GANGLION_MODELS=str(tmp_path / "models"))
    assert result.returncode == 3
