/* text/tokenizer: small tokenizers written here, what they give, and what is refused. The ids of
 * real vocabularies are tested end to end (tests/e2e/test_tokenizer_*.py). */
#include "tests/unit/file/pack.h"

#include "base/rng.h"
#include "base/utf8.h"
#include "file/gguf.h"
#include "text/bpe.h"
#include "text/detok.h"
#include "text/normalize.h"
#include "text/pattern.h"
#include "text/special.h"
#include "text/tokenizer.h"

#define COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

/* --- helpers --- */

static gn_status from_json(const char *text, gn_tokenizer **out)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (json == NULL) {
        fail_msg("%s in %s", error.text, text);
    }
    gn_status status = gn_tokenizer_create_hf(json, NULL, out);
    json_decref(json);
    return status;
}

static gn_tokenizer *must(const char *json)
{
    gn_tokenizer *t = NULL;
    if (from_json(json, &t) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return t;
}

static gn_status from_gguf(const char *text, gn_tokenizer **out)
{
    gn_buf file = {0};
    gn_gguf *gguf = NULL;
    pack(&file, text);
    unsigned char *copy = exact_copy(file.data, file.len);
    if (gn_gguf_open_memory(copy, file.len, &gguf) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    gn_status status = gn_tokenizer_create_gguf(gguf, out);
    gn_gguf_close(gguf);
    free(copy);
    gn_buf_fini(&file);
    return status;
}

static void expect(const gn_tokenizer *t, const char *text, size_t len, unsigned flags,
                   const char *want)
{
    gn_token_list ids = {0};
    gn_buf got = {0};
    assert_int_equal(gn_tokenizer_encode(t, text, len, flags, &ids), GN_OK);
    for (size_t i = 0; i < ids.n; i++) {
        assert_int_equal(gn_buf_printf(&got, "%s%d", i != 0 ? " " : "", ids.ids[i]), GN_OK);
    }
    assert_string_equal(got.data != NULL ? got.data : "", want);
    gn_buf_fini(&got);
    gn_token_list_fini(&ids);
}

static void expect_text(const gn_tokenizer *t, const char *text, const char *want)
{
    expect(t, text, strlen(text), GN_ENCODE_SPECIAL, want);
}

/* --- models --- */

#define SPM_STEPS                                                                                  \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"    \
    "\"▁\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}]},"        \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":"          \
    "{\"String\":\"▁\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"     \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"

static const char bpe_json[] =
    "{" SPM_STEPS "\"added_tokens\":["
    "{\"id\":8,\"content\":\"<s>\",\"special\":true,\"normalized\":false},"
    "{\"id\":9,\"content\":\"<s>>\",\"special\":true,\"normalized\":false},"
    "{\"id\":10,\"content\":\"<r>\",\"special\":true,\"rstrip\":true,\"normalized\":false},"
    "{\"id\":11,\"content\":\"<l>\",\"special\":true,\"lstrip\":true,\"normalized\":false},"
    "{\"id\":12,\"content\":\"aba\",\"special\":false,\"single_word\":true,\"normalized\":false}],"
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,"
    "\"vocab\":{\"<unk>\":0,\"<0xC3>\":1,\"<0xA9>\":2,\"▁\":3,\"a\":4,\"▁a\":5,\"aa\":6,\"b\":7},"
    "\"merges\":[\"▁ a\",[\"a\",\"a\"]]}}";

static void test_bpe(void **state)
{
    (void)state;
    gn_tokenizer *t = must(bpe_json);
    assert_int_equal(gn_tokenizer_n_vocab(t), 13);
    expect_text(t, "", "");
    expect_text(t, "a", "5");
    expect_text(t, "aaa", "5 6");
    expect_text(t, "aaaa", "5 6 4");
    expect_text(t, "a a", "5 5");
    expect_text(t, "b", "3 7");
    expect_text(t, "é", "3 1 2");
    expect_text(t, "zzq", "3 0"); /* unknown ones are fused */
    expect_text(t, "zbz", "3 0 7 0");
    gn_tokenizer_destroy(t);
}

static void test_added_tokens(void **state)
{
    (void)state;
    gn_tokenizer *t = must(bpe_json);
    expect_text(t, "<s>a", "8 5");
    expect_text(t, "<s>>a", "9 5"); /* the longest */
    expect_text(t, "<s><s>", "8 8");
    expect_text(t, "<r> \n\u00a0a", "10 5");
    expect_text(t, "a \t<l>a", "5 11 5");
    expect_text(t, "aba", "12");
    expect_text(t, "<s>aba<s>", "8 12 8");
    expect_text(t, "aaba", "5 4 7 4"); /* not inside a word */
    expect(t, "<s>", 3, 0, "3 0");     /* special tokens are text here: all of it is unknown */
    expect(t, "aba", 3, 0, "12");      /* a token that is not special is found all the same */
    assert_true(gn_tokenizer_is_special(t, 8));
    assert_false(gn_tokenizer_is_special(t, 12));
    assert_int_equal(gn_tokenizer_find(t, "<s>>", 4), 9);
    assert_int_equal(gn_tokenizer_find(t, "<s>>>", 5), -1);
    gn_tokenizer_destroy(t);
}

static void test_decode(void **state)
{
    (void)state;
    gn_tokenizer *t = must(bpe_json);
    const int32_t ids[] = {5, 8, 5, 1, 2};
    gn_buf out = {0};
    assert_int_equal(gn_tokenizer_decode(t, ids, 5, true, &out), GN_OK);
    assert_string_equal(out.data, "a<s> aé");
    gn_buf_clear(&out);
    assert_int_equal(gn_tokenizer_decode(t, ids, 5, false, &out), GN_OK);
    assert_string_equal(out.data, "a aé");
    const int32_t bad[] = {5, 13};
    assert_int_equal(gn_tokenizer_decode(t, bad, 2, true, &out), GN_E_ARG);
    assert_string_equal(out.data, "a aé");
    assert_int_equal(gn_tokenizer_piece(t, -1, true, &out), GN_E_ARG);
    gn_buf_fini(&out);
    gn_tokenizer_destroy(t);
}

static void test_unigram(void **state)
{
    (void)state;
    gn_tokenizer *t =
        must("{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"
             "\"first\",\"split\":true},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[["
             "\"<unk>\",0],"
             "[\"▁\",-2],[\"a\",-1.5],[\"b\",-3],[\"ab\",-2],[\"▁ab\",-3.5],[\"aba\",-9]]}}");
    expect_text(t, "ab", "5");
    expect_text(t, "aba", "5 2");
    expect_text(t, "abab ab", "5 4 5");
    expect_text(t, "zz", "1 0"); /* neighbours that are unknown are one */
    expect_text(t, "azb", "1 2 0 3");
    gn_tokenizer_destroy(t);
}

static void test_wordpiece(void **state)
{
    (void)state;
    gn_tokenizer *t =
        must("{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
             "\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"["
             "SEP]\",2],"
             "\"cls\":[\"[CLS]\",1]},\"decoder\":{\"type\":\"WordPiece\"},\"model\":{\"type\":"
             "\"WordPiece\","
             "\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"un\":3,\"##"
             "aff\":4,"
             "\"##able\":5,\".\":6,\"e\":7,\"中\":8}}}");
    expect_text(t, "Unaffable.", "3 4 5 6");
    expect_text(t, "É e\u0301", "7 7");
    expect_text(t, "un中un", "3 8 3");
    expect_text(t, "unaffx", "0");
    expect(t, "un\xff", 3, GN_ENCODE_BOS, "1 3 2");
    const int32_t ids[] = {1, 3, 4, 5, 6};
    gn_buf out = {0};
    assert_int_equal(gn_tokenizer_decode(t, ids, 5, true, &out), GN_OK);
    assert_string_equal(out.data, "[CLS] unaffable.");
    gn_buf_fini(&out);
    gn_tokenizer_destroy(t);
}

/* --- byte-level --- */

/* All 256 letters, then joined pieces. */
static char *byte_level_json(void)
{
    json_t *vocab = json_object();
    json_t *merges = json_array();
    for (int b = 0; b < 256; b++) {
        char letter[5] = {0};
        gn_utf8_encode(gn_bpe_letter((uint8_t)b), letter);
        json_object_set_new(vocab, letter, json_integer(b));
    }
    static const char *const pairs[][2] = {{"h", "e"}, {"l", "l"},  {"he", "ll"}, {"hell", "o"},
                                           {"Ġ", "w"}, {"a", "b"},  {"ab", "a"},  {"b", "a"},
                                           {"a", "a"}, {"aa", "aa"}};
    for (size_t i = 0; i < COUNTOF(pairs); i++) {
        char joined[32];
        snprintf(joined, sizeof joined, "%s%s", pairs[i][0], pairs[i][1]);
        json_object_set_new(vocab, joined, json_integer((json_int_t)(256 + i)));
        json_array_append_new(merges, json_pack("[ss]", pairs[i][0], pairs[i][1]));
    }
    json_t *all = json_pack("{s:{s:s,s:b,s:b},s:{s:s},s:{s:s,s:o,s:o}}", "pre_tokenizer", "type",
                            "ByteLevel", "add_prefix_space", 0, "use_regex", 1, "decoder", "type",
                            "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
    char *text = json_dumps(all, 0);
    json_decref(all);
    return text;
}

static void test_byte_level(void **state)
{
    (void)state;
    char *json = byte_level_json();
    gn_tokenizer *t = must(json);
    expect_text(t, "hello", "259");
    expect_text(t, "hello wow", "259 260 111 119");
    expect_text(t, "hell", "258");
    expect(t, "\xff\xc3", 2, 0, "255 195");
    expect(t, "a\xc3", 2, 0, "97 195");
    /* Any bytes come back as they were. */
    gn_rng rng = {.state = 5};
    for (int round = 0; round < 200; round++) {
        char text[64];
        size_t len = gn_rng_next(&rng) % sizeof text;
        for (size_t i = 0; i < len; i++) {
            text[i] = (char)gn_rng_next(&rng);
        }
        gn_token_list ids = {0};
        gn_buf out = {0};
        assert_int_equal(gn_tokenizer_encode(t, text, len, 0, &ids), GN_OK);
        assert_int_equal(gn_tokenizer_decode(t, ids.ids, ids.n, true, &out), GN_OK);
        assert_int_equal(out.len, len);
        assert_true(len == 0 || memcmp(out.data, text, len) == 0);
        gn_buf_fini(&out);
        gn_token_list_fini(&ids);
    }
    gn_tokenizer_destroy(t);
    free(json);
}

/* What BPE means, without care for time: join the leftmost pair of the lowest rank. */
static size_t naive_bpe(int32_t *ids, size_t n)
{
    static const int32_t rules[][3] = {
        {'h', 'e', 256}, {'l', 'l', 257}, {256, 257, 258}, {258, 'o', 259}, {' ', 'w', 260},
        {'a', 'b', 261}, {261, 'a', 262}, {'b', 'a', 263}, {'a', 'a', 264}, {264, 264, 265}};
    for (;;) {
        size_t rule = COUNTOF(rules);
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t r = 0; r < rule; r++) {
                if (ids[i] == rules[r][0] && ids[i + 1] == rules[r][1]) {
                    rule = r;
                    at = i;
                }
            }
        }
        if (rule == COUNTOF(rules)) {
            return n;
        }
        ids[at] = rules[rule][2];
        memmove(&ids[at + 1], &ids[at + 2], (n - at - 2) * sizeof *ids);
        n--;
    }
}

static void test_bpe_is_the_naive_one(void **state)
{
    (void)state;
    char *json = byte_level_json();
    gn_tokenizer *t = must(json);
    gn_rng rng = {.state = 11};
    for (int round = 0; round < 400; round++) {
        char word[300];
        int32_t want[300];
        size_t len = 1 + gn_rng_next(&rng) % (round % 2 == 0 ? 45 : sizeof word - 1);
        for (size_t i = 0; i < len; i++) {
            word[i] = "aaab"[gn_rng_next(&rng) % 4];
            want[i] = word[i];
        }
        size_t n = naive_bpe(want, len);
        gn_token_list ids = {0};
        assert_int_equal(gn_tokenizer_encode(t, word, len, 0, &ids), GN_OK);
        assert_int_equal(ids.n, n);
        assert_memory_equal(ids.ids, want, n * sizeof *want);
        gn_token_list_fini(&ids);
    }
    gn_tokenizer_destroy(t);
    free(json);
}

/* --- streaming --- */

static void stream(const gn_tokenizer *t, const char *bytes, size_t n, const char *want)
{
    gn_detok d;
    gn_buf out = {0};
    gn_detok_init(&d, t, false, true);
    for (size_t i = 0; i < n; i++) {
        size_t before = out.len;
        assert_int_equal(gn_detok_push(&d, (unsigned char)bytes[i], &out), GN_OK);
        assert_true(out.len == before || gn_utf8_valid(out.data + before, out.len - before));
        assert_true(d.held.len <= 3);
    }
    assert_int_equal(gn_detok_flush(&d, &out), GN_OK);
    assert_string_equal(out.data != NULL ? out.data : "", want);
    gn_detok_fini(&d);
    gn_buf_fini(&out);
}

static void test_detok(void **state)
{
    (void)state;
    char *json = byte_level_json();
    gn_tokenizer *t = must(json);
#define STREAM(bytes, want) stream(t, bytes, sizeof(bytes) - 1, want)
    STREAM("", "");
    STREAM("a\xc3\xa9漢😀z", "aé漢😀z");
    STREAM("\xc3", "\xef\xbf\xbd");
    STREAM("\xf0\x9f\x98", "\xef\xbf\xbd");
    STREAM("\xf0\x9f\x98z", "\xef\xbf\xbdz");
    STREAM("\xe6\xbc\xe6\xbc\xa2", "\xef\xbf\xbd漢");
    STREAM("\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd");
    STREAM("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
    STREAM("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd");
    STREAM("\x80z", "\xef\xbf\xbdz");
    gn_tokenizer_destroy(t);
    free(json);
    t = must(bpe_json); /* the space that the encoder added is taken off once */
    gn_detok d;
    gn_buf out = {0};
    gn_detok_init(&d, t, false, true);
    assert_int_equal(gn_detok_push(&d, 8, &out), GN_OK);
    assert_int_equal(gn_detok_push(&d, 5, &out), GN_OK);
    assert_int_equal(gn_detok_push(&d, 5, &out), GN_OK);
    assert_string_equal(out.data, "a a");
    assert_int_equal(gn_detok_push(&d, 99, &out), GN_E_ARG);
    gn_detok_fini(&d);
    gn_buf_fini(&out);
    gn_tokenizer_destroy(t);
}

/* --- parts --- */

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *regex;
        const char *text;
        int start; /* -1: no match */
        int end;
    } cases[] = {
        {"\\s+", "a\xc2\x85\u3000b", 1, 6},
        {"\\s", "\u180e", -1, 0}, /* no white space since Unicode 6.3 */
        {"[^\\S\\n]+", "\n \t\n", 1, 3},
        {"\\w+", "-aé_9\u0301-", 1, 8},
        {"\\p{Han}+", "a漢。", 1, 4}, /* the script, not what it shares */
        {"[\\p{L}&&[^\\p{Han}]]+", "漢ab漢", 3, 5},
        {"[a-c[x-z]]+", "1axz1", 1, 4},
        {"[^a&&[a-c]]+", "abcd", 0, 0},
        {"\\h+", "xyzFf0", 3, 6},
        {"\\u0041", "aA", 1, 2},
        {"(?i:'S)", "x'\u017f", 1, 4},
        {"\\s+$", "  a  ", 3, 5},
        {"\\bfoo\\b", "xfoo foo", 5, 8},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        gn_pattern *p = NULL;
        gn_pattern_work work = {0};
        gn_pattern_match m = {0};
        if (gn_pattern_compile(cases[i].regex, strlen(cases[i].regex), false, &p) != GN_OK) {
            fail_msg("%s", gn_error_message());
        }
        size_t len = strlen(cases[i].text);
        assert_int_equal(gn_pattern_find(p, &work, cases[i].text, len, 0, &m), GN_OK);
        if (cases[i].end != 0 && cases[i].start >= 0) {
            if (!m.found || (int)m.start != cases[i].start || (int)m.end != cases[i].end) {
                fail_msg("%s: found %d, %zu to %zu", cases[i].regex, m.found, m.start, m.end);
            }
        } else if (cases[i].start < 0) {
            assert_false(m.found);
        }
        gn_pattern_work_fini(&work);
        gn_pattern_destroy(p);
    }
    static const char *const bad[] = {"[a", "(a", "\\p{Nope}", "\\p", "a\\", "[[:x", "*a", "\\C"};
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        gn_pattern *p = NULL;
        assert_true(failed_as(gn_pattern_compile(bad[i], strlen(bad[i]), false, &p), GN_E_FORMAT,
                              "regular expression", bad[i]));
    }
}

static void test_forms(void **state)
{
    (void)state;
    static const struct {
        gn_norm_kind kind;
        const char *text;
        const char *want;
    } cases[] = {
        {GN_NORM_NFC, "e\u0301", "é"},
        {GN_NORM_NFC, "a\u0301\u0316", "á\u0316"},
        {GN_NORM_NFC, "\u1100\u1161\u11a8", "각"},
        {GN_NORM_NFC, "\u212b", "Å"},
        {GN_NORM_NFC, "ﬁ", "ﬁ"},
        {GN_NORM_NFD, "é각", "e\u0301\u1100\u1161\u11a8"},
        {GN_NORM_NFKC, "ﬁ②", "fi2"},
        {GN_NORM_NFKD, "½", "1\u20442"},
        {GN_NORM_LOWERCASE, "ÀİΣ", "ài\u0307σ"},
        {GN_NORM_STRIP_ACCENTS, "e\u0301\u093f", "e"},
        {GN_NORM_BERT_CLEAN, "a\x01\tb\ufeff\u3000c\ufffd", "a b c"},
        {GN_NORM_BERT_CJK, "a漢b", "a 漢 b"},
        {GN_NORM_SQUEEZE, "  a   b ", "a b"},
        {GN_NORM_SQUEEZE, "   ", ""},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        gn_norm norm = {0};
        gn_norm_work work = {0};
        const char *out;
        size_t len;
        assert_int_equal(gn_norm_add_kind(&norm, cases[i].kind), GN_OK);
        assert_int_equal(
            gn_norm_run(&norm, &work, cases[i].text, strlen(cases[i].text), false, &out, &len),
            GN_OK);
        if (len != strlen(cases[i].want) || memcmp(out, cases[i].want, len) != 0) {
            fail_msg("case %zu: \"%.*s\", expected \"%s\"", i, (int)len, out, cases[i].want);
        }
        gn_norm_work_fini(&work);
        gn_norm_fini(&norm);
    }
}

/* --- what is refused --- */

#define BPE(vocab, merges)                                                                         \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"
#define WITH(part) "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}," part "}"

static const struct {
    const char *json;
    gn_status code;
    const char *fragment;
} bad_json[] = {
    {"[]", GN_E_FORMAT, "expected an object"},
    {"{}", GN_E_FORMAT, "model: expected an object"},
    {BPE("{}", "[]"), GN_E_FORMAT, "found no tokens"},
    {BPE("7", "[]"), GN_E_FORMAT, "vocab: expected"},
    {BPE("{\"a\":\"b\"}", "[]"), GN_E_FORMAT, "\"a\": expected an integer"},
    {BPE("{\"a\":-1}", "[]"), GN_E_FORMAT, "found id -1"},
    {BPE("{\"a\":1000000000}", "[]"), GN_E_FORMAT, "found id 1000000000"},
    {BPE("{\"a\":0,\"b\":0}", "[]"), GN_E_FORMAT, "id 0: found \"a\" and \"b\""},
    {BPE("{\"a\":0}", "[\"a b\"]"), GN_E_FORMAT, "merge 0: found \"a\" + \"b\""},
    {BPE("{\"a\":0}", "[\"a a\"]"), GN_E_FORMAT, "merge 0: found \"a\" + \"a\""},
    {BPE("{\"a\":0}", "[\"a\"]"), GN_E_FORMAT, "entry 0: expected two parts"},
    {BPE("{\"a\":0}", "[[\"a\"]]"), GN_E_FORMAT, "entry 0: expected two parts"},
    {BPE("{\"a\":0}", "[7]"), GN_E_FORMAT, "entry 0: expected two parts"},
    {BPE("{\"a\":0}", "{}"), GN_E_FORMAT, "merges: expected an array"},
    {"{\"model\":{\"type\":\"Magic\",\"vocab\":{\"a\":0}}}", GN_E_UNSUPPORTED, "\"Magic\""},
    {"{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"a\":0},\"merges\":[]}}",
     GN_E_FORMAT, "unk_token: \"u\" is not in the vocabulary"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1e999]]}}", GN_E_FORMAT, ""},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1e300]]}}", GN_E_FORMAT, "finite score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", GN_E_FORMAT, "finite score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[7]}}", GN_E_FORMAT, "a piece and a score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":0}}}", GN_E_FORMAT, "expected an array"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":9,\"vocab\":[[\"a\",1]]}}", GN_E_FORMAT,
     "unk_id: found 9"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1],[\"a\",2]]}}", GN_E_FORMAT,
     "ids 0 and 1 have the same spelling"},
    {"{\"model\":{\"type\":\"WordPiece\",\"max_input_chars_per_word\":0,\"vocab\":{\"a\":0}}}",
     GN_E_FORMAT, "max_input_chars_per_word: found 0"},
    {WITH("\"added_tokens\":{}"), GN_E_FORMAT, "added_tokens: expected an array"},
    {WITH("\"added_tokens\":[{\"id\":1}]"), GN_E_FORMAT, "expected a content"},
    {WITH("\"added_tokens\":[{\"id\":1,\"content\":\"\"}]"), GN_E_FORMAT, "expected a content"},
    {WITH("\"added_tokens\":[{\"id\":0,\"content\":\"b\"}]"), GN_E_FORMAT, "id 0: found"},
    {WITH("\"added_tokens\":[{\"id\":5,\"content\":\"a\"}]"), GN_E_FORMAT, "same spelling"},
    {WITH("\"added_tokens\":[{\"id\":1,\"content\":\"b\",\"lstrip\":1}]"), GN_E_FORMAT, "lstrip"},
    {WITH("\"normalizer\":{}"), GN_E_FORMAT, "normalizer: expected an object with a type"},
    {WITH("\"normalizer\":{\"type\":\"Magic\"}"), GN_E_UNSUPPORTED, "\"Magic\", expected one of"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}"),
     GN_E_FORMAT, "regular expression"},
    {WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!\"}"), GN_E_FORMAT,
     "expected base64"},
    {WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////////\"}"),
     GN_E_FORMAT, "found a trie of 4294967295 bytes"},
    {WITH("\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}"), GN_E_UNSUPPORTED, "UnicodeScripts"},
    {WITH(
         "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"X\"}"),
     GN_E_FORMAT, "behavior \"X\" is not known"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Sequence\"}"), GN_E_FORMAT, "expected an array"},
    {WITH("\"decoder\":{\"type\":\"CTC\"}"), GN_E_UNSUPPORTED, "\"CTC\""},
    {WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",0],\"cls\":[\"b\",1]}"),
     GN_E_FORMAT, "found id 1"},
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
          "{\"id\":\"x\"}}]}"),
     GN_E_FORMAT, "special token \"x\" has no ids"},
};

static void test_bad_json(void **state)
{
    (void)state;
    long live = gn_alloc_live();
    for (size_t i = 0; i < COUNTOF(bad_json); i++) {
        json_error_t error;
        json_t *json = json_loads(bad_json[i].json, 0, &error);
        if (json == NULL) {
            assert_non_null(strstr(bad_json[i].json, "1e999")); /* jansson refuses it itself */
            continue;
        }
        gn_tokenizer *t = NULL;
        gn_status status = gn_tokenizer_create_hf(json, NULL, &t);
        json_decref(json);
        assert_null(t);
        assert_true(failed_as(status, bad_json[i].code, bad_json[i].fragment, bad_json[i].json));
        assert_int_equal(gn_alloc_live(), live);
    }
}

static void test_deep_json(void **state)
{
    (void)state;
    gn_buf text = {0};
    assert_int_equal(gn_buf_puts(&text,
                                 "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":"
                                 "[]},\"normalizer\":"),
                     GN_OK);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(gn_buf_puts(&text, "{\"type\":\"Sequence\",\"normalizers\":["), GN_OK);
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(gn_buf_puts(&text, "]}"), GN_OK);
    }
    assert_int_equal(gn_buf_puts(&text, "}"), GN_OK);
    gn_tokenizer *t = NULL;
    assert_true(failed_as(from_json(text.data, &t), GN_E_LIMIT, "nested over 8 deep", "deep"));
    gn_buf_fini(&text);
}

#define HEAD(n)    "'GGUF' u4:3 u8:0 u8:" #n " "
#define MODEL(m)   "s:tokenizer.ggml.model u4:8 s:" m " "
#define STRS(k, n) "s:tokenizer.ggml." k " u4:9 u4:8 u8:" #n " "
#define INTS(k, n) "s:tokenizer.ggml." k " u4:9 u4:5 u8:" #n " "
#define NUMS(k, n) "s:tokenizer.ggml." k " u4:9 u4:6 u8:" #n " "
#define ID(k, v)   "s:tokenizer.ggml." k " u4:4 u4:" #v " "
#define ARCH       "s:general.architecture u4:8 s:llama "
#define SPM_TOKENS                                                                                 \
    STRS("tokens", 6)                                                                              \
    "s:<unk> s:<s> s:</s> s:\xe2\x96\x81 s:a s:\xe2\x96\x81"                                       \
    "a "
#define SPM_TYPES  INTS("token_type", 6) "u4:2 u4:3 u4:3 u4:1 u4:1 u4:1 "
#define SPM_SCORES NUMS("scores", 6) "f4:0 f4:0 f4:0 f4:-3 f4:-2 f4:-1 "
#define BPE_TOKENS STRS("tokens", 3) "s:a s:b s:ab "

static void test_gguf_spm(void **state)
{
    (void)state;
    gn_tokenizer *t = NULL;
    assert_int_equal(from_gguf(HEAD(5) ARCH MODEL("llama") SPM_TOKENS SPM_TYPES SPM_SCORES, &t),
                     GN_OK);
    expect(t, "a a", 3, GN_ENCODE_BOS | GN_ENCODE_SPECIAL, "1 5 5");
    expect(t, "<s>aa", 5, GN_ENCODE_SPECIAL, "1 5 4");
    expect(t, "az", 2, 0, "5 0");
    assert_int_equal(gn_tokenizer_bos(t), 1);
    assert_int_equal(gn_tokenizer_eos(t), 2);
    assert_true(gn_tokenizer_adds_bos(t));
    assert_true(gn_tokenizer_is_end(t, 2));
    assert_false(gn_tokenizer_is_end(t, 1));
    assert_false(gn_tokenizer_is_end(t, 77));
    gn_tokenizer_destroy(t);
}

static const struct {
    const char *file;
    gn_status code;
    const char *fragment;
} bad_gguf[] = {
    {HEAD(1) ARCH, GN_E_NOT_FOUND, "tokenizer.ggml.model"},
    {HEAD(2) ARCH MODEL("llama"), GN_E_FORMAT, "tokens: not found"},
    {HEAD(3) ARCH MODEL("magic") BPE_TOKENS, GN_E_UNSUPPORTED, "model: found \"magic\""},
    {HEAD(3) ARCH MODEL("gpt2") INTS("tokens", 1) "u4:1 ", GN_E_FORMAT, "array of strings"},
    {HEAD(3) ARCH MODEL("gpt2") STRS("tokens", 0), GN_E_FORMAT, "found no tokens"},
    {HEAD(4) ARCH MODEL("gpt2") STRS("tokens", 2) "s:a s:a " STRS("merges", 0), GN_E_FORMAT,
     "ids 0 and 1 have the same spelling \"a\""},
    {HEAD(3) ARCH MODEL("gpt2") BPE_TOKENS, GN_E_FORMAT, "merges: not found"},
    {HEAD(4) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 1) "s:a ", GN_E_FORMAT,
     "expected two parts"},
    {HEAD(4) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 1) "s:a\\_c ", GN_E_FORMAT,
     "merge 0: found \"a\" + \"c\""},
    {HEAD(4) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 1) "s:b\\_a ", GN_E_FORMAT, "merge 0"},
    {HEAD(5) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 0) "s:tokenizer.ggml.pre u4:8 s:magic ",
     GN_E_UNSUPPORTED, "pre: found \"magic\", expected one of gpt-2, "},
    {HEAD(4) ARCH MODEL("gpt2") BPE_TOKENS INTS("token_type", 2) "u4:1 u4:1 ", GN_E_FORMAT,
     "token_type: found 2 entries, expected one for each of 3 tokens"},
    {HEAD(4) ARCH MODEL("gpt2") BPE_TOKENS INTS("token_type", 3) "u4:1 u4:1 u4:9 ", GN_E_FORMAT,
     "token_type: found 9 for token 2"},
    {HEAD(5) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 0) ID("bos_token_id", 3), GN_E_FORMAT,
     "bos_token_id: found id 3, expected one below the vocabulary's 3"},
    {HEAD(5) ARCH MODEL("gpt2") BPE_TOKENS STRS("merges", 0) ID("eot_token_id", 4000000000),
     GN_E_FORMAT, "eot_token_id: found id 4000000000"},
    {HEAD(4) ARCH MODEL("llama") SPM_TOKENS SPM_TYPES, GN_E_FORMAT, "scores: not found"},
    {HEAD(5) ARCH MODEL("llama") SPM_TOKENS SPM_TYPES NUMS("scores", 1) "f4:0 ", GN_E_FORMAT,
     "scores: found 1 entries"},
    {HEAD(5) ARCH MODEL("llama")
         SPM_TOKENS SPM_TYPES NUMS("scores", 6) "f4:0 f4:nan f4:0 f4:0 f4:0 f4:0 ",
     GN_E_FORMAT, "for token 1, expected a finite number"},
    {HEAD(5) ARCH MODEL("llama")
         SPM_TOKENS SPM_TYPES NUMS("scores", 6) "f4:0 f4:0 f4:-inf f4:0 f4:0 f4:0 ",
     GN_E_FORMAT, "for token 2, expected a finite number"},
    {HEAD(6) ARCH MODEL("t5") SPM_TOKENS SPM_TYPES SPM_SCORES
     "s:tokenizer.ggml.precompiled_charsmap u4:9 u4:0 u8:5 u4:99 u1:0 ",
     GN_E_FORMAT, "precompiled_charsmap: found a trie of 99 bytes"},
};

static void test_bad_gguf(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(bad_gguf); i++) {
        gn_tokenizer *t = NULL;
        gn_status status = from_gguf(bad_gguf[i].file, &t);
        assert_null(t);
        assert_true(failed_as(status, bad_gguf[i].code, bad_gguf[i].fragment, bad_gguf[i].file));
    }
}

/* Each allocation of building, encoding and decoding fails once; nothing leaks, nothing is half
 * done. */
static void test_out_of_memory(void **state)
{
    (void)state;
    json_error_t error;
    json_t *json = json_loads(bpe_json, 0, &error);
    assert_non_null(json);
    bool done = false;
    for (long n = 1; !done && n < 5000; n++) {
        long live = gn_alloc_live();
        alloc_fault failing = {.at = n};
        gn_tokenizer *t = NULL;
        gn_token_list ids = {0};
        gn_buf out = {0};
        gn_alloc_set_fault(fail_nth, &failing);
        gn_status status = gn_tokenizer_create_hf(json, NULL, &t);
        if (status == GN_OK) {
            status = gn_tokenizer_encode(t, "a <s>é aaa\xff", 12, GN_ENCODE_SPECIAL, &ids);
            assert_true(status == GN_OK || ids.n == 0);
        }
        if (status == GN_OK) {
            status = gn_tokenizer_decode(t, ids.ids, ids.n, true, &out);
        }
        gn_alloc_set_fault(NULL, NULL);
        assert_true(status == GN_OK || status == GN_E_NOMEM);
        done = status == GN_OK && failing.seen < n;
        gn_buf_fini(&out);
        gn_token_list_fini(&ids);
        gn_tokenizer_destroy(t);
        assert_int_equal(gn_alloc_live(), live);
    }
    assert_true(done);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_bpe_is_the_naive_one),
        cmocka_unit_test(test_detok),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_deep_json),
        cmocka_unit_test(test_gguf_spm),
        cmocka_unit_test(test_bad_gguf),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
