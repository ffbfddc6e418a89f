#!/usr/bin/env python3
"""Recipe of tests/golden/tiny/: small random checkpoints and what `transformers` computes from them.

Each folder holds config.json and model.safetensors (F32) as a hub checkpoint has them, or model.gguf
(F32) as llama.cpp's converter would write it, and the truth:
    golden.json   ids, the number of rows and columns, what is worth knowing
    golden.f32    little-endian float32 [rows, vocab]: natural log-probabilities of the next token

Folders that differ only in config.json share their weights by symbolic links. `bert` has embeddings
instead, and a small tokenizer. `minilm.json` and `minilm.f32` are sentence embeddings of the real
all-MiniLM-L6-v2 (tools/fetch_models).

    python3 tests/golden/make_tiny.py          rewrites all of them

Needs torch, transformers, tokenizers, safetensors, gguf and numpy. The forward pass is float32 with
eager attention; golden.json notes how far that is from float64 (float32_noise), and how far keys and
values rounded to float16 alone take it (float16_cache), both as the largest |difference|.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
TINY = HERE / "tiny"
N_IDS = 96
VOCAB = 96
BERT_VOCAB = 128

BASE = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
            bos_token_id=1, eos_token_id=2, pad_token_id=None)


def fixed_ids(n=N_IDS):
    """A sequence with repeats: later positions have something to look back at."""
    rng = np.random.default_rng(20)
    ids = rng.integers(3, VOCAB, n)
    ids[0] = 1
    ids[n // 2:n // 2 + 16] = ids[8:24]
    return [int(i) for i in ids]


def randomize(model, seed, norm_base):
    """Weights large enough that every block matters, small enough that a float16 cache of keys and
    values stays below the tests' tolerance. Norms, biases and routers differ from 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    tied = getattr(model.config, "tie_word_embeddings", False)

    def normal(shape):
        return torch.randn(shape, generator=generator)

    def scale(name, fan_in):
        if "embed" in name:
            return 0.6 if not tied else 0.07 if norm_base == 0 else 0.06
        if "lm_head" in name:
            return 0.12
        if "q_proj" in name or "k_proj" in name or "qkv_proj" in name:
            return 1.0 / fan_in ** 0.5
        return 0.7 / fan_in ** 0.5

    def norm_level(name):
        if "q_norm" in name or "k_norm" in name:
            return 0.7
        return 0.1 if norm_base == 0 and "post_" in name else 1.0

    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name.lower() and name.endswith("weight"):
                p.copy_(norm_level(name) - 1.0 + norm_base + 0.12 * normal(p.shape))
            elif name.endswith("bias"):
                p.copy_(0.2 * normal(p.shape))
            else:
                p.copy_(scale(name, p.shape[-1]) * normal(p.shape))


def eager_f16_cache(module, query, key, value, *arguments, **more):
    """Eager attention over keys and values rounded as a float16 cache holds them."""
    from transformers.models.llama.modeling_llama import eager_attention_forward
    return eager_attention_forward(module, query, key.half().to(key.dtype),
                                   value.half().to(value.dtype), *arguments, **more)


transformers.AttentionInterface.register("eager_f16_cache", eager_f16_cache)
transformers.AttentionMaskInterface.register("eager_f16_cache", transformers.masking_utils.eager_mask)


def log_probs(model, ids, dtype, attention="eager"):
    model = model.to(dtype)
    model.set_attn_implementation(attention)
    with torch.inference_mode():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    return torch.log_softmax(logits.double(), -1).numpy()


def classic(config):
    """config.json the way most checkpoints on the hub have it: rope_theta and rope_scaling."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters"))
    if "full_attention" in rope:
        config["rope_theta"] = rope["full_attention"]["rope_theta"]
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        scaled = {k: v for k, v in rope["full_attention"].items() if k != "rope_theta"}
    else:
        config["rope_theta"] = rope.pop("rope_theta")
        rope.pop("partial_rotary_factor", None)
        scaled = rope
    if scaled.get("rope_type", "default") != "default":
        config["rope_scaling"] = scaled
    return config


def write_config(folder, model, style):
    config = json.loads(model.config.to_json_string(use_diff=False))
    keep = {"dtype", "torch_dtype", "_name_or_path", "transformers_version", "id2label", "label2id",
            "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward",
            "is_encoder_decoder", "problem_type"}
    config = {k: v for k, v in config.items() if k not in keep}
    config["architectures"] = [type(model).__name__]
    config["torch_dtype"] = "float32"
    if style == "classic":
        config = classic(config)
        if config["model_type"] == "qwen3_moe":
            config["num_experts"] = config.pop("num_local_experts")
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def hub_state(model, folder):
    """Tensors under the names that a checkpoint on the hub has (save_pretrained maps them back)."""
    scratch = folder / "scratch"
    model.save_pretrained(scratch)
    state = load_file(scratch / "model.safetensors")
    shutil.rmtree(scratch)
    return state


def write_golden(folder, rows, ids, **notes):
    rows.astype("<f4").tofile(folder / "golden.f32")
    info = {"ids": ids, "rows": rows.shape[0], "columns": rows.shape[1], **notes,
            "made_with": {"torch": torch.__version__.split("+")[0],
                          "transformers": transformers.__version__}}
    (folder / "golden.json").write_text(json.dumps(info) + "\n")


def fresh(name):
    folder = TINY / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make(name, cls, config, seed=1, norm_base=1.0, weights_of=None, style="classic", shards=1):
    """One folder; returns the model (float32) and its rows."""
    folder = fresh(name)
    config._attn_implementation = config._experts_implementation = "eager"
    model = cls(config).eval()
    if weights_of is not None:
        model.load_state_dict(weights_of.state_dict())
    else:
        randomize(model, seed, norm_base)
    ids = fixed_ids()
    exact = log_probs(model, ids, torch.float64)
    cached = log_probs(model, ids, torch.float64, "eager_f16_cache")
    rows = log_probs(model, ids, torch.float32)
    state = hub_state(model, folder)
    donor = getattr(weights_of, "tiny_name", None)
    if shards > 1:
        write_shards(folder, state, shards)
    elif donor:
        os.symlink(f"../{donor}/model.safetensors", folder / "model.safetensors")
    else:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    write_config(folder, model, style)
    noise = float(np.abs(exact - rows).max())
    cache = float(np.abs(exact - cached).max())
    write_golden(folder, rows, ids, float32_noise=noise, float16_cache=cache)
    model.tiny_name = name
    entropy = -(np.exp(rows) * rows).sum(-1)
    print(f"{name:18} noise {noise:.1e}  f16 cache {cache:.1e}  entropy {entropy.min():.2f}..{entropy.max():.2f}  "
          f"lowest {rows.min():.1f}", file=sys.stderr)
    return model, rows


def write_shards(folder, state, shards):
    names = sorted(state)
    weight_map, total = {}, 0
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: state[name] for name in names[i::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= {name: file for name in part}
        total += sum(t.numel() * t.element_size() for t in part.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def differs(name, a, b, least=0.02):
    """The variant must be visible in the numbers, or the test could not fail."""
    distance = float(np.abs(a - b).max())
    assert distance > least, f"{name}: only {distance} away from the plain model"


def variant(cls, config, model):
    """Rows of the same weights under another configuration; nothing is written."""
    config._attn_implementation = "eager"
    other = cls(config).eval()
    other.load_state_dict(model.state_dict())
    return log_probs(other, fixed_ids(), torch.float32)


# ---- decoders ------------------------------------------------------------------------------------

def rope(theta=10000.0, kind="default", **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def llamas():
    def config(parameters, **more):
        return transformers.LlamaConfig(**BASE | more, rms_norm_eps=1e-5, rope_parameters=parameters,
                                        tie_word_embeddings=False)

    cls = transformers.LlamaForCausalLM
    plain, rows = make("llama", cls, config(rope()))
    for name, parameters, style in [
            ("llama_linear", rope(kind="linear", factor=4.0), "classic"),
            ("llama_llama3", rope(theta=500.0, kind="llama3", factor=8.0, low_freq_factor=1.0,
                                  high_freq_factor=4.0, original_max_position_embeddings=64), "classic"),
            ("llama_yarn", rope(theta=500.0, kind="yarn", factor=4.0,
                                original_max_position_embeddings=64), "new")]:
        _, other = make(name, cls, config(parameters), weights_of=plain, style=style)
        differs(name, rows, other)
    _, same = make("llama_sharded", cls, config(rope()), weights_of=plain, shards=2)
    assert (same == rows).all()
    mistral = transformers.MistralConfig(**BASE, rms_norm_eps=1e-5, rope_parameters=rope(),
                                         tie_word_embeddings=False, sliding_window=24)
    _, other = make("mistral", transformers.MistralForCausalLM, mistral, weights_of=plain)
    differs("mistral", rows, other)
    assert (np.abs(rows - other)[:24] < 1e-5).all() and np.abs(rows - other)[24:].max() > 0.02
    return plain


def qwens():
    config = transformers.Qwen2Config(**BASE, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                      rope_parameters=rope(theta=1000000.0))
    make("qwen2", transformers.Qwen2ForCausalLM, config, seed=2)
    config = transformers.Qwen3Config(**BASE, head_dim=16, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                      rope_parameters=rope(theta=1000000.0))
    make("qwen3", transformers.Qwen3ForCausalLM, config, seed=3, style="new")
    config = transformers.Qwen3MoeConfig(
        **BASE | dict(intermediate_size=96), head_dim=8, rms_norm_eps=1e-6,
        tie_word_embeddings=False, rope_parameters=rope(theta=1000000.0), num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=1)
    moe, rows = make("qwen3moe", transformers.Qwen3MoeForCausalLM, config, seed=4)
    config = transformers.Qwen3MoeConfig(**config.to_dict() | dict(norm_topk_prob=False))
    _, other = make("qwen3moe_raw", transformers.Qwen3MoeForCausalLM, config, weights_of=moe,
                    style="new")
    differs("qwen3moe_raw", rows, other)
    return moe


def gemma():
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    base = BASE | dict(num_hidden_layers=3, num_key_value_heads=1)
    config = transformers.Gemma3TextConfig(
        **base, head_dim=8, query_pre_attn_scalar=12, sliding_window=20, layer_types=kinds,
        rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters={"full_attention": rope(theta=1000000.0, kind="linear", factor=8.0),
                         "sliding_attention": rope()})
    cls = transformers.Gemma3ForCausalLM
    model, rows = make("gemma3", cls, config, seed=5, norm_base=0.0, style="new")
    for change in (dict(sliding_window=21), dict(query_pre_attn_scalar=8),
                   dict(layer_types=kinds[1:] + kinds[:1]),
                   dict(rope_parameters={"full_attention": rope(theta=1000000.0),
                                         "sliding_attention": rope()})):
        changed = transformers.Gemma3TextConfig(**config.to_dict() | change)
        differs(f"gemma3 with {change}", rows, variant(cls, changed, model), 0.005)
    # llama.cpp's keys can't say query_pre_attn_scalar and put a full layer last of every six: the GGUF
    # has its own numbers.
    config = transformers.Gemma3TextConfig(
        **BASE | dict(num_hidden_layers=6, num_key_value_heads=1, intermediate_size=32), head_dim=8,
        query_pre_attn_scalar=8, sliding_window=20, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters={"full_attention": rope(theta=1000000.0), "sliding_attention": rope()})
    plain, _ = make("gemma3_six", cls, config, seed=6, norm_base=0.0)
    return plain


def phi():
    def config(parameters, **more):
        return transformers.Phi3Config(**BASE | more, rms_norm_eps=1e-5, tie_word_embeddings=False,
                                       rope_parameters=parameters)

    cls = transformers.Phi3ForCausalLM
    plain, rows = make("phi3", cls, config(rope()), seed=7)
    factors = dict(short_factor=[1.0, 1.1, 1.4, 2.0], long_factor=[1.2, 2.0, 4.0, 8.0])
    # The sequence lies within the original context (the short factors count for all of it), or not.
    for name, original in (("phi3_longrope", 128), ("phi3_longrope_long", 64)):
        parameters = rope(kind="longrope", **factors, original_max_position_embeddings=original)
        _, other = make(name, cls, config(parameters, max_position_embeddings=1024,
                                          original_max_position_embeddings=original), weights_of=plain)
        differs(name, rows, other)
        rows = other


def mixtral():
    config = transformers.MixtralConfig(
        **BASE | dict(intermediate_size=32), rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters=rope(theta=1000000.0), num_local_experts=4, num_experts_per_tok=2,
        sliding_window=None)
    make("mixtral", transformers.MixtralForCausalLM, config, seed=8)


# ---- the same weights as llama.cpp's converter writes them -----------------------------------------

def gguf_tokenizer(writer):
    """A vocabulary of the right size: the loader wants one, no test asks what it says."""
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab"] + [f"t{i}" for i in range(6, VOCAB)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([2, 3, 3] + [1] * (VOCAB - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def permute(w, n_head):
    """Rows of a head in the order of rotation pairs side by side."""
    rows = w.shape[0]
    return w.reshape(n_head, 2, rows // n_head // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp"}
GEMMA_NAMES = NAMES | {"post_attention_layernorm": "post_attention_norm",
                       "pre_feedforward_layernorm": "ffn_norm",
                       "post_feedforward_layernorm": "post_ffw_norm"}


def gguf_tensors(arch, model, state):
    """(name, array) in llama.cpp's naming, its conventions applied."""
    config = model.config
    names = GEMMA_NAMES if arch == "gemma3" else NAMES
    experts = {}
    for name, tensor in state.items():
        w = tensor.numpy()
        if arch == "gemma3" and "norm" in name:
            w = w + np.float32(1)
        if not name.startswith("model.layers."):
            yield {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
                   "model.norm.weight": "output_norm.weight"}[name], w
            continue
        _, _, layer, rest = name.split(".", 3)
        rest, kind = rest.rsplit(".", 1)
        if ".experts." in rest:
            _, _, expert, part = rest.split(".")
            experts.setdefault((int(layer), part), {})[int(expert)] = w
            continue
        if arch == "llama" and rest in ("self_attn.q_proj", "self_attn.k_proj"):
            w = permute(w, config.num_attention_heads if "q_proj" in rest
                        else config.num_key_value_heads)
        yield f"blk.{layer}.{names[rest]}.{kind}", w
    for (layer, part), by_expert in experts.items():
        stacked = np.stack([by_expert[i] for i in range(len(by_expert))])
        yield f"blk.{layer}.ffn_{part.removesuffix('_proj')}_exps.weight", stacked


def to_gguf(name, arch, model, keep=True):
    """Write one folder with model.gguf; keep=False removes the checkpoint that it is made from."""
    import gguf
    source = TINY / model.tiny_name
    folder = fresh(name)
    config = model.config
    writer = gguf.GGUFWriter(folder / "model.gguf", arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_file_type(0)
    if arch == "llama":
        writer.add_rope_dimension_count(head_dim)
    if arch == "gemma3":
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        writer.add_sliding_window(config.sliding_window)
    else:
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if arch == "qwen3moe":
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if arch == "llama":
        writer.add_vocab_size(config.vocab_size)
    gguf_tokenizer(writer)
    for tensor, w in gguf_tensors(arch, model, load_file(source / "model.safetensors")):
        writer.add_tensor(tensor, np.ascontiguousarray(w))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if keep:
        os.symlink(f"../{model.tiny_name}/golden.f32", folder / "golden.f32")
        os.symlink(f"../{model.tiny_name}/golden.json", folder / "golden.json")
    else:
        for file in ("golden.f32", "golden.json"):
            shutil.move(source / file, folder / file)
        shutil.rmtree(source)
    check_with_llamacpp(folder)


def check_with_llamacpp(folder):
    """llama.cpp must read the file and agree: the conventions are its own."""
    try:
        import llama_cpp
    except ImportError:
        return
    info = json.loads((folder / "golden.json").read_text())
    rows = np.fromfile(folder / "golden.f32", "<f4").reshape(info["rows"], info["columns"])
    llm = llama_cpp.Llama(model_path=str(folder / "model.gguf"), n_ctx=128, logits_all=True,
                          verbose=False, flash_attn=False, type_k=0, type_v=0)
    llm.eval(info["ids"])
    q = np.array(llm.scores[:info["rows"]], dtype=np.float64)
    q -= np.log(np.exp(q - q.max(-1, keepdims=True)).sum(-1, keepdims=True)) + q.max(-1, keepdims=True)
    # Its GELU is a table of float16 values, hence the wide bound.
    distance = np.abs(q - rows).max()
    print(f"{folder.name:18} llama.cpp differs by {distance:.1e}", file=sys.stderr)
    assert distance < 2e-3, distance


# ---- the encoder -----------------------------------------------------------------------------------

TEXTS = ["a small robot", "The cat sat on the mat.", "robots, robots!", "", "zebra", "Ünïcödé résumé",
         "one two three four five six seven eight nine ten", "x", "unknown \u4e16\u754c words",
         "THE   END of\tit"]


def bert_tokenizer(folder):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters),
             *".,!?-'0123456789", "the", "cat", "mat", "robot", "##s", "small", "on", "one", "two",
             "three", "##ree", "se", "##ve", "en", "end", "of", "it", "##nown", "un", "word"]
    vocab = {word: i for i, word in enumerate(dict.fromkeys(words))}
    assert len(vocab) <= BERT_VOCAB
    for i in range(len(vocab), BERT_VOCAB):
        vocab[f"[unused{i}]"] = i
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def embed(model, tokenizer, text):
    """Mean of the last hidden states over all tokens, normalized."""
    ids = tokenizer.encode(text).ids
    with torch.inference_mode():
        hidden = model(torch.tensor([ids])).last_hidden_state[0]
    mean = hidden.double().mean(0)
    return ids, hidden.numpy(), (mean / mean.norm()).numpy()


def bert():
    folder = fresh("bert")
    config = transformers.BertConfig(
        vocab_size=BERT_VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=96, layer_norm_eps=1e-12)
    config._attn_implementation = "eager"
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    randomize(model, 9, 1.0)
    save_file(hub_state(model, folder), folder / "model.safetensors", metadata={"format": "pt"})
    write_config(folder, model, "new")
    tokenizer = bert_tokenizer(folder)
    embeddings, ids, hidden = [], [], []
    for text in TEXTS:
        i, h, e = embed(model, tokenizer, text)
        ids.append(i)
        hidden.append(h)
        embeddings.append(e)
    write_golden(folder, np.stack(embeddings), ids, texts=TEXTS, rows_are="sentence embeddings")
    np.concatenate(hidden).astype("<f4").tofile(folder / "hidden.f32")


SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A fast auburn fox leapt over a sleepy hound.",
    "Robots should fail safely.",
    "The watchdog stops the arm when the model is late.",
    "Die Würde des Menschen ist unantastbar.",
    "Le café est fermé aujourd'hui ; revenez demain.",
    "今日は天気がいいですね。",
    "Привет, мир! Как дела?",
    "naïve façade, cafe\u0301, ﬁne ligatures and ½ fractions",
    "🤖🚀 emoji \u200d👩\u200d🔧 in a row",
    "SELECT name, COUNT(*) FROM users WHERE age >= 21 GROUP BY name;",
    "supercalifragilisticexpialidocious" * 4,
    "x",
    "A longer passage that goes on for a while, so that the mean is taken over many tokens: it names "
    "motors, cables, lemons, schedules, budgets and pages, and then it names them all once more, "
    "motors, cables, lemons, schedules, budgets and pages, before it comes to its end.",
]


def minilm():
    from tokenizers import Tokenizer
    tool = HERE.parent.parent / "tools" / "fetch_models"
    path = subprocess.run([sys.executable, tool, "--path", "all-minilm-l6-v2"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    model = transformers.BertModel.from_pretrained(path, attn_implementation="eager",
                                                   add_pooling_layer=False).eval().float()
    tokenizer = Tokenizer.from_file(path + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    rows, ids = [], []
    for text in SENTENCES:
        i, _, e = embed(model, tokenizer, text)
        rows.append(e)
        ids.append(i)
    np.stack(rows).astype("<f4").tofile(TINY / "minilm.f32")
    info = {"texts": SENTENCES, "ids": ids, "rows": len(rows), "columns": len(rows[0]),
            "rows_are": "sentence embeddings"}
    (TINY / "minilm.json").write_text(json.dumps(info, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    torch.use_deterministic_algorithms(True)
    llama = llamas()
    moe = qwens()
    six = gemma()
    phi()
    mixtral()
    to_gguf("gguf_llama", "llama", llama)
    to_gguf("gguf_qwen3moe", "qwen3moe", moe)
    to_gguf("gguf_gemma3", "gemma3", six, keep=False)
    bert()
    minilm()


if __name__ == "__main__":
    main()
