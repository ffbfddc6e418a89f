#!/usr/bin/env python3
"""Recipe of tests/golden/kld/: how far a real quantized model's answers are from the exact ones.

The truth is a float32 forward pass of `transformers` over the weights that the GGUF file holds,
de-quantized by `gguf.quants`. Beside it stands what llama.cpp makes of the same file and the same
ids, so that the tests can compare with it without having it.

    python3 tests/golden/make_kld.py NAME      NAME as in tools/fetch_models

Needs torch, transformers, gguf, numpy and llama-cpp-python. Writes NAME.json and NAME.bin.

Windows: each section of kld_text.txt, its first N_CTX tokens as the model's own tokenizer gives them
with the model's own BOS habit; every window starts at position 0. Row i of a window is the prediction
of token i + 1. All logarithms are natural. The sections are new texts but for one, because what a
model knows by heart is chaotic: in the first chapter of the King James Bible, llama.cpp is 0.025 nats
off on average for Gemma 3 270M (0.005 elsewhere) and 0.6 at worst, and no ratio is stable there.

NAME.bin is one zlib stream of these little-endian arrays, in this order (R = windows * N_CTX rows):
    ids        u32[R]     the tokens
    top_id     u32[R, K]  the K most probable next tokens of the truth, best first
    top_lp     i32[R, K]  their log-probabilities in units of LP_UNIT, each less the one before
    next_lp    f32[R]     the truth's log-probability of the next token (last row of a window: 0)
    next_rank  u32[R]     how many tokens the truth holds more probable than it
    ll_kld     f32[R]     llama.cpp's divergence from the truth over the full vocabulary
    ll_kld_top f32[R]     the same over K + 1 classes: the K tokens, and all others together
    ll_next_lp f32[R]     llama.cpp's log-probability of the next token
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import zlib

# Waiting threads sleep, so that a busy machine is not kept busier.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
N_CTX = 256
K = 64
LP_UNIT = 1e-6
THREADS = 2


def model_path(name):
    tool = HERE.parent.parent / "tools" / "fetch_models"
    return subprocess.run([sys.executable, tool, "--path", name], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Rows:
    """Predictions of one window [N_CTX, vocab]: x in float64 with log-probability x - lse[:, None]."""

    def __init__(self, logits):
        self.x = logits.astype(np.float64)
        self.x -= self.x.max(axis=-1, keepdims=True)
        self.exp = np.exp(self.x)
        total = self.exp.sum(axis=-1)
        self.lse = np.log(total)
        self.exp /= total[:, None]

    def log_prob(self, ids):
        """Log-probabilities of ids [N_CTX, n]."""
        return np.take_along_axis(self.x, ids, -1) - self.lse[:, None]

    def best(self, n):
        """The n most probable tokens, best first; of equals the lower id."""
        some = np.sort(np.argpartition(-self.x, n, axis=-1)[:, :n], -1)
        order = np.argsort(-np.take_along_axis(self.x, some, -1), axis=-1, kind="stable")
        return np.take_along_axis(some, order, -1)


# ---- the truth -----------------------------------------------------------------------------------

def read_gguf(path):
    """Metadata as a dict, and a function that de-quantizes one tensor to float32."""
    import gguf
    from gguf.quants import dequantize
    reader = gguf.GGUFReader(path)
    keys = {name: field.contents() for name, field in reader.fields.items()
            if not name.startswith("tokenizer.ggml.") or name.endswith("_token_id")}
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def tensor(name):
        t = tensors[name]
        shape = [int(n) for n in reversed(t.shape)]
        return dequantize(t.data, t.tensor_type).astype(np.float32).reshape(shape)

    return keys, tensors, tensor


def unpermute(w, n_head):
    """Undo the row order that llama.cpp's converter gives q and k of a llama (pairs side by side)."""
    rows = w.shape[0]
    return w.reshape(n_head, rows // n_head // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def build(path):
    """The transformers model that computes what the file says, in float32."""
    import torch
    import transformers
    keys, names, tensor = read_gguf(path)
    arch = keys["general.architecture"]

    def key(name, default=None):
        return keys.get(f"{arch}.{name}", default)

    heads, kv_heads = key("attention.head_count"), key("attention.head_count_kv")
    hidden = key("embedding_length")
    embedding = tensor("token_embd.weight")
    common = dict(
        vocab_size=embedding.shape[0], hidden_size=hidden,
        intermediate_size=key("feed_forward_length"), num_hidden_layers=key("block_count"),
        num_attention_heads=heads, num_key_value_heads=kv_heads,
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=key("context_length"), tie_word_embeddings="output.weight" not in names,
        attn_implementation="eager")
    theta = key("rope.freq_base", 10000.0)
    norm_shift = 0.0
    if arch == "llama":
        assert key("rope.scaling.type") is None and "rope_freqs.weight" not in names
        config = transformers.LlamaConfig(
            **common, rope_parameters={"rope_type": "default", "rope_theta": theta})
        cls = transformers.LlamaForCausalLM
    elif arch == "qwen2":
        config = transformers.Qwen2Config(
            **common, rope_parameters={"rope_type": "default", "rope_theta": theta},
            use_sliding_window=False)
        cls = transformers.Qwen2ForCausalLM
    elif arch == "gemma3":
        # Every sixth layer attends to all positions; a window of 512 or more never shows here.
        assert key("attention.sliding_window") >= N_CTX
        kinds = ["full_attention" if i % 6 == 5 else "sliding_attention"
                 for i in range(common["num_hidden_layers"])]
        head_dim = key("attention.key_length")
        config = transformers.Gemma3TextConfig(
            **common, head_dim=head_dim, query_pre_attn_scalar=head_dim,
            sliding_window=key("attention.sliding_window"), layer_types=kinds,
            rope_parameters={
                "full_attention": {"rope_type": "default", "rope_theta": theta},
                "sliding_attention": {"rope_type": "default",
                                      "rope_theta": key("rope.freq_base_swa", 10000.0)}})
        cls = transformers.Gemma3ForCausalLM
        norm_shift = -1.0  # the file holds 1 + w
    else:
        sys.exit(f"architecture {arch} has no recipe")
    attention = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
                 "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
                 "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
                 "attn_norm": "input_layernorm", "ffn_gate": "mlp.gate_proj",
                 "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    if arch == "gemma3":
        attention |= {"post_attention_norm": "post_attention_layernorm",
                      "ffn_norm": "pre_feedforward_layernorm",
                      "post_ffw_norm": "post_feedforward_layernorm"}
    else:
        attention["ffn_norm"] = "post_attention_layernorm"
    state = {}
    for name in names:
        w = tensor(name)
        stem, kind = name.rsplit(".", 1)
        if stem.endswith("norm"):
            w = w + np.float32(norm_shift)
        if stem == "token_embd":
            target = "model.embed_tokens"
        elif stem == "output":
            target = "lm_head"
        elif stem == "output_norm":
            target = "model.norm"
        else:
            _, layer, part = stem.split(".")
            target = f"model.layers.{layer}.{attention[part]}"
            if arch == "llama" and part in ("attn_q", "attn_k"):
                w = unpermute(w, heads if part == "attn_q" else kv_heads)
        state[f"{target}.{kind}"] = torch.from_numpy(np.ascontiguousarray(w))
    with torch.device("meta"):
        model = cls(config)
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    model.tie_weights()
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    rebuild_buffers(model, config)
    return model.eval().float()


def rebuild_buffers(model, config):
    """Buffers are not in the file: make those of the rotary embedding and the embedding scale."""
    import torch
    rotary = type(model.model.rotary_emb)
    model.model.rotary_emb = rotary(config)
    embed = model.model.embed_tokens
    if hasattr(embed, "embed_scale"):
        embed.embed_scale = torch.tensor(config.hidden_size ** 0.5)
    left = [name for name, buffer in model.named_buffers() if buffer.is_meta]
    left += [name for name, parameter in model.named_parameters() if parameter.is_meta]
    assert not left, left


def truth(path, windows):
    import torch
    torch.set_num_threads(THREADS)
    model = build(path)
    for ids in windows:
        with torch.inference_mode():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
        yield Rows(logits)


# ---- llama.cpp -----------------------------------------------------------------------------------

class LlamaCpp:
    def __init__(self, path, flash):
        import llama_cpp
        self.flags = dict(n_ctx=N_CTX, n_batch=N_CTX, n_ubatch=N_CTX, flash_attn=flash,
                          n_threads=THREADS)
        self.llm = llama_cpp.Llama(model_path=path, logits_all=True, verbose=False,
                                   n_threads_batch=THREADS, **self.flags)

    def rows(self, ids):
        self.llm.reset()
        self.llm.eval(ids)
        return Rows(self.llm.scores[:len(ids)])


def make_windows(path):
    import llama_cpp
    llm = llama_cpp.Llama(model_path=path, vocab_only=True, verbose=False)
    windows = []
    for text in (HERE / "kld_text.txt").read_text(encoding="utf-8").split("=====\n"):
        ids = llm.tokenize(text.encode(), add_bos=True, special=False)
        assert len(ids) >= N_CTX, f"{len(ids)} tokens: {text[:40]!r}"
        windows.append(ids[:N_CTX])
    return windows


# ---- comparing -----------------------------------------------------------------------------------

def kld_full(p, q):
    own = np.einsum("ij,ij->i", p.exp, p.x) - p.lse
    return own - (np.einsum("ij,ij->i", p.exp, q.x) - q.lse)


def kld_top(p, q, top):
    """Over K + 1 classes: the tokens of `top`, and all others as one."""
    pt, qt = p.log_prob(top), q.log_prob(top)
    p_rest = np.maximum(1 - np.exp(pt).sum(-1), 1e-12)
    q_rest = np.maximum(1 - np.exp(qt).sum(-1), 1e-12)
    return (np.exp(pt) * (pt - qt)).sum(-1) + p_rest * np.log(p_rest / q_rest)


def summary(kld, same, next_p, next_q):
    """The figures of llama.cpp's perplexity tool, over all rows and without the first 16."""
    rest = kld.reshape(-1, N_CTX)[:, 16:]
    n = np.count_nonzero(next_p)
    return {"mean_kld": float(kld.mean()), "p999_kld": float(np.quantile(kld, 0.999)),
            "max_kld": float(kld.max()), "same_top": float(same.mean()),
            "ppl": math.exp(-next_q.sum() / n), "ppl_f32": math.exp(-next_p.sum() / n),
            "first_of_window": [float(x) for x in kld.reshape(-1, N_CTX)[:, 0]],
            "from_16": {"mean_kld": float(rest.mean()), "max_kld": float(rest.max())}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    options = parser.parse_args()
    path = model_path(options.name)
    windows = make_windows(path)
    n = len(windows) * N_CTX
    engines = {"flash": LlamaCpp(path, True), "plain": LlamaCpp(path, False)}
    data = {"top_id": [], "top_lp": [], "next_lp": [], "next_rank": []}
    seen = {name: {"kld": [], "top": {k: [] for k in (16, 32, K, 128, 256)}, "next": [], "same": []}
            for name in engines}
    start = time.time()
    for number, (ids, p) in enumerate(zip(windows, truth(path, windows))):
        order = p.best(256)
        top = order[:, :K]
        after = np.array(ids[1:] + [0])[:, None]
        next_p = p.log_prob(after)[:, 0]
        rank = (p.x > np.take_along_axis(p.x, after, -1)).sum(-1)
        next_p[-1] = rank[-1] = 0
        steps = np.rint(p.log_prob(top) / LP_UNIT).astype(np.int64)
        data["top_id"].append(top)
        data["top_lp"].append(np.diff(steps, axis=-1, prepend=0))
        data["next_lp"].append(next_p)
        data["next_rank"].append(rank)
        for name, engine in engines.items():
            q, s = engine.rows(ids), seen[name]
            s["kld"].append(kld_full(p, q))
            for k, values in s["top"].items():
                values.append(kld_top(p, q, order[:, :k]))
            s["same"].append(order[:, 0] == q.x.argmax(-1))
            next_q = q.log_prob(after)[:, 0]
            next_q[-1] = 0
            s["next"].append(next_q)
            print(f"{options.name}: window {number}, {time.time() - start:.0f} s, {name} "
                  f"mean {s['kld'][-1].mean():.6f} max {s['kld'][-1].max():.4f} at "
                  f"{s['kld'][-1].argmax()}", file=sys.stderr, flush=True)
    data = {key: np.concatenate(value) for key, value in data.items()}
    result = {}
    for name, s in seen.items():
        kld = np.concatenate(s["kld"])
        result[name] = summary(kld, np.concatenate(s["same"]), data["next_lp"],
                               np.concatenate(s["next"]))
        result[name]["kld_over_classes"] = {
            str(k): float(np.concatenate(v).mean()) for k, v in s["top"].items()}
        result[name]["flags"] = engines[name].flags | {"type_k": "f16", "type_v": "f16"}
    better = min(result, key=lambda name: result[name]["mean_kld"])
    s = seen[better]
    write(options.name, windows, data, s, result, better, n)


def write(name, windows, data, s, result, better, n):
    import gguf
    import llama_cpp
    import torch
    import transformers
    arrays = [(np.array(windows), "<u4"), (data["top_id"], "<u4"), (data["top_lp"], "<i4"),
              (data["next_lp"], "<f4"), (data["next_rank"], "<u4"),
              (np.concatenate(s["kld"]), "<f4"), (np.concatenate(s["top"][K]), "<f4"),
              (np.concatenate(s["next"]), "<f4")]
    blob = zlib.compress(b"".join(np.ascontiguousarray(a.astype(t)).tobytes() for a, t in arrays), 9)
    (HERE / "kld" / f"{name}.bin").write_bytes(blob)
    system = llama_cpp.llama_print_system_info().decode().strip(" |")
    info = {"model": name, "rows": n, "n_ctx": N_CTX, "k": K, "lp_unit": LP_UNIT,
            "ppl_f32": result[better]["ppl_f32"],
            "llamacpp": {"version": llama_cpp.__version__, "system": system, "better": better,
                         **result},
            "made_with": {"torch": torch.__version__, "transformers": transformers.__version__,
                          "numpy": np.__version__, "llama-cpp-python": llama_cpp.__version__}}
    (HERE / "kld" / f"{name}.json").write_text(json.dumps(info, indent=1) + "\n")
    print(json.dumps(info["llamacpp"], indent=1), len(blob), file=sys.stderr)


if __name__ == "__main__":
    main()
