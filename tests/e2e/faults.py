"""Small valid models for the tests of faults, built byte by byte so that one thing at a time can be wrong."""
import json
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?",
        U64: "<Q", I64: "<q", F64: "<d"}
GGML_F32, GGML_F16, GGML_Q4_0, GGML_Q4_K, GGML_IQ1_S, GGML_I32, GGML_TQ1_0 = 0, 1, 2, 12, 19, 26, 34

EMBD, FF, HEADS, HEADS_KV, VOCAB, CTX = 32, 48, 4, 2, 40, 64


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        elem, items = v
        return struct.pack("<IQ", elem, len(items)) + b"".join(value(elem, i) for i in items)
    return struct.pack(PACK[kind], v)


def floats(n, seed):
    """A fixed sequence of n small numbers."""
    out, x = [], seed * 2654435761 % 2**32
    for _ in range(n):
        x = (x * 1664525 + 1013904223) % 2**32
        out.append((x / 2**32 - 0.5) * 0.5)
    return struct.pack(f"<{n}f", *out)


class Gguf:
    """`keys`: name → (type, value). `tensors`: name → [dims as in the file, type, bytes]."""

    def __init__(self):
        self.align = 32
        self.keys = {"general.architecture": (STR, "llama"), "general.name": (STR, "tiny")}
        for key, n in [("context_length", CTX), ("embedding_length", EMBD), ("block_count", 1),
                       ("feed_forward_length", FF), ("attention.head_count", HEADS),
                       ("attention.head_count_kv", HEADS_KV)]:
            self.keys["llama." + key] = (U32, n)
        self.keys["llama.attention.layer_norm_rms_epsilon"] = (F32, 1e-5)
        self.keys["llama.rope.freq_base"] = (F32, 10000.0)
        tokens = ["<unk>", "<s>", "</s>", "ab", "bc", "abc"] + [chr(97 + i) for i in range(26)]
        tokens += [f"[{i}]" for i in range(len(tokens), VOCAB)]
        self.key("tokenizer.ggml.model", STR, "gpt2")
        self.key("tokenizer.ggml.pre", STR, "default")
        self.key("tokenizer.ggml.tokens", ARR, (STR, tokens))
        self.key("tokenizer.ggml.token_type", ARR, (I32, [2, 3, 3] + [1] * (VOCAB - 3)))
        self.key("tokenizer.ggml.merges", ARR, (STR, ["a b", "b c", "ab c"]))
        self.key("tokenizer.ggml.bos_token_id", U32, 1)
        self.key("tokenizer.ggml.eos_token_id", U32, 2)
        self.key("tokenizer.chat_template", STR, "{% for m in messages %}{{ m.content }}{% endfor %}")
        self.tensors = {}
        kv = EMBD * HEADS_KV // HEADS
        for i, (name, dims) in enumerate({
                "token_embd": (EMBD, VOCAB), "output": (EMBD, VOCAB), "output_norm": (EMBD,),
                "blk.0.attn_norm": (EMBD,), "blk.0.attn_q": (EMBD, EMBD), "blk.0.attn_k": (EMBD, kv),
                "blk.0.attn_v": (EMBD, kv), "blk.0.attn_output": (EMBD, EMBD),
                "blk.0.ffn_norm": (EMBD,), "blk.0.ffn_gate": (EMBD, FF), "blk.0.ffn_up": (EMBD, FF),
                "blk.0.ffn_down": (FF, EMBD)}.items()):
            n = dims[0] * (dims[1] if len(dims) > 1 else 1)
            self.tensors[name + ".weight"] = [list(dims), GGML_F32, floats(n, i + 1)]

    def key(self, name, kind, v):
        self.keys[name] = (kind, v)

    def dims(self, name, *dims, kind=GGML_F32):
        n = 1
        for d in dims:
            n *= d
        self.tensors[name] = [list(dims), kind, floats(n, 3)]

    def poke(self, name, at, number):
        data = bytearray(self.tensors[name][2])
        struct.pack_into("<f", data, 4 * at, number)
        self.tensors[name][2] = bytes(data)

    def pack(self):
        out = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys))
        for name, (kind, v) in self.keys.items():
            out += text(name) + struct.pack("<I", kind) + value(kind, v)
        data = b""
        for name, (dims, kind, raw) in self.tensors.items():
            out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
            data += raw + b"\0" * (-len(raw) % self.align)
        return out + b"\0" * (-len(out) % self.align) + data


class Folder:
    """A Hugging Face folder: `config` and `tokenizer` as objects (or bytes), `tensors`: name → [shape, bytes]."""

    def __init__(self):
        self.config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": EMBD,
                       "intermediate_size": FF, "num_hidden_layers": 1, "num_attention_heads": HEADS,
                       "num_key_value_heads": HEADS_KV, "vocab_size": VOCAB, "rms_norm_eps": 1e-5,
                       "max_position_embeddings": CTX, "rope_theta": 10000.0, "hidden_act": "silu",
                       "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}
        vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, "ab": 3, "bc": 4, "abc": 5}
        vocab.update({chr(97 + i): 6 + i for i in range(26)})
        self.tokenizer = {
            "version": "1.0", "normalizer": {"type": "NFC"},
            "added_tokens": [{"id": 1, "content": "<s>", "special": True},
                             {"id": 2, "content": "</s>", "special": True}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", "b c", "ab c"]}}
        self.files = {}
        gguf, layer = Gguf().tensors, "model.layers.0."
        self.tensors = {}
        for old, new in {"token_embd": "model.embed_tokens", "output": "lm_head",
                         "output_norm": "model.norm", "blk.0.attn_norm": layer + "input_layernorm",
                         "blk.0.attn_q": layer + "self_attn.q_proj", "blk.0.attn_k": layer + "self_attn.k_proj",
                         "blk.0.attn_v": layer + "self_attn.v_proj",
                         "blk.0.attn_output": layer + "self_attn.o_proj",
                         "blk.0.ffn_norm": layer + "post_attention_layernorm",
                         "blk.0.ffn_gate": layer + "mlp.gate_proj", "blk.0.ffn_up": layer + "mlp.up_proj",
                         "blk.0.ffn_down": layer + "mlp.down_proj"}.items():
            dims, _, raw = gguf[old + ".weight"]
            self.tensors[new + ".weight"] = [dims[::-1], raw]

    def header(self):
        at, head = 0, {}
        for name, (shape, raw) in self.tensors.items():
            head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
            at += len(raw)
        return head

    def weights(self, head=None):
        raw = json.dumps(head if head is not None else self.header()).encode()
        return struct.pack("<Q", len(raw)) + raw + b"".join(t[1] for t in self.tensors.values())

    def write(self, path):
        path.mkdir()
        for name, v in {"config.json": self.config, "tokenizer.json": self.tokenizer,
                        "model.safetensors": self.weights(), **self.files}.items():
            if v is not None:
                (path / name).write_bytes(v if isinstance(v, bytes) else json.dumps(v).encode())
        return path
