"""Cache files of packed weights, as users meet them: the same bits with and without, two processes at once,
a writer killed at any moment, damage, a full disk."""
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build/release/ganglion"))
MODELS = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "ganglion/models"
FULL = os.environ.get("GANGLION_TEST_FULL") == "1"
SMALL = "smollm2-135m"
NAMES = [SMALL] + (["gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"] if FULL else [])


@pytest.fixture(params=NAMES)
def model(request):
    if not (MODELS / request.param).exists():
        pytest.skip(f"needs {request.param}: tools/fetch_models {request.param}")
    return str(MODELS / request.param)


@pytest.fixture
def small():
    if not (MODELS / SMALL).exists():
        pytest.skip(f"needs {SMALL}: tools/fetch_models {SMALL}")
    return str(MODELS / SMALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "panels"
    monkeypatch.setenv("GANGLION_CACHE_DIR", str(path))
    monkeypatch.delenv("GANGLION_CACHE", raising=False)
    return path


@pytest.fixture
def ids(tmp_path):
    path = tmp_path / "ids.json"
    path.write_text(json.dumps([i * 37 % 40000 for i in range(1, 21)]))
    return str(path)


def ganglion(*args, env=None, check=True, **more):
    done = subprocess.run([BIN, *args], capture_output=True, text=True, timeout=280,
                          env={**os.environ, **(env or {})}, **more)
    assert not check or done.returncode == 0, done.stderr
    return done


def levels():
    """Those that this machine has: named where another is asked for."""
    refused = ganglion("logits", "-m", "none", "--tokens", "none", env={"GANGLION_CPU": "none"}, check=False)
    found = refused.stderr.rsplit("expected one of: ", 1)[1].split()
    assert "ref" in found
    return found


def logits(model, ids, cache, env=None):
    return ganglion("logits", "-m", model, "--tokens", ids, "--all", "--top", "20", "--cache", cache,
                    env=env)


def files(folder):
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_same_bits_with_and_without(model, folder, ids):
    plain = logits(model, ids, "off").stdout
    assert files(folder) == []
    assert logits(model, ids, "read").stdout == plain and files(folder) == []
    first = logits(model, ids, "auto")
    assert first.stdout == plain and first.stderr == ""
    assert len(files(folder)) == 1 and files(folder)[0].endswith(".panels")
    assert logits(model, ids, "auto").stdout == plain
    listed = json.loads(ganglion("pull", "--cache", "--json").stdout)
    assert listed["files"][0]["model"] == os.path.realpath(model)
    bench = json.loads(ganglion("bench", "-m", model, "-p", "16", "-n", "2", "-r", "1", "--json",
                                "--cache", "read").stdout)
    assert any(r["test"] == "memory" for r in bench["results"])


def test_same_bits_at_every_level(small, folder, ids):
    outputs = {logits(small, ids, cache, env={"GANGLION_CPU": level}).stdout
               for level in levels() for cache in ("off", "auto")}
    assert len(outputs) == 1 and len(files(folder)) == 1


def test_environment_narrows_the_option(small, folder, ids):
    logits(small, ids, "auto", env={"GANGLION_CACHE": "off"})
    logits(small, ids, "auto", env={"GANGLION_CACHE": "read"})
    assert files(folder) == []


def test_two_processes_at_once(small, folder, ids):
    plain = logits(small, ids, "off").stdout
    both = [subprocess.Popen([BIN, "logits", "-m", small, "--tokens", ids, "--all", "--top", "20"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(3)]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and out == plain and err == ""
    assert len(files(folder)) == 1 and files(folder)[0].endswith(".panels")


def test_killed_at_any_moment(small, folder, ids):
    plain = logits(small, ids, "off").stdout
    dice = random.Random(4)
    seen_part = 0
    for _ in range(50):
        process = subprocess.Popen([BIN, "logits", "-m", small, "--tokens", ids],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.4))
        process.kill()
        process.wait()
        seen_part += any(name.endswith(".part") for name in files(folder))
        ganglion("pull", "--cache")
        for name in files(folder):
            if name.endswith(".panels") and dice.random() < 0.5:
                (folder / name).unlink()
    assert seen_part > 0, "no writer was caught in the act"
    last = logits(small, ids, "auto")
    assert last.stdout == plain and last.stderr == ""
    assert len(files(folder)) == 1 and files(folder)[0].endswith(".panels")


def test_interrupt_leaves_nothing(small, folder, ids):
    for delay in (0.02, 0.05, 0.1, 0.2):
        process = subprocess.Popen([BIN, "logits", "-m", small, "--tokens", ids],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert "ganglion:" not in err
    assert logits(small, ids, "auto").stderr == ""
    assert len(files(folder)) == 1


def test_damaged_file_is_named_once_and_written_anew(small, folder, ids):
    plain = logits(small, ids, "auto").stdout
    path = folder / files(folder)[0]
    size = path.stat().st_size
    for at in (40, 5000, size - 1):
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 255]))
        again = logits(small, ids, "auto")
        assert again.stdout == plain
        assert again.stderr.count("\n") == 1 and path.name in again.stderr
        quiet = logits(small, ids, "auto")
        assert quiet.stdout == plain and quiet.stderr == ""


def test_full_disk_and_no_folder_are_one_warning(small, folder, ids, tmp_path):
    plain = logits(small, ids, "off").stdout

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

    full = ganglion("logits", "-m", small, "--tokens", ids, "--all", "--top", "20",
                    preexec_fn=small_files)
    assert full.stdout == plain
    assert full.stderr.count("\n") == 1 and full.stderr.startswith("ganglion: packed weights")
    assert files(folder) == []
    (tmp_path / "file").write_text("")
    blocked = logits(small, ids, "auto", env={"GANGLION_CACHE_DIR": str(tmp_path / "file/panels")})
    assert blocked.stdout == plain
    assert blocked.stderr.count("\n") == 1 and blocked.stderr.startswith("ganglion: packed weights")


def test_a_changed_model_gets_another_file(small, folder, ids, tmp_path):
    source = next(pathlib.Path(small).glob("*.gguf"))
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(source.read_bytes())
    logits(str(copy), ids, "auto")
    before = files(folder)
    plain = logits(str(copy), ids, "off").stdout
    with open(copy, "r+b") as file:
        file.seek(-4096, os.SEEK_END)
        data = bytearray(file.read(64))
        data[20] ^= 1
        file.seek(-4096, os.SEEK_END)
        file.write(data)
    changed = logits(str(copy), ids, "auto").stdout
    assert changed == logits(str(copy), ids, "off").stdout
    assert len(files(folder)) == 1 and files(folder) != before
    assert plain  # the weights differ in one bit, the texts may or may not


def test_limit_removes_the_least_used_and_may_forbid(small, folder, ids, tmp_path):
    source = next(pathlib.Path(small).glob("*.gguf"))
    size = source.stat().st_size
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(source.read_bytes())
    plain = logits(small, ids, "auto").stdout
    first = files(folder)
    limited = ganglion("logits", "-m", str(copy), "--tokens", ids, "--all", "--top", "20", "--cache-limit",
                       str(size * 3 // 2))
    assert limited.stdout == plain and limited.stderr == ""
    second = files(folder)
    assert len(second) == 1 and second != first
    ganglion("pull", "--cache", "rm", "all")
    none = ganglion("logits", "-m", small, "--tokens", ids, "--all", "--top", "20", "--cache-limit", "1M")
    assert none.stdout == plain and none.stderr.count("\n") == 1 and "limit" in none.stderr
    assert files(folder) == []


def test_experts_and_an_output_matrix_of_its_own(folder, ids, tmp_path):
    """A mixture of experts, its weights quantized: each expert finds its own panels."""
    gguf = pytest.importorskip("gguf", reason="needs the gguf package to quantize")
    reader = gguf.GGUFReader(ROOT / "tests/golden/tiny/gguf_qwen3moe/model.gguf")
    path = tmp_path / "moe.gguf"
    writer = gguf.GGUFWriter(path, "qwen3moe")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            sub = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub)
    kind = gguf.GGMLQuantizationType.Q8_0
    for tensor in reader.tensors:
        if len(tensor.shape) > 1 and "ffn_gate_inp" not in tensor.name:
            writer.add_tensor(tensor.name, gguf.quants.quantize(tensor.data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()
    pathlib.Path(ids).write_text(json.dumps([i * 37 % 96 for i in range(1, 41)]))
    plain = logits(str(path), ids, "off").stdout
    assert logits(str(path), ids, "auto").stdout == plain and len(files(folder)) == 1
    assert logits(str(path), ids, "read").stdout == plain
    assert json.loads(ganglion("plan", "-m", str(path), "--ctx", "64", "--json").stdout)


def test_list_and_remove(small, folder, ids):
    assert json.loads(ganglion("pull", "--cache", "--json").stdout)["files"] == []
    logits(small, ids, "auto")
    assert ganglion("pull", "--cache", "rm", "nothing", check=False).returncode == 3
    removed = json.loads(ganglion("pull", "--cache", "--json", "rm", SMALL).stdout)
    assert removed["removed"] == 1 and removed["bytes"] > 1e6
    assert files(folder) == []
    assert ganglion("pull", "--cache", "what", check=False).returncode == 2
