"""Builds the tokenizer of a GGUF's own vocabulary with other people's libraries."""
import struct

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"|\p{N}| ?", r"|\p{N}{1,3}| ?")
CJK = r"[一-龥ࠀ-一가-퟿]+"


class Vocabulary:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.tokens = self.strings("tokenizer.ggml.tokens")
        self.types = self.numbers("tokenizer.ggml.token_type") or [NORMAL] * len(self.tokens)
        self.pre = self.value("tokenizer.ggml.pre", "default")
        self.model = self.value("tokenizer.ggml.model")

    def strings(self, key):
        field = self.fields[key]
        return [bytes(field.parts[i]).decode("utf-8") for i in field.data]

    def numbers(self, key):
        field = self.fields.get(key)
        return [field.parts[i][0].item() for i in field.data] if field else None

    def value(self, key, default=None):
        field = self.fields.get(key)
        return field.contents() if field else default


def split(regex):
    return pre_tokenizers.Split(Regex(regex), "isolated")


def pre_tokenizer(pre):
    """(normalizer or None, pre-tokenizer) as in the tokenizer.json of the family."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    seq = pre_tokenizers.Sequence
    nfc = normalizers.NFC()
    if pre == "qwen2":
        return nfc, seq([split(QWEN), letters])
    if pre == "qwen35":
        return nfc, seq([split(QWEN35), letters])
    if pre == "llama-bpe":
        return None, seq([split(LLAMA3), letters])
    if pre in ("smollm", "starcoder", "refact"):
        return None, seq([digits, byte_level])
    if pre == "command-r":
        return nfc, seq([digits, byte_level])
    if pre == "gpt-2":
        return None, byte_level
    if pre in ("mpt", "olmo"):
        return nfc, byte_level
    if pre == "falcon":
        return None, seq([pre_tokenizers.Punctuation("contiguous"), byte_level,
                          pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")])
    if pre == "deepseek-coder":
        return None, seq([split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(CJK), digits,
                          letters])
    raise KeyError(pre)


def bpe(vocab):
    merges = []
    for merge in vocab.strings("tokenizer.ggml.merges"):
        at = merge.index(" ", 1)
        merges.append((merge[:at], merge[at + 1:]))
    ids = {t: i for i, t in enumerate(vocab.tokens)}
    if vocab.model == "gemma4":
        model = models.BPE(ids, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    else:
        tokenizer = Tokenizer(models.BPE(ids, merges, ignore_merges=vocab.pre == "llama-bpe"))
        normalizer, tokenizer.pre_tokenizer = pre_tokenizer(vocab.pre)
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, k in zip(vocab.tokens, vocab.types) if k in (CONTROL, UNKNOWN)]
    user = [t for t, k in zip(vocab.tokens, vocab.types) if k == USER]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in user])
    return tokenizer


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One field of a protocol buffer message: bytes, float or int."""
    if isinstance(value, (bytes, str)):
        data = value.encode("utf-8") if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(data)) + data
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(int(value))


def sentencepiece(vocab):
    """A SentencePiece BPE model of the same pieces (sentencepiece_model.proto). Special tokens are not
    parsed by this one."""
    import sentencepiece as spm

    scores = vocab.numbers("tokenizer.ggml.scores")
    unk = vocab.value("tokenizer.ggml.unknown_token_id", 0)
    proto = []
    for i, (text, kind, score) in enumerate(zip(vocab.tokens, vocab.types, scores)):
        if kind == UNKNOWN:
            kind = CONTROL
        if i == unk:
            kind = UNKNOWN
        if kind == USER:
            text = text.replace(" ", "▁")
        proto.append(field(1, field(1, text) + field(2, float(score)) + field(3, kind)))
    bpe_model = 2
    trainer = (field(3, bpe_model) + field(35, BYTE in vocab.types) + field(40, unk)
               + field(45, vocab.tokens[unk]))
    prefix = vocab.value("tokenizer.ggml.add_space_prefix", True)
    normalizer = field(1, "identity") + field(3, prefix) + field(4, False) + field(5, True)
    proto.append(field(2, trainer) + field(3, normalizer))
    processor = spm.SentencePieceProcessor()
    processor.LoadFromSerializedProto(b"".join(proto))
    return processor


def encoder(path):
    """(list of str → list of ids, flags for tok_tool)"""
    vocab = Vocabulary(path)
    if vocab.model == "llama":
        processor = sentencepiece(vocab)
        return processor.encode, ["nospecial"]
    tokenizer = bpe(vocab)
    return lambda texts: [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)], []


def from_json(path):
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
