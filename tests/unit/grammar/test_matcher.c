/* The engine as a whole on small vocabularies: masks against brute force, no dead ends, shortest ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "grammar/gbnf.h"
#include "grammar/ir.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"

static const char *const PIECES[] = {
    "2",
    "t",
    "r",
    "u",
    "e",
    "n",
    "l",
    "f",
    "s",
    "a",
    "b",
    "c",
    "ab",
    "abc",
    "aa",
    "aab",
    "0",
    "1",
    "12",
    "-",
    ".",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "{\"",
    "\":",
    "\":\"",
    "\",",
    "\"}",
    "\",\"",
    "}}",
    "]}",
    "],",
    " ",
    ", ",
    ": ",
    "\": ",
    "\"a",
    "\"b\"",
    "a\"",
    "true",
    "false",
    "null",
    "tr",
    "ue",
    "\xc3",
    "\xa9",
    "\xc3\xa9",
    "e\xcc",
    "(",
    ")",
    "((",
    "))",
    "+",
    "*",
    "1+",
    "+(",
    "\"a\":",
    "1,",
    "1}",
    "1]",
    "[1",
    "[\"",
    "[[",
    "\n",
    "a\xc3\xa9",
    "\xc3\xa9\"",
    "\xc3\xa9\n",
    "\xc3\xa9"
    "a",
    "\xe6",
    "\xe6\x97",
    "\xe6\x97\xa5",
    "\xe6\x97\xa5"
    "b",
    "\xf0\x9f",
    "\xf0\x9f\x98\x80",
    "\xed\xa0",
    "\xed\xa0\x80",
    "a\\",
    "\\n",
    "a\x7f",
    "\xc3\"",
    "b\xe6",
};
#define N_PIECES (sizeof PIECES / sizeof PIECES[0])
#define END      ((int32_t)N_PIECES)

static gn_vocab_index *make_index(void)
{
    gn_vocab_token tokens[N_PIECES + 1];
    for (size_t i = 0; i < N_PIECES; i++) {
        tokens[i] = (gn_vocab_token){PIECES[i], (uint32_t)strlen(PIECES[i]), false};
    }
    tokens[N_PIECES] = (gn_vocab_token){"", 0, true};
    gn_vocab_index *index = NULL;
    assert_int_equal(gn_grammar_vocab_create(tokens, N_PIECES + 1, &index), GN_OK);
    return index;
}

/* Random walks: at each step the mask is what one-token trials say, and the shortest end is one. */
static void check_walks(gn_grammar *grammar, gn_vocab_index *index, int n_walks)
{
    gn_matcher *m = NULL;
    assert_int_equal(gn_matcher_create(grammar, index, &m), GN_OK);
    gn_rng rng = {42};
    uint32_t mask[(N_PIECES + 32) / 32];
    for (int w = 0; w < n_walks; w++) {
        gn_matcher_reset(m);
        for (int step = 0; step < 24; step++) {
            memset(mask, 0xaa, sizeof mask);
            assert_int_equal(gn_matcher_mask(m, mask), GN_OK);
            int32_t allowed[N_PIECES + 1];
            size_t n = 0;
            for (int32_t id = 0; id <= END; id++) {
                bool in_mask = (mask[id / 32] >> (id % 32) & 1) != 0;
                gn_status status = gn_matcher_accept_token(m, id);
                if (in_mask != (status == GN_OK)) {
                    fail_msg("walk %d step %d: token %d \"%s\": mask %d, accept %d", w, step, id,
                             id < END ? PIECES[id] : "END", in_mask, status);
                }
                if (status == GN_OK) {
                    assert_int_equal(gn_matcher_rollback(m, 1), GN_OK);
                    allowed[n++] = id;
                }
            }
            if (n == 0) {
                gn_buf end = {0};
                assert_int_equal(gn_matcher_shortest(m, &end), GN_OK);
                fail_msg("walk %d step %d: no token, but \"%s\" would end it", w, step,
                         end.data != NULL ? end.data : "");
            }
            gn_buf end = {0};
            uint64_t len = gn_matcher_shortest_len(m);
            assert_int_equal(gn_matcher_shortest(m, &end), GN_OK);
            assert_int_equal(end.len, len);
            assert_int_equal(
                gn_matcher_accept_bytes(m, end.data != NULL ? end.data : "", end.len, NULL), GN_OK);
            assert_true(gn_matcher_may_end(m));
            assert_int_equal(gn_matcher_rollback(m, 1), GN_OK);
            gn_buf_fini(&end);
            int32_t pick = allowed[gn_rng_next(&rng) % n];
            if (pick == END) {
                break;
            }
            assert_int_equal(gn_matcher_accept_token(m, pick), GN_OK);
        }
    }
    gn_matcher_destroy(m);
}

static bool accepts(gn_grammar *grammar, const char *text)
{
    gn_matcher *m = NULL;
    assert_int_equal(gn_matcher_create(grammar, NULL, &m), GN_OK);
    gn_status status = gn_matcher_accept_bytes(m, text, strlen(text), NULL);
    bool yes = status == GN_OK && gn_matcher_may_end(m);
    gn_matcher_destroy(m);
    return yes;
}

static void test_regexes(void **state)
{
    (void)state;
    static const char *const list[] = {
        "a*b", "(a|b)*abc",  "(?i)AB?c", "a{2,3}",      "[^a]*",     "\\w+|\\d{1,3}(\\.\\d+)?",
        ".*",  "(aa|aab)*c", "-?(0|1)+", "(\\(+\\)+)*", "\xc3\xa9+",
    };
    gn_vocab_index *index = make_index();
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        gn_grammar *g = NULL;
        assert_int_equal(gn_grammar_regex(list[i], strlen(list[i]), 0, &g), GN_OK);
        check_walks(g, index, 20);
        gn_grammar_destroy(g);
    }
    gn_grammar_vocab_destroy(index);
}

static void test_gbnf(void **state)
{
    (void)state;
    static const char *const list[] = {
        "root ::= expr\nexpr ::= term (\"+\" term | \"*\" term)*\nterm ::= [01]+ | \"(\" expr "
        "\")\"\n",
        "root ::= \"a\" root \"b\" | \"c\"\n",
        "root ::= value\n"
        "value ::= \"{\" (pair (\",\" pair)*)? \"}\" | \"[\" (value (\",\" value)*)? \"]\" | str | "
        "\"true\" | \"null\" | [01]+\n"
        "pair ::= str \":\" \" \"? value\nstr ::= \"\\\"\" [^\"\\\\\\x00-\\x1f]* \"\\\"\"\n",
        "root ::= (x y?){2,4}\nx ::= \"a\" | x2\nx2 ::= \"(\" x \")\"\ny ::= \"b\"*\n",
    };
    gn_vocab_index *index = make_index();
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        gn_grammar *g = NULL;
        assert_int_equal(gn_grammar_gbnf(list[i], strlen(list[i]), &g), GN_OK);
        check_walks(g, index, 20);
        gn_grammar_destroy(g);
    }
    gn_grammar_vocab_destroy(index);
}

static void test_gbnf_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gn_status status;
    } list[] = {
        {"root ::= a\n", GN_E_FORMAT},
        {"a ::= \"x\"\n", GN_E_FORMAT},
        {"root ::= root \"a\" | \"b\"\n", GN_E_UNSUPPORTED},
        {"root ::= x? root \"a\" | \"b\"\nx ::= \"x\"\n", GN_E_UNSUPPORTED},
        {"root ::= \"a\" root\n", GN_E_REFUSED},
        {"root ::= (\"a\"\n", GN_E_FORMAT},
        {"root ::= \"a\" }\n", GN_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        gn_grammar *g = NULL;
        assert_int_equal(gn_grammar_gbnf(list[i].text, strlen(list[i].text), &g), list[i].status);
    }
}

static gn_ir text_node(gn_ir_builder *b, const char *s)
{
    return gn_grammar_ir_literal(b, s, strlen(s));
}

static gn_re text_re(gn_ir_builder *b, const char *s)
{
    return gn_grammar_re_literal(gn_grammar_ir_pool(b), s, strlen(s));
}

/* {"a":…, "b":…, …} with a, b required, "c" free of need, others by a pattern. */
static gn_grammar *make_object(bool ordered, uint32_t min, uint32_t max, uint32_t blanks,
                               bool needs)
{
    gn_ir_builder *b = NULL;
    assert_int_equal(gn_grammar_ir_create(NULL, &b), GN_OK);
    gn_re_pool *pool = gn_grammar_ir_pool(b);
    gn_re other;
    assert_int_equal(gn_grammar_regex_parse(pool, "\"[^abc\"\\\\][^\"\\\\]{0,3}\"", 22, 0, &other),
                     GN_OK);
    gn_ir numbers[2] = {text_node(b, "1"), text_node(b, "12")};
    gn_ir number = gn_grammar_ir_alt(b, numbers, 2);
    static const uint32_t need[] = {0};
    gn_ir_member members[] = {
        {.key = text_re(b, "\"a\""), .value = number, .required = !needs},
        {.key = text_re(b, "\"b\""), .value = text_node(b, "true"), .required = true},
        {.key = text_re(b, "\"c\""), .value = number, .needs = need, .n_needs = needs},
        {.key = other, .value = number, .is_free = true},
    };
    gn_ir_object object = {.members = members,
                           .n_members = 4,
                           .min_props = min,
                           .max_props = max,
                           .ordered = ordered,
                           .style = gn_grammar_ir_json_blanks(pool, blanks)};
    gn_grammar *g = NULL;
    assert_int_equal(gn_grammar_compile(b, gn_grammar_ir_object(b, &object), &g), GN_OK);
    return g;
}

static void test_objects(void **state)
{
    (void)state;
    gn_vocab_index *index = make_index();
    for (int i = 0; i < 16; i++) {
        gn_grammar *g =
            make_object(i & 1, i & 2 ? 3 : 0, i & 4 ? 3 : GN_IR_MANY, i & 8 ? 2 : 0, false);
        check_walks(g, index, 20);
        gn_grammar_destroy(g);
    }
    gn_grammar *g = make_object(false, 0, 2, 0, true);
    check_walks(g, index, 20);
    assert_true(accepts(g, "{\"b\":true}"));
    assert_false(accepts(g, "{\"b\":true,\"c\":1}"));
    gn_grammar_destroy(g);
    g = make_object(false, 0, GN_IR_MANY, 0, false);
    assert_true(accepts(g, "{\"b\": true, \"a\": 1}"));
    assert_true(accepts(g, "{\"a\":12,\"x\":1,\"b\":true,\"c\":1}"));
    assert_false(accepts(g, "{\"a\":12}"));
    assert_false(accepts(g, "{\"a\":12,\"a\":1,\"b\":true}"));
    assert_false(accepts(g, "{\"a\":12,\"b\":true,}"));
    gn_grammar_destroy(g);
    g = make_object(true, 0, GN_IR_MANY, 0, false);
    assert_true(accepts(g, "{\"a\":1,\"b\":true,\"x\":1,\"y\":1}"));
    assert_false(accepts(g, "{\"b\":true,\"a\":1}"));
    gn_grammar_destroy(g);
    gn_grammar_vocab_destroy(index);
}

static void test_arrays(void **state)
{
    (void)state;
    gn_vocab_index *index = make_index();
    for (int i = 0; i < 16; i++) {
        gn_ir_builder *b = NULL;
        assert_int_equal(gn_grammar_ir_create(NULL, &b), GN_OK);
        gn_ir prefix[] = {text_node(b, "true"), text_node(b, "null")};
        gn_re unique[] = {text_re(b, "1"), text_re(b, "12"), text_re(b, "\"a\"")};
        gn_ir_array array = {.prefix = prefix,
                             .n_prefix = i & 1 ? 2 : 0,
                             .items = text_node(b, "1"),
                             .min_items = i & 2 ? 3 : 0,
                             .max_items = i & 4 ? 4 : GN_IR_MANY,
                             .max_matching = GN_IR_MANY,
                             .style = gn_grammar_ir_json_blanks(gn_grammar_ir_pool(b), 0)};
        if (i & 8) {
            array.matching = text_node(b, "\"a\"");
            array.min_matching = 1;
            array.max_matching = 2;
        }
        if (i == 6) {
            array.unique = unique;
            array.n_unique = 3;
            array.max_items = 3;
        }
        gn_grammar *g = NULL;
        assert_int_equal(gn_grammar_compile(b, gn_grammar_ir_array(b, &array), &g), GN_OK);
        check_walks(g, index, 20);
        if (i == 6) {
            assert_true(accepts(g, "[12, \"a\",1]"));
            assert_false(accepts(g, "[12,12,1]"));
        }
        if (i == 8) {
            assert_false(accepts(g, "[1,1]"));
            assert_true(accepts(g, "[1,\"a\",1,\"a\"]"));
            assert_false(accepts(g, "[\"a\",\"a\",\"a\"]"));
        }
        gn_grammar_destroy(g);
    }
    gn_grammar_vocab_destroy(index);
}

static void test_forced(void **state)
{
    (void)state;
    gn_grammar *g = NULL;
    assert_int_equal(gn_grammar_regex("abc(d|ef)", 9, 0, &g), GN_OK);
    gn_matcher *m = NULL;
    assert_int_equal(gn_matcher_create(g, NULL, &m), GN_OK);
    gn_buf out = {0};
    assert_int_equal(gn_matcher_forced(m, 100, &out), GN_OK);
    assert_string_equal(out.data, "abc");
    gn_buf_fini(&out);
    gn_matcher_destroy(m);
    gn_grammar_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regexes),      cmocka_unit_test(test_gbnf),
        cmocka_unit_test(test_gbnf_refused), cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),       cmocka_unit_test(test_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
