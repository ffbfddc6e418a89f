/* Pre-tokenizer families by their names in tokenizer.ggml.pre. A GGUF names the family only; what
 * it does is written in the tokenizer.json of the models it stands for, and is repeated here:
 * normalizer, steps, and whether a word that is a token skips the merges.
 *
 * Where llama.cpp does otherwise (it skips the normalizers, and rewrites expressions for its own
 * engine), the model's own rule is followed. */
#include "text/tokenizer_impl.h"

#include "base/buf.h"

#include <string.h>

enum {
    NFC = 1,         /* normalizer */
    WHOLE_WORDS = 2, /* a word that is a token is taken as it is ("ignore_merges") */
    ADDS_BOS = 4,    /* unless the file says otherwise */
    CHARS = 8,       /* code points, not bytes, are the symbols */
    MARKED = 16,     /* spaces become ▁, bytes <0xNN> */
};

typedef struct family_step {
    gn_pretok_kind kind;
    const char *regex;
    gn_pretok_split split;
    bool boundary;
} family_step;

typedef struct family {
    const char *name;
    unsigned flags;
    family_step steps[8]; /* up to the first SPLIT without an expression */
} family;

#define RE(text)                                                                                   \
    {                                                                                              \
        .kind = GN_PRETOK_SPLIT, .regex = (text)                                                   \
    }
#define DIGITS                                                                                     \
    {                                                                                              \
        .kind = GN_PRETOK_DIGITS                                                                   \
    }
#define DIGIT_RUNS                                                                                 \
    {                                                                                              \
        .kind = GN_PRETOK_DIGITS, .split = GN_SPLIT_CONTIGUOUS                                     \
    }
#define THREES                                                                                     \
    {                                                                                              \
        .kind = GN_PRETOK_DIGITS3                                                                  \
    }
#define WORD_THREES                                                                                \
    {                                                                                              \
        .kind = GN_PRETOK_DIGITS3, .boundary = true                                                \
    }
#define PUNCT_RUNS                                                                                 \
    {                                                                                              \
        .kind = GN_PRETOK_PUNCT, .split = GN_SPLIT_CONTIGUOUS                                      \
    }
#define LETTERS                                                                                    \
    {                                                                                              \
        .kind = GN_PRETOK_LETTERS                                                                  \
    }

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s+(?!\\S)|\\s+"
#define LINES        "\\s*[\\r\\n]+|" SPACES
#define GPT2         "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES
#define WORD         "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LLAMA3       CONTRACTIONS "|" WORD "|\\p{N}{1,3}|" SYMBOLS "|" LINES
#define QWEN2        CONTRACTIONS "|" WORD "|\\p{N}|" SYMBOLS "|" LINES
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end)                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER     \
    "*" end
#define SLASHED     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define GPT4O       CASED(CONTRACTIONS "?") "|\\p{N}{1,3}|" SLASHED "|" LINES
#define CJK         "[一-龥\xe3\x81\x80-ゟ゠-ヿ]+"
#define ASCII_PUNCT "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK3                                                                                  \
    ASCII_PUNCT                                                                                    \
    "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES
#define NOT_HAN(set) "[" set "&&[^\\p{Han}]]"
#define UPPER_SET    "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER_SET    "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define BLOOM        " ?[^(\\s|.,!?…。，、।۔،)]+"

/* DeepSeek's list of cased letters, as its tokenizer.json spells it. */
#define DEEPSEEK_LETTERS                                                                           \
    "\\s?["                                                                                        \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-"        \
    "\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}"          \
    "\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"         \
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-"           \
    "\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"        \
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-"       \
    "\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-"         \
    "\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-"        \
    "\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}"        \
    "\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-"        \
    "\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-"         \
    "\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"         \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-"       \
    "\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-"              \
    "\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-"         \
    "\\x{118df}\\x{1e900}-\\x{1e943}"                                                              \
    "]+"

static const family families[] = {
    {"gpt-2", 0, {RE(GPT2)}},
    {"mpt", NFC, {RE(GPT2)}},
    {"olmo", NFC, {RE(GPT2)}},
    {"jais", 0, {RE(GPT2)}},
    {"trillion", 0, {RE(GPT2)}},
    {"smollm", 0, {DIGITS, RE(GPT2)}},
    {"command-r", NFC, {DIGITS, RE(GPT2)}},
    {"falcon", 0, {PUNCT_RUNS, RE(GPT2), LETTERS, DIGIT_RUNS, RE("[0-9][0-9][0-9]")}},
    {"llama-bpe", WHOLE_WORDS | ADDS_BOS, {RE(LLAMA3)}},
    {"dbrx", 0, {RE(LLAMA3)}},
    {"chatglm-bpe", 0, {RE(LLAMA3)}},
    {"glm4", WHOLE_WORDS, {RE(LLAMA3)}},
    {"qwen2", NFC, {RE(QWEN2)}},
    {"stablelm2", 0, {RE(QWEN2)}},
    {"qwen35",
     NFC,
     {RE(CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
                      "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES)}},
    {"ufakzeka", 0, {RE(WORD "|\\p{N}|" SYMBOLS "|" LINES)}},
    {"seed-coder", 0, {RE(CONTRACTIONS "|" WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES)}},
    {"bailingmoe",
     0,
     {RE("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" SPACES)}},
    {"minicpm5",
     WHOLE_WORDS,
     {RE("\\p{N}{1,3}"), RE(CONTRACTIONS "|" WORD "|\\p{N}+|" SYMBOLS "|" LINES)}},
    {"laguna", 0, {RE("[^\\n]+|[\\n]+"), RE(QWEN2)}},
    {"exaone-moe",
     0,
     {RE(CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| "
                      "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" SPACES)}},
    {"jais-2",
     0,
     {RE(CONTRACTIONS
         "|" WORD "|\\p{N}{1,3}|" SYMBOLS
         "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)"
         "|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)"
         "|\\s{1}")}},
    {"tekken", WHOLE_WORDS, {RE(CASED("") "|\\p{N}|" SLASHED "|" LINES)}},
    {"gpt-4o", 0, {RE(GPT4O)}},
    {"granite-embed-multi-97m", WHOLE_WORDS, {RE(GPT4O)}},
    {"tiny_aya", 0, {WORD_THREES, RE(GPT4O)}},
    {"youtu",
     WHOLE_WORDS,
     {RE("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" CJK),
      RE(CASED(CONTRACTIONS "?") "|\\p{N}|" SLASHED "|" LINES)}},
    {"kimi-k2",
     0,
     {RE("[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER_SET) "*" NOT_HAN(
         LOWER_SET) "+" CONTRACTIONS
                    "?|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER_SET) "+" NOT_HAN(
                        LOWER_SET) "*" CONTRACTIONS "?|"
                                   "\\p{N}{1,3}|" SYMBOLS "|" LINES)}},
    {"deepseek-llm",
     0,
     {RE("[\\r\\n]"), RE(DEEPSEEK_LETTERS), RE("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), RE("\\s+$"),
      RE("[一-龥ࠀ-一가-퟿]+"), DIGITS}},
    {"deepseek-coder",
     0,
     {RE("[\\r\\n]"), RE("\\s?\\p{L}+"), RE("\\s?\\p{P}+"), RE("[一-龥ࠀ-一가-퟿]+"),
      DIGITS}},
    {"deepseek-v3", 0, {RE("\\p{N}{1,3}"), RE(CJK), RE(DEEPSEEK3)}},
    {"spark2_5",
     0,
     {RE("\\p{N}{1,3}"), RE(CJK),
      RE(ASCII_PUNCT "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
                     "?[\\p{P}\\p{S}]+|[\\r\\n]|" SPACES),
      RE("\\p{N}")}},
    {"afmoe",
     0,
     {THREES,
      RE("[一-鿿㐀-䶿\xef\xa4\x80-\xef\xab\xbf\xe3\x81\x80-ゟ゠-ヿ･-ﾟ⼀-⿟เ-"
         "\xe0\xb9\xbf"
         "\xe0\xba\x80-\xe0\xbb\xbfក-\xe1\x9f\xbfက-႟ꩠ-ꩿꧠ-\xea\xa7\xbf가-"
         "\xed\x9e\xafᄀ-"
         "ᇿ]"
         "+"),
      RE(DEEPSEEK3)}},
    {"superbpe", 0, {RE("\\p{N}+"), THREES}},
    {"poro-chat", 0, {RE(BLOOM)}},
    {"viking", 0, {RE(BLOOM), DIGITS}},
    {"chameleon",
     ADDS_BOS,
     {RE("<sentinel:[0-9]+>"),
      RE("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
      RE("([\\t\\n]|    |  )"),
      DIGITS,
      {.kind = GN_PRETOK_PUNCT},
      RE(GPT2)}},
    {"gemma4", CHARS | MARKED | ADDS_BOS, {{.kind = GN_PRETOK_SPLIT}}},
    {"sarvam-moe", CHARS | MARKED, {{.kind = GN_PRETOK_SPLIT}}},
    {"whitespace", CHARS, {{.kind = GN_PRETOK_SPACE, .split = GN_SPLIT_REMOVED}}},
};

/* Names that share a family. */
static const char *const aliases[][2] = {
    {"default", "gpt-2"},          {"phi-2", "gpt-2"},
    {"jina-es", "gpt-2"},          {"jina-de", "gpt-2"},
    {"jina-v2-es", "gpt-2"},       {"jina-v2-de", "gpt-2"},
    {"jina-v1-en", "gpt-2"},       {"jina-v2-code", "gpt-2"},
    {"roberta-bpe", "gpt-2"},      {"gigachat", "gpt-2"},
    {"a.x-4.0", "gpt-2"},          {"mellum", "gpt-2"},
    {"exaone4", "gpt-2"},          {"granite-docling", "gpt-2"},
    {"modern-bert", "olmo"},       {"gpt-neox", "olmo"},
    {"starcoder", "smollm"},       {"refact", "smollm"},
    {"codeshell", "smollm"},       {"exaone", "smollm"},
    {"minerva-7b", "smollm"},      {"mellum2", "smollm"},
    {"llama3", "llama-bpe"},       {"llama-v3", "llama-bpe"},
    {"falcon3", "llama-bpe"},      {"falcon-h1", "llama-bpe"},
    {"pixtral", "llama-bpe"},      {"midm-2.0", "llama-bpe"},
    {"lfm2", "llama-bpe"},         {"jina-v5-nano", "llama-bpe"},
    {"smaug-bpe", "dbrx"},         {"glm5", "glm4"},
    {"deepseek-r1-qwen", "qwen2"}, {"kormo", "qwen2"},
    {"f2llmv2", "qwen2"},          {"megrez", "qwen2"},
    {"hunyuan", "stablelm2"},      {"solar-open", "stablelm2"},
    {"grok-2", "stablelm2"},       {"hunyuan-dense", "deepseek-v3"},
    {"joyai-llm", "deepseek-v3"},  {"hy_v4", "deepseek-v3"},
    {"bailingmoe2", "bailingmoe"}, {"llada-moe", "bailingmoe"},
    {"llama4", "gpt-4o"},          {"kanana2", "gpt-4o"},
    {"talkie", "gpt-4o"},          {"minimax-m2", "gpt-4o"},
    {"cohere2moe", "tiny_aya"},    {"bloom", "poro-chat"},
    {"gpt3-finnish", "poro-chat"}, {"granite-embed-multi-311m", "gemma4"},
};

static bool is_name(const char *known, const char *name, size_t len)
{
    return strlen(known) == len && memcmp(known, name, len) == 0;
}

static const family *find(const char *name, size_t len)
{
    for (size_t i = 0; i < GN_COUNTOF(aliases); i++) {
        if (is_name(aliases[i][0], name, len)) {
            name = aliases[i][1];
            len = strlen(name);
            break;
        }
    }
    for (size_t i = 0; i < GN_COUNTOF(families); i++) {
        if (is_name(families[i].name, name, len)) {
            return &families[i];
        }
    }
    return NULL;
}

static gn_status unknown(const char *name, size_t len)
{
    gn_buf names = {0};
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < GN_COUNTOF(families); i++) {
        status = gn_buf_printf(&names, "%s%s", i != 0 ? ", " : "", families[i].name);
    }
    if (status == GN_OK) {
        status = gn_base_fail(GN_E_UNSUPPORTED,
                              "tokenizer.ggml.pre: found \"%.*s\", expected one of %s or their kin",
                              (int)(len < 40 ? len : 40), name, names.data);
    }
    gn_buf_fini(&names);
    return status;
}

static gn_status add_step(gn_pretok *pretok, const family_step *step)
{
    if (step->kind == GN_PRETOK_SPLIT) {
        return gn_pretok_add_split(pretok, step->regex, strlen(step->regex), false, step->split,
                                   false);
    }
    return gn_pretok_add(
        pretok,
        (gn_pretok_step){.kind = step->kind, .split = step->split, .boundary = step->boundary});
}

gn_status gn_tokenizer_set_family(gn_tokenizer *t, const char *name, size_t len)
{
    const family *f = find(name, len);
    if (f == NULL) {
        return unknown(name, len);
    }
    bool letters = false;
    for (size_t i = 0; i < GN_COUNTOF(f->steps); i++) {
        const family_step *step = &f->steps[i];
        if (step->kind == GN_PRETOK_SPLIT && step->regex == NULL) {
            break;
        }
        letters = letters || step->kind == GN_PRETOK_LETTERS;
        GN_TRY(add_step(&t->pretok, step));
    }
    if (f->flags & NFC) {
        GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_NFC));
    }
    if (f->flags & MARKED) {
        GN_TRY(gn_norm_add_replace(&t->norm, " ", 1, true, "▁", 3));
    }
    t->bpe.symbols = letters || (f->flags & CHARS) ? GN_BPE_CHARS : GN_BPE_BYTES;
    t->bpe.ignore_merges = (f->flags & WHOLE_WORDS) != 0;
    t->bpe.byte_fallback = (f->flags & MARKED) != 0;
    t->spell = f->flags & MARKED  ? GN_SPELL_MARK
               : f->flags & CHARS ? GN_SPELL_PLAIN
                                  : GN_SPELL_LETTERS;
    t->adds_bos_by_family = (f->flags & ADDS_BOS) != 0;
    return GN_OK;
}
