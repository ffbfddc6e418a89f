"""Malformed models at the level of the program: each has one thing wrong and ends in the documented exit
code, at once, with one line that names the file. Run with GANGLION_BIN set to a sanitized build, these are
tests of memory safety too: a sanitizer's report is neither exit code 3 nor one line."""
import json
import os
import pathlib
import resource
import struct
import subprocess
import time

import faults
import pytest
from faults import ARR, BOOL, F32, F64, I32, STR, U32, U64, Folder, Gguf

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
CPU_SECONDS = 50  # far above what any of these takes, on any machine; far below what having no bound would
NAN, INF = float("nan"), float("inf")


def ganglion(*args, stdin=b""):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([BIN, *map(str, args)], input=stdin, capture_output=True, timeout=60, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < CPU_SECONDS, f"took {spent} s"
    return done


def refused(path, *args, stdin=b"", code=3, out=b""):
    """The program says no in one line about `path`, and prints nothing else."""
    done = ganglion(*args, stdin=stdin)
    line = done.stderr.decode()
    assert done.returncode == code, (done.returncode, line)
    assert line.count("\n") == 1 and line.endswith("\n"), line
    assert line.startswith("ganglion") and str(path) in line, line
    assert all(ord(ch) >= 32 and ord(ch) != 127 for ch in line[:-1]), repr(line)
    assert len(line) < 1000
    assert done.stdout == out
    return line


def run(path, **more):
    return refused(path, "run", "-m", path, "-p", "abc", "-n", "2", "--temp", "0", "-t", "1", **more)


def works(path):
    done = ganglion("run", "-m", path, "-p", "abc", "-n", "2", "--temp", "0", "-t", "1", "--ignore-eos")
    assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()


def test_the_models_are_valid(tmp_path):
    """Else every fault below would be refused for another reason."""
    (tmp_path / "m.gguf").write_bytes(Gguf().pack())
    works(tmp_path / "m.gguf")
    works(Folder().write(tmp_path / "folder"))
    for path in [tmp_path / "m.gguf", tmp_path / "folder"]:
        done = ganglion("tokenize", "-m", path, "--ids", stdin=b"abcz")
        assert json.loads(done.stdout) == [5, 31]


# ---- GGUF: numbers, shapes, types, weights ----

def llama(key, kind, v):
    return lambda m: m.key("llama." + key, kind, v)


def drop(key):
    return lambda m: (m.keys if key in m.keys else m.tensors).pop(key)


def arch(name):
    return lambda m: m.key("general.architecture", STR, name)


def experts(n, used):
    def change(m):
        m.key("llama.expert_count", U32, n)
        m.key("llama.expert_used_count", U32, used)
        m.dims("blk.0.ffn_gate_inp.weight", 32, 4)
        for name in ["gate", "up"]:
            m.dims(f"blk.0.ffn_{name}_exps.weight", 32, 48, 4)
        m.dims("blk.0.ffn_down_exps.weight", 48, 32, 4)
    return change


def scaling(kind, key, number):
    def change(m):
        m.key("llama.rope.scaling.type", STR, kind)
        m.key("llama.rope.scaling." + key, F32, number)
    return change


def typed(name, kind, n_bytes):
    """The tensor as another type, with as many bytes as that takes."""
    def change(m):
        m.tensors[name][1:] = [kind, b"\1" * n_bytes]
    return change


WEIGHTS = {
    "no heads": (llama("attention.head_count", U32, 0), "head_count"),
    "2^31 heads": (llama("attention.head_count", U32, 2**31), "head_count"),
    "2^63 heads": (llama("attention.head_count", U64, 2**63), "head_count"),
    "more heads than elements": (llama("attention.head_count", U32, 64), "head"),
    "heads not a multiple": (llama("attention.head_count", U32, 3), "3"),
    "negative heads": (llama("attention.head_count", I32, -4), "head_count"),
    "a fraction of heads": (llama("attention.head_count", F32, 4.5), "head_count"),
    "heads in a string": (llama("attention.head_count", STR, "4"), "head_count"),
    "heads by layer that differ": (llama("attention.head_count", ARR, (U32, [4, 2])), "head_count"),
    "heads in an empty array": (llama("attention.head_count", ARR, (U32, [])), "head_count"),
    "heads missing": (drop("llama.attention.head_count"), "head_count"),
    "no key heads": (llama("attention.head_count_kv", U32, 0), "head_count_kv"),
    "2^31 key heads": (llama("attention.head_count_kv", U32, 2**31), "head_count_kv"),
    "no layers": (llama("block_count", U32, 0), "block_count"),
    "2^32-1 layers": (llama("block_count", U32, 2**32 - 1), "block_count"),
    "a layer too many": (llama("block_count", U32, 2), "blk.1."),
    "embedding of 0": (llama("embedding_length", U32, 0), "embedding_length"),
    "embedding of 2^32-1": (llama("embedding_length", U32, 2**32 - 1), "embedding_length"),
    "embedding that disagrees": (llama("embedding_length", U32, 64), "token_embd.weight"),
    "feed forward that disagrees": (llama("feed_forward_length", U32, 47), "ffn_"),
    "feed forward of 0": (llama("feed_forward_length", U32, 0), "feed_forward_length"),
    "context of 0": (llama("context_length", U32, 0), "context_length"),
    "context of 2^32-1": (llama("context_length", U32, 2**32 - 1), "context_length"),
    "context of another type": (llama("context_length", BOOL, True), "context_length"),
    "keys of 0": (llama("attention.key_length", U32, 0), "key_length"),
    "keys of odd length": (llama("attention.key_length", U32, 5), ""),
    "keys of 2^31": (llama("attention.key_length", U32, 2**31), "key_length"),
    "values of another length": (llama("attention.value_length", U32, 16), "values"),
    "rotation of 0": (llama("rope.dimension_count", U32, 0), "dimension_count"),
    "rotation of an odd count": (llama("rope.dimension_count", U32, 3), "rotated"),
    "rotation beyond the head": (llama("rope.dimension_count", U32, 10), "rotated"),
    "rope base NaN": (llama("rope.freq_base", F32, NAN), "freq_base"),
    "rope base infinite": (llama("rope.freq_base", F32, INF), "freq_base"),
    "rope base 0": (llama("rope.freq_base", F32, 0.0), "base"),
    "rope base negative": (llama("rope.freq_base", F32, -1.0), "base"),
    "rope base too large for a float": (llama("rope.freq_base", F64, 1e300), "freq_base"),
    "rope scaling unknown": (llama("rope.scaling.type", STR, "magic"), "magic"),
    "rope scaling with control characters": (llama("rope.scaling.type", STR, "a\x1b[2J\n"), "\\x1b"),
    "rope scaling of another type": (llama("rope.scaling.type", U32, 1), "scaling.type"),
    "rope factor 0": (scaling("linear", "factor", 0.0), "factor"),
    "rope factor NaN": (scaling("yarn", "factor", NAN), "factor"),
    "rope betas infinite": (scaling("yarn", "yarn_beta_fast", INF), "yarn_beta_fast"),
    "epsilon NaN": (llama("attention.layer_norm_rms_epsilon", F32, NAN), "epsilon"),
    "epsilon negative": (llama("attention.layer_norm_rms_epsilon", F32, -1.0), "epsilon"),
    "epsilon of 1e20": (llama("attention.layer_norm_rms_epsilon", F32, 1e20), "epsilon"),
    "more experts used than there are": (experts(4, 5), "experts"),
    "no expert used": (experts(4, 0), "experts"),
    "2^31 experts": (experts(2**31, 1), "expert_count"),
    "experts that are not there": (experts(8, 2), ""),
    "unknown architecture": (arch("wobble"), "llama, "),
    "architecture with control characters": (arch("a\x1b[31m\nb"), "\\x1b[31m"),
    "architecture empty": (arch(""), "architecture"),
    "architecture of 10,000 bytes": (arch("a" * 10000), "architecture"),
    "architecture missing": (drop("general.architecture"), "general.architecture"),
    "architecture is a number": (lambda m: m.key("general.architecture", U32, 1), "architecture"),
    "keys of another architecture": (arch("qwen2"), "qwen2."),
    "no embedding": (drop("token_embd.weight"), "token_embd.weight"),
    "no output norm": (drop("output_norm.weight"), "output_norm.weight"),
    "no norm in a layer": (drop("blk.0.attn_norm.weight"), "blk.0.attn_norm.weight"),
    "no queries": (drop("blk.0.attn_q.weight"), "blk.0.attn_q.weight"),
    "no down projection": (drop("blk.0.ffn_down.weight"), "blk.0.ffn_down.weight"),
    "output shape swapped": (lambda m: m.dims("output.weight", 40, 32), "output.weight"),
    "embedding shape swapped": (lambda m: m.dims("token_embd.weight", 40, 32), "token_embd.weight"),
    "keys swapped": (lambda m: m.dims("blk.0.attn_k.weight", 16, 32), "blk.0.attn_k.weight"),
    "a norm of two dimensions": (lambda m: m.dims("output_norm.weight", 32, 1), "output_norm.weight"),
    "a norm too long": (lambda m: m.dims("output_norm.weight", 33), "output_norm.weight"),
    "an embedding of one dimension": (lambda m: m.dims("token_embd.weight", 1280), "token_embd.weight"),
    "an embedding of one row": (lambda m: m.dims("token_embd.weight", 32, 1), ""),
    "fewer rows than tokens": (lambda m: (m.dims("token_embd.weight", 32, 39), m.dims("output.weight", 32, 39)),
                               "40"),
    "output of more rows": (lambda m: m.dims("output.weight", 32, 41), "output.weight"),
    "rope factors of another length": (lambda m: m.dims("rope_freqs.weight", 5), "rope_freqs.weight"),
    "a bias of another length": (lambda m: m.dims("blk.0.attn_q.bias", 31), "attn_q.bias"),
    "a tensor that nothing reads": (lambda m: m.dims("blk.0.attn_sinks.weight", 4), "attn_sinks"),
    "a layer that nothing reads": (lambda m: m.dims("blk.1.attn_norm.weight", 32), "blk.1.attn_norm"),
    "weights of integers": (typed("blk.0.attn_q.weight", faults.GGML_I32, 4096), "I32"),
    "a norm of integers": (typed("output_norm.weight", faults.GGML_I32, 128), "I32"),
    "an embedding of integers": (typed("token_embd.weight", faults.GGML_I32, 5120), "I32"),
    "rows of half a block": (typed("blk.0.ffn_down.weight", faults.GGML_Q4_0, 864), "block"),
    "rows of an eighth of a block": (typed("blk.0.attn_q.weight", faults.GGML_Q4_K, 576), "block"),
    "NaN in the embedding": (lambda m: m.poke("token_embd.weight", 5 * 32, NAN), "token_embd.weight"),
    "infinity in a matrix": (lambda m: m.poke("blk.0.ffn_up.weight", 5, INF), "blk.0.ffn_up.weight"),
    "NaN in a norm": (lambda m: m.poke("output_norm.weight", 0, NAN), "output_norm.weight"),
    "infinity in the output": (lambda m: m.poke("output.weight", 40 * 32 - 1, -INF), "output.weight"),
    "numbers that overflow": (lambda m: [m.poke("output.weight", i, 3e38) for i in range(1280)], ""),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_gguf_weights(tmp_path, name):
    change, fragment = WEIGHTS[name]
    model = Gguf()
    change(model)
    path = tmp_path / "m.gguf"
    path.write_bytes(model.pack())
    assert fragment in run(path)
    ids = tmp_path / "ids.json"
    ids.write_text("[5, 7, 8]")
    refused(path, "logits", "-m", path, "--tokens", ids, "--all", "-t", "1")
    # What the shape of the file allows is shown, whatever it is worth; never a crash.
    assert ganglion("inspect", path).returncode in (0, 3)


def test_a_type_not_computed_yet_is_shown_and_refused_by_name(tmp_path):
    model = Gguf()
    model.keys["llama.embedding_length"] = (U32, 256)
    model.tensors["blk.0.attn_q.weight"] = [[256, 2], faults.GGML_IQ1_S, b"\0" * 100]
    model.tensors = {"blk.0.attn_q.weight": model.tensors["blk.0.attn_q.weight"]}
    model.dims("token_embd.weight", 256, 40)
    for name, dims in [("output_norm", [256]), ("blk.0.attn_norm", [256])]:
        model.dims(name + ".weight", *dims)
    model.tensors["blk.0.attn_q.weight"] = [[256, 256], faults.GGML_IQ1_S, b"\0" * 50 * 256]
    path = tmp_path / "m.gguf"
    path.write_bytes(model.pack())
    line = run(path)
    assert "blk.0.attn_q.weight" in line and "IQ1_S" in line
    done = ganglion("inspect", path)
    assert done.returncode == 0 and b"IQ1_S" in done.stdout


# ---- GGUF: tokenizer and template ----

def token(key, kind, v):
    return lambda m: m.key("tokenizer.ggml." + key, kind, v)


def tokens(change):
    def apply(m):
        items = m.keys["tokenizer.ggml.tokens"][1][1]
        m.key("tokenizer.ggml.tokens", ARR, (STR, change(list(items))))
    return apply


VOCABULARY = {
    "no tokens": (drop("tokenizer.ggml.tokens"), "tokens"),
    "an empty vocabulary": (tokens(lambda t: []), "token"),
    "tokens that are numbers": (token("tokens", ARR, (U32, list(range(40)))), "tokens"),
    "tokens in one string": (token("tokens", STR, "a b c"), "tokens"),
    "more tokens than types": (tokens(lambda t: t + ["x1"]), "token_type"),
    "types of fractions": (token("token_type", ARR, (F32, [1.0] * 40)), "token_type"),
    "a type that is not known": (token("token_type", ARR, (I32, [9] * 40)), "token_type"),
    "BOS beyond the vocabulary": (token("bos_token_id", U32, 40), "bos_token_id"),
    "EOS of 2^32-1": (token("eos_token_id", U32, 2**32 - 1), "eos_token_id"),
    "EOS negative": (token("eos_token_id", I32, -1), "eos_token_id"),
    "EOS in a string": (token("eos_token_id", STR, "2"), "eos_token_id"),
    "end of turn beyond the vocabulary": (token("eot_token_id", U32, 99), "eot_token_id"),
    "padding beyond the vocabulary": (token("padding_token_id", U32, 2**31), "padding_token_id"),
    "a merge of unknown tokens": (token("merges", ARR, (STR, ["a b", "x9 y9"])), "merges"),
    "a merge without a space": (token("merges", ARR, (STR, ["ab"])), "merges"),
    "an empty merge": (token("merges", ARR, (STR, [""])), "merges"),
    "merges of numbers": (token("merges", ARR, (U32, [1, 2])), "merges"),
    "merges missing": (drop("tokenizer.ggml.merges"), "merges"),
    "a tokenizer that is not known": (token("model", STR, "rwkv\n"), "model"),
    "a tokenizer in a number": (token("model", U32, 3), "model"),
    "a pre-tokenizer that is not known": (token("pre", STR, "hocus"), "hocus"),
    "scores missing": (token("model", STR, "llama"), "scores"),
    "scores too few": (lambda m: (token("model", STR, "llama")(m), token("scores", ARR, (F32, [0.0]))(m)),
                       "scores"),
    "scores NaN": (lambda m: (token("model", STR, "llama")(m), token("scores", ARR, (F32, [NAN] * 40))(m)),
                   "scores"),
    "a character map of noise": (lambda m: (token("model", STR, "t5")(m),
                                            token("scores", ARR, (F32, [0.0] * 40))(m),
                                            token("precompiled_charsmap", ARR, (0, [255] * 64))(m)), ""),
    "a flag in a string": (token("add_bos_token", STR, "yes"), "add_bos_token"),
    "a template in a number": (lambda m: m.key("tokenizer.chat_template", U32, 7), "chat_template"),
}


@pytest.mark.parametrize("name", VOCABULARY)
def test_gguf_vocabulary(tmp_path, name):
    change, fragment = VOCABULARY[name]
    model = Gguf()
    change(model)
    path = tmp_path / "m.gguf"
    path.write_bytes(model.pack())
    assert fragment in run(path)
    assert fragment in refused(path, "tokenize", "-m", path, stdin=b"abc")
    refused(path, "embed", "-m", path, stdin=b"abc\n")


# ---- the file itself ----

def test_cut_at_every_4_kib(tmp_path):
    whole = Gguf().pack()
    assert len(whole) > 24 * 1024
    path = tmp_path / "m.gguf"
    for cut in [*range(0, len(whole), 4096), *range(7, 2000, 331), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        run(path)
        refused(path, "inspect", path)
        refused(path, "tokenize", "-m", path)
    folder = Folder().write(tmp_path / "folder")
    whole = (folder / "model.safetensors").read_bytes()
    for cut in [*range(0, len(whole), 4096), 7, 9, len(whole) - 1]:
        (folder / "model.safetensors").write_bytes(whole[:cut])
        run(folder)


@pytest.mark.parametrize("command", ["run", "tokenize", "embed", "inspect", "template"])
def test_not_a_file(tmp_path, command):
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "noise.gguf").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "text\x1b[2J\n.gguf").write_text("hello")
    (tmp_path / "folder.gguf").mkdir()
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    messages = tmp_path / "messages.json"
    messages.write_text("[]")
    tail = {"run": ["-p", "a"], "template": ["--messages", messages]}.get(command, [])
    for name in ["empty.gguf", "noise.gguf", "folder.gguf", "loop.gguf", "pipe.gguf", "none.gguf"]:
        path = tmp_path / name
        refused(path, command, *(["-m"] if command != "inspect" else []), path, *tail)
    for name in ["/dev/null", "/dev/zero", "/proc/self/mem", "/"]:
        refused(name, command, *(["-m"] if command != "inspect" else []), name, *tail)
    path = tmp_path / "text\x1b[2J\n.gguf"
    line = refused("text\\x1b[2J\\x0a.gguf", command, *(["-m"] if command != "inspect" else []), path, *tail)
    assert "\x1b" not in line


def test_the_file_shrinks_while_it_is_open(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(Gguf().pack())
    with subprocess.Popen([BIN, "embed", "-m", path, "-t", "1"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.stdin.write(b"abc\n")
        program.stdin.flush()
        assert len(json.loads(program.stdout.readline())) == 32
        os.truncate(path, 0)
        program.stdin.write(b"abc\n")
        program.stdin.close()
        line = program.stderr.read().decode()
        assert program.wait(timeout=60) == 3
        assert line.count("\n") == 1 and "m.gguf" in line and "cut short" in line


def test_split_sets(tmp_path):
    whole = Gguf()
    names = list(whole.tensors)
    parts = [Gguf(), Gguf()]
    for i, part in enumerate(parts):
        part.keys.update({"split.no": (2, i), "split.count": (2, 2),
                          "split.tensors.count": (I32, len(names))})
        part.tensors = {n: whole.tensors[n] for n in (names[:5] if i == 0 else names[5:])}
    first, second = tmp_path / "m-00001-of-00002.gguf", tmp_path / "m-00002-of-00002.gguf"
    first.write_bytes(parts[0].pack())
    second.write_bytes(parts[1].pack())
    works(first)
    works(tmp_path)
    whole_file = tmp_path / "whole.gguf"
    whole_file.write_bytes(whole.pack())
    args = ("-p", "abc", "-n", "8", "--temp", "0", "-t", "1")
    assert ganglion("run", "-m", first, *args).stdout == ganglion("run", "-m", whole_file, *args).stdout
    for change in [{"split.no": (2, 0)}, {"split.no": (2, 7)}, {"split.count": (2, 3)},
                   {"split.tensors.count": (I32, 3)}, {"split.no": (STR, "1")}]:
        kept = dict(parts[1].keys)
        parts[1].keys.update(change)
        second.write_bytes(parts[1].pack())
        run(first)
        parts[1].keys = kept
    second.write_bytes(parts[0].pack())
    run(first)
    second.unlink()
    assert "00002-of-00002" in run(first)


# ---- Hugging Face folders ----

def config(**change):
    return lambda f: f.config.update(change)


def without(key):
    return lambda f: f.config.pop(key)


def file(name, data):
    return lambda f: f.files.update({name: data})


def head(change):
    def apply(f):
        h = f.header()
        change(h)
        f.files["model.safetensors"] = f.weights(h)
    return apply


def raw_head(data, length=None):
    packed = struct.pack("<Q", len(data) if length is None else length) + data
    return file("model.safetensors", packed + b"\0" * 64)


def entry(h):
    return h["model.norm.weight"]


FOLDER = {
    "config not JSON": (file("config.json", b"{,}"), "config.json"),
    "config empty": (file("config.json", b""), "config.json"),
    "config an array": (file("config.json", b"[]"), "config.json"),
    "config with a NUL": (file("config.json", b'{"a": "\0"}'), "config.json"),
    "config not UTF-8": (file("config.json", b'{"a": "\xff"}'), "config.json"),
    "config deep": (file("config.json", b'{"a":' + b"[" * 100000), "config.json"),
    "config with NaN": (file("config.json", b'{"rms_norm_eps": NaN}'), "config.json"),
    "config with a key twice": (file("config.json", b'{"a": 1, "a": 2}'), "config.json"),
    "no model type": (without("model_type"), "architecture"),
    "unknown model type": (config(model_type="wobble"), "llama, "),
    "model type a number": (config(model_type=5), "architecture"),
    "no heads": (config(num_attention_heads=0), "num_attention_heads"),
    "2^31 heads": (config(num_attention_heads=2**31), "num_attention_heads"),
    "2^63-1 heads": (config(num_attention_heads=2**63 - 1), "num_attention_heads"),
    "negative heads": (config(num_attention_heads=-4), "num_attention_heads"),
    "half a head": (config(num_attention_heads=4.5), "num_attention_heads"),
    "heads in a string": (config(num_attention_heads="4"), "num_attention_heads"),
    "heads in an array": (config(num_attention_heads=[4]), "num_attention_heads"),
    "heads missing": (without("num_attention_heads"), "num_attention_heads"),
    "heads not a multiple": (config(num_attention_heads=3, head_dim=8), ""),
    "hidden size that disagrees": (config(hidden_size=64), "embed_tokens"),
    "vocabulary that disagrees": (config(vocab_size=41), "embed_tokens"),
    "vocabulary of 0": (config(vocab_size=0), "vocab_size"),
    "vocabulary of 2^40": (config(vocab_size=2**40), "vocab_size"),
    "a layer too many": (config(num_hidden_layers=2), "layers.1."),
    "10^9 layers": (config(num_hidden_layers=10**9), "num_hidden_layers"),
    "context of 0": (config(max_position_embeddings=0), "max_position_embeddings"),
    "epsilon negative": (config(rms_norm_eps=-1), "epsilon"),
    "rope base 0": (config(rope_theta=0), "base"),
    "rope base 1e300": (config(rope_theta=1e300), "rope_theta"),
    "rope scaling unknown": (config(rope_scaling={"rope_type": "magic\n"}), "magic\\x0a"),
    "rope scaling a number": (config(rope_scaling=5), "rope_scaling"),
    "rope factor 0": (config(rope_scaling={"rope_type": "linear", "factor": 0}), "factor"),
    "rope factor in a string": (config(rope_scaling={"rope_type": "linear", "factor": "2"}), "factor"),
    "rope frequencies crossed": (config(rope_scaling={"rope_type": "llama3", "factor": 8,
                                                      "low_freq_factor": 4, "high_freq_factor": 1}),
                                 "freq_factor"),
    "rope factors too few": (config(rope_scaling={"rope_type": "longrope", "short_factor": [1.0],
                                                  "long_factor": [1.0]}), "factors"),
    "rope factors of strings": (config(rope_scaling={"rope_type": "longrope", "short_factor": ["x"] * 4,
                                                     "long_factor": [1.0] * 4}), "factor"),
    "activation unknown": (config(hidden_act="relu6"), "relu6"),
    "EOS beyond the vocabulary": (config(eos_token_id=10**9), "eos_token_id"),
    "EOS in a string": (config(eos_token_id="x"), "eos_token_id"),
    "EOS of strings": (config(eos_token_id=["x"]), "eos_token_id"),
    "a tensor missing": (lambda f: f.tensors.pop("model.norm.weight"), "model.norm.weight"),
    "no head where it is not tied": (lambda f: f.tensors.pop("lm_head.weight"), "lm_head.weight"),
    "a tensor that nothing reads": (lambda f: f.tensors.update({"model.layers.0.self_attn.sinks":
                                                                [[1], b"\0" * 4]}), "sinks"),
    "shape swapped": (lambda f: f.tensors["lm_head.weight"][0].reverse(), "lm_head.weight"),
    "NaN in a weight": (lambda f: f.tensors["model.norm.weight"].__setitem__(
        1, struct.pack("<f", NAN) * 32), "model.norm.weight"),
    "weights empty": (file("model.safetensors", b""), "model.safetensors"),
    "no weights": (file("model.safetensors", None), ""),
    "header of 0": (raw_head(b""), "model.safetensors"),
    "header past the end": (raw_head(b"{}", 10**6), "model.safetensors"),
    "header of 2^63": (raw_head(b"{}", 2**63), "model.safetensors"),
    "header of 2^64-1": (raw_head(b"{}", 2**64 - 1), "model.safetensors"),
    "header not JSON": (raw_head(b"{nonsense"), "model.safetensors"),
    "header an array": (raw_head(b"[]"), "model.safetensors"),
    "header deep": (raw_head(b'{"a":' + b"[" * 50000), "model.safetensors"),
    "dtype unknown": (head(lambda h: entry(h).update(dtype="F31")), "F31"),
    "dtype not computed": (head(lambda h: entry(h).update(dtype="I32")), "I32"),
    "dtype of another size": (head(lambda h: entry(h).update(dtype="F64")), "model.norm.weight"),
    "shape negative": (head(lambda h: entry(h).update(shape=[-32])), "model.norm.weight"),
    "shape that wraps": (head(lambda h: entry(h).update(shape=[2**62, 2**62])), "model.norm.weight"),
    "offsets reversed": (head(lambda h: entry(h)["data_offsets"].reverse()), "model.norm.weight"),
    "offsets past the end": (head(lambda h: entry(h).update(data_offsets=[2**40, 2**40 + 128])),
                             "model.norm.weight"),
    "offsets that overlap": (head(lambda h: entry(h).update(data_offsets=[0, 128])), "model.safetensors"),
    "offsets of 2^64": (head(lambda h: entry(h).update(data_offsets=[0, 2**64])), "model.safetensors"),
    "index names another folder": (lambda f: f.files.update({
        "model.safetensors": None,
        "model.safetensors.index.json": {"weight_map": {"a": "../x.safetensors"}}}), "index.json"),
    "index names a missing shard": (lambda f: f.files.update({
        "model.safetensors": None,
        "model.safetensors.index.json": {"weight_map": {"a": "x.safetensors"}}}), "x.safetensors"),
    "index without a map": (lambda f: f.files.update({
        "model.safetensors": None, "model.safetensors.index.json": {}}), "index.json"),
}


@pytest.mark.parametrize("name", FOLDER)
def test_folder(tmp_path, name):
    change, fragment = FOLDER[name]
    folder = Folder()
    change(folder)
    path = folder.write(tmp_path / "model")
    assert fragment in run(path)
    assert ganglion("inspect", path).returncode in (0, 3)


def model(**change):
    return lambda t: t["model"].update(change)


def vocab(**change):
    return lambda t: t["model"]["vocab"].update(change)


def part(key, v):
    return lambda t: t.update({key: v})


def nested(kind, inner, depth):
    """Written by hand: Python's writer bounds the depth that it can write."""
    def change(f):
        v = '{"type": "Sequence", "%s": [' % inner * depth + "]}" * depth
        f.files["tokenizer.json"] = json.dumps({**f.tokenizer, kind: "HERE"}).replace('"HERE"', v).encode()
    return change


def regex(pattern):
    return part("pre_tokenizer", {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
                                  "invert": False})


TOKENIZER = {
    "no model": (lambda t: t.pop("model"), "model"),
    "model a number": (part("model", 5), "model"),
    "model of an unknown type": (model(type="RWKV\n"), "RWKV\\x0a"),
    "no vocabulary": (lambda t: t["model"].pop("vocab"), "vocab"),
    "an empty vocabulary": (lambda t: (t["model"].update(vocab={}, merges=[]), t.update(added_tokens=[])), ""),
    "vocabulary an array": (model(vocab=["a", "b"]), "vocab"),
    "an id of 10^9": (vocab(zz=10**9), "1000000000"),
    "an id of 2^63-1": (vocab(zz=2**63 - 1), "zz"),
    "an id negative": (vocab(zz=-1), "-1"),
    "an id in a string": (vocab(zz="7"), "zz"),
    "an id twice": (vocab(zz=7), "7"),
    "more tokens than rows": (vocab(**{f"v{i}": 32 + i for i in range(20)}), "52"),
    "merges unknown": (model(merges=["q9 z9"]), "merge"),
    "merges without a space": (model(merges=["ab"]), "merge"),
    "merges of numbers": (model(merges=[1, 2]), "merge"),
    "merges of three": (model(merges=[["a", "b", "c"]]), "merge"),
    "merges an object": (model(merges={"a": "b"}), "merges"),
    "an added token of 10^9": (part("added_tokens", [{"id": 10**9, "content": "x"}]), "1000000000"),
    "an added token without content": (part("added_tokens", [{"id": 3}]), "added_tokens"),
    "added tokens a string": (part("added_tokens", "x"), "added_tokens"),
    "a normalizer unknown": (part("normalizer", {"type": "Magic"}), "Magic"),
    "a normalizer a string": (part("normalizer", "NFC"), "normalizer"),
    "a pre-tokenizer unknown": (part("pre_tokenizer", {"type": "Magic"}), "Magic"),
    "a regular expression with a hole": (regex("(a"), "regular expression"),
    "a regular expression that looks back without end": (regex("(?<=a*)b"), "regular expression"),
    "a regular expression that calls itself": (regex("(?R)"), ""),
    "a regular expression of 10^5 groups": (regex("(a" * 30000), "regular expression"),
    "a charsmap of noise": (part("normalizer", {"type": "Precompiled", "precompiled_charsmap": "////"}), ""),
    "a decoder unknown": (part("decoder", {"type": "Magic"}), "Magic"),
    "a post-processor unknown": (part("post_processor", {"type": "Magic"}), "Magic"),
}


@pytest.mark.parametrize("name", TOKENIZER)
def test_tokenizer(tmp_path, name):
    change, fragment = TOKENIZER[name]
    folder = Folder()
    change(folder.tokenizer)
    path = folder.write(tmp_path / "model")
    assert fragment in run(path)


@pytest.mark.parametrize("kind,inner", [("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")])
@pytest.mark.parametrize("depth", [600, 50000])
def test_tokenizer_nested(tmp_path, kind, inner, depth):
    folder = Folder()
    nested(kind, inner, depth)(folder)
    run(folder.write(tmp_path / "model"))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe{}", b'{"model": {}, "model": {}}'])
def test_tokenizer_not_json(tmp_path, data):
    folder = Folder()
    folder.tokenizer = data
    path = folder.write(tmp_path / "model")
    assert "tokenizer.json" in run(path)
    assert "tokenizer.json" in refused(path, "tokenize", "-m", path)


def test_a_slow_regular_expression_is_stopped(tmp_path):
    folder = Folder()
    regex("(a+)+$|b")(folder.tokenizer)
    path = folder.write(tmp_path / "model")
    done = ganglion("tokenize", "-m", path, "--ids", stdin=b"a" * 5000 + b"c")
    assert done.returncode in (0, 3) and done.stderr.count(b"\n") <= 1


# ---- templates ----

TEMPLATES = {
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursion of two": "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a long loop": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "a long range": "{{ range(1000000000000) | list | length }}",
    "a long output": "{% for i in range(100000) %}{{ 'a' * 10000 }}{% endfor %}",
    "a long string": "{{ 'a' * 1000000000000 }}",
    "doubling": "{% set ns = namespace(x='ab') %}{% for i in range(80) %}{% set ns.x = ns.x ~ ns.x %}"
                "{% endfor %}{{ ns.x | length }}",
    "doubling a list": "{% set ns = namespace(x=[1]) %}{% for i in range(80) %}{% set ns.x = ns.x + ns.x %}"
                       "{% endfor %}{{ ns.x | length }}",
    "replacing nothing": "{{ ('a' * 100000).replace('', 'b' * 100000) | length }}",
    "joining": "{{ (['a' * 10000] * 100000) | join('b' * 10000) | length }}",
    "a wide format": "{{ '%1000000000d' | format(1) }}",
    "centring": "{{ 'a'.center(1000000000000) | length }}",
    "indenting": "{{ ('a\\n' * 100000) | indent(100000) | length }}",
    "a deep expression": "{{ " + "(" * 50000 + "1" + ")" * 50000 + " }}",
    "a deep list": "{{ " + "[" * 50000 + "]" * 50000 + " }}",
    "deep nots": "{{ " + "not " * 50000 + "1 }}",
    "deep signs": "{{ " + "-" * 50000 + "1 }}",
    "deep ifs": "{% if 1 %}" * 20000 + "{% endif %}" * 20000,
    "no end": "{% if 1 %}",
    "no close": "{{ 1",
    "an unknown filter": "{{ 1 | hack }}",
    "an unknown tag": "{% include 'x' %}",
    "an import": "{% import 'os' as x %}",
    "a division by zero": "{{ 1 // 0 }}",
    "a modulo by zero": "{{ 1 % 0 }}",
    "a power of powers": "{{ 9 ** 9 ** 9 }}",
    "a call of undefined": "{{ nothing() }}",
    "an attribute of undefined": "{{ nothing.a.b }}",
    "a list that holds itself": "{% set x = [] %}{% set _ = x.append(x) %}{{ x | tojson }}",
    "control characters": "{{ 1 | \x1b[2J }}",
    "not UTF-8": b"\xff\xfe{{ 1 }}",
    "a long name": "{{ 1 | " + "f" * 100000 + " }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_template(tmp_path, name):
    source = TEMPLATES[name]
    path = tmp_path / "t.jinja"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    messages = tmp_path / "m.json"
    messages.write_text("[]")
    refused(path, "template", "--template", path, "--messages", messages)
    if isinstance(source, bytes):
        return
    gguf = Gguf()
    gguf.key("tokenizer.chat_template", STR, source)
    model_path = tmp_path / "m.gguf"
    model_path.write_bytes(gguf.pack())
    refused(model_path, "template", "-m", model_path, "--messages", messages)
    run(model_path)


@pytest.mark.parametrize("data", [b"", b"{", b"5", b"{}", b'[{"role": "user"', b"[" * 100000, b"\xff",
                                  b'{"messages": 5}', b'[' + b'"x",' * 10 + b"]x"])
def test_messages(tmp_path, data):
    template = tmp_path / "t.jinja"
    template.write_text("{% for m in messages %}{{ m }}{% endfor %}")
    path = tmp_path / "m.json"
    path.write_bytes(data)
    refused(path, "template", "--template", template, "--messages", path)
