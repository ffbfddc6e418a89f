"""What careless or hostile users do to the command line: each ends in the documented exit code with one
clear line, and never in a signal of the program's own making."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest
from faults import STR, Gguf

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
BERT = str(ROOT / "tests" / "golden" / "tiny" / "bert")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    gguf = Gguf()
    gguf.key("tokenizer.chat_template", STR, "{% for m in messages %}{{ m.content }}{% endfor %}")
    path = tmp_path_factory.mktemp("model") / "m.gguf"
    path.write_bytes(gguf.pack())
    return str(path)


def ganglion(*args, stdin=b"", env=None):
    return subprocess.run([BIN, *map(str, args)], input=stdin, capture_output=True, timeout=60, check=False,
                          env={**os.environ, **(env or {})})


def refused(code, *args, **more):
    done = ganglion(*args, **more)
    line = done.stderr.decode()
    assert done.returncode == code, (done.returncode, line)
    assert line.count("\n") == 1 and line.startswith("ganglion "), line
    return line


@pytest.mark.parametrize("args", [
    ("-n", "99999999999"), ("-n", "-2"), ("-n", "1e3"), ("-n", ""), ("-n", "0x10"), ("--ctx", "0"),
    ("--ctx", "-1"), ("--ctx", "4294967296"), ("-t", "0"), ("-t", "1025"), ("-t", "-1"), ("--temp", "nan"),
    ("--temp", "inf"), ("--temp", "1e400"), ("--top-p", "0"), ("--top-p", "1.1"), ("--min-p", "-1"),
    ("--seed", "-5"), ("--seed", "18446744073709551615"), ("--logit-bias", "1:nan"), ("--logit-bias", "1:inf"),
    ("--logit-bias", "40:1"), ("--logit-bias", "-1:1"), ("--logit-bias", "1"), ("--logit-bias", ":1"),
    ("--stop", ""), ("--kv-memory", "1"), ("--kv-memory", "99999999999999999999"), ("--kv-memory", "1X"),
    ("--activations", "int4"), ("extra",), ("-f", "/dev/null"),
])
def test_option_values(model, args):
    refused(2, "run", "-m", model, "-p", "abc", *args)


@pytest.mark.parametrize("args", [
    ("-n", "0"), ("-n", "2147483647"), ("-n", "-1"), ("--ctx", "1000000000"), ("--ctx", "2147483647"),
    ("-t", "200"), ("--temp", "1e-30"), ("--temp", "1e30"), ("--temp", "-1"), ("--top-k", "999999999"),
    ("--seed", "9007199254740991"), ("--stop", "\n\x1b"), ("--logit-bias", "1:-inf"),
])
def test_extreme_values_work(model, args):
    few = () if args[0] in ("-n", "--ctx") else ("-n", "4")
    more = ("-n", "4") if args[0] == "--ctx" else ()
    done = ganglion("run", "-m", model, "-p", "abc", *few, *more, *args)
    assert done.returncode == 0, done.stderr.decode()


def test_prompts(model, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text("abc " * 500000)
    assert str(long) in refused(3, "run", "-m", model, "-f", long)
    assert "standard input" in refused(3, "run", "-m", model, "-f", "-", stdin=long.read_bytes())
    assert "holds 64" in refused(3, "run", "-m", model, "-p", "abc " * 100)
    assert "empty" in refused(2, "run", "-m", model, "-p", "")
    assert "empty" in refused(2, "run", "-m", model, "-f", "-")
    assert "none.txt" in refused(3, "run", "-m", model, "-f", tmp_path / "none.txt")
    assert str(tmp_path) in refused(3, "run", "-m", model, "-f", tmp_path)
    for data in [b"a\xff\x00b\xc3", bytes(range(256)) * 100]:
        done = ganglion("run", "-m", model, "-f", "-", "-n", "2", "--json", "--ctx", "1000000", stdin=data)
        assert done.returncode == 3 and b"standard input: " in done.stderr and b"UTF-8" in done.stderr
        done = ganglion("run", "-m", model, "-f", "-", "-n", "2", "--json", "--raw", "--ctx", "1000000", stdin=data)
        assert done.returncode == 0 and json.loads(done.stdout)["n_tokens"] <= 2


def test_ids_beyond_the_context(model, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps([5] * 65))
    line = refused(3, "logits", "-m", model, "--tokens", ids)
    assert str(ids) in line and "65" in line and "64" in line
    ids.write_text(json.dumps([5] * 64))
    assert ganglion("logits", "-m", model, "--tokens", ids).returncode == 0


@pytest.mark.parametrize("command,args", [("run", ["-p", "a"]), ("logits", ["--tokens", "-"]), ("bench", [])])
def test_an_encoder_is_named(command, args):
    line = refused(3, command, "-m", BERT, *args, stdin=b"[5]")
    assert line.count(BERT) == 1 and "encoder" in line


def test_embed_names_the_line(model):
    line = refused(3, "embed", "-m", model, stdin=b"abc\n" + b"abc" * 100 + b"\n")
    assert "standard input: line 2" in line


def test_levels_and_environment(model, tmp_path):
    assert "bogus" in refused(2, "run", "-m", model, "-p", "a", env={"GANGLION_CPU": "bogus"})
    for env in [{"GANGLION_CPU": ""}, {"GANGLION_CPU": "ref"}, {"LC_ALL": "C"}, {"HOME": "/nonexistent"}]:
        assert ganglion("run", "-m", model, "-p", "abc", "-n", "2", env=env).returncode == 0
    bare = subprocess.run([BIN, "run", "-m", model, "-p", "abc", "-n", "2"], env={}, capture_output=True,
                          timeout=60, check=False)
    assert bare.returncode == 0, bare.stderr
    none = subprocess.run([BIN, "run", "-m", "no-such-model", "-p", "abc"], env={}, capture_output=True,
                          timeout=60, check=False)
    assert none.returncode == 3 and b"no-such-model" in none.stderr


def test_two_models_in_a_folder(model, tmp_path):
    for name in ["a.gguf", "b.gguf"]:
        (tmp_path / name).symlink_to(model)
    assert "2 .gguf files" in refused(3, "run", "-m", tmp_path, "-p", "a")


@pytest.mark.parametrize("args", [("run", "-p", "abc", "-n", "4"), ("run", "-p", "abc", "-n", "4", "--json"),
                                  ("tokenize",), ("embed",), ("template", "--messages", "/dev/stdin")])
def test_a_full_disk_is_no_success(model, args):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN, args[0], "-m", model, *args[1:]], stdout=full, stderr=subprocess.PIPE,
                              input=b'[{"content": "abc"}]\n', timeout=60, check=False)
    assert done.returncode == 5 and done.stderr.count(b"\n") == 1, done.stderr


def test_save_replaces_plain_files_only(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").write_text("old")
    lines = "".join(f"/save {tmp_path / name}\n" for name in ["pipe", "link", "file"])
    done = ganglion("run", "-m", model, stdin=lines.encode())
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink(), done.stderr
    assert done.stderr.count(b"no regular file") == 2
    assert json.loads((tmp_path / "file").read_text())["messages"] == []
    assert not list(tmp_path.glob("*.part"))


def wait(process, seconds=30):
    try:
        return process.wait(timeout=seconds)
    finally:
        process.kill()


def test_a_reader_that_goes_away(model):
    process = subprocess.Popen([BIN, "run", "-m", model, "-p", "abc", "--ignore-eos", "--ctx", "100000000"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.read(10)
    process.stdout.close()
    assert wait(process) in (-signal.SIGPIPE, 5)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_an_answer(model, sig):
    with subprocess.Popen([BIN, "run", "-m", model, "-p", "abc", "--ignore-eos", "--ctx", "100000000"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.read(10)
        process.send_signal(sig)
        start = time.monotonic()
        late = threading.Timer(30, process.kill)
        late.start()
        process.stdout.read()
        late.cancel()
        assert wait(process) in (0, 5, 128 + sig, -sig)
        assert time.monotonic() - start < 30


@pytest.mark.parametrize("args", [("embed",), ("tokenize",), ("logits", "--tokens", "-")])
def test_ctrl_c_while_waiting_for_input(model, args):
    with subprocess.Popen([BIN, args[0], "-m", model, *args[1:]], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert wait(process) in (-signal.SIGINT, 5, 130)
