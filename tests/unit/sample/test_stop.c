/* Stop strings against a search of the whole text, cut into calls at every byte and at random. */
#include "sample_test.h"

#include "base/buf.h"
#include "base/rng.h"
#include "base/utf8.h"

#define MAX_STRINGS 5

typedef struct stops {
    const char *strings[MAX_STRINGS];
    size_t lens[MAX_STRINGS];
    size_t n;
} stops;

static gn_stop *make_stop(const stops *s)
{
    gn_stop *stop = NULL;
    assert_int_equal(gn_stop_create(s->strings, s->lens, s->n, &stop), GN_OK);
    return stop;
}

static stops list(const char *a, const char *b, const char *c)
{
    const char *all[] = {a, b, c};
    stops s = {0};
    for (size_t i = 0; i < 3 && all[i] != NULL; i++) {
        s.strings[s.n] = all[i];
        s.lens[s.n++] = strlen(all[i]);
    }
    return s;
}

/* The definition: the first end of any stop string in text; of those that end there the longest, of equal
 * ones the first. Returns its index or -1; *end and *start are set on a match. */
static int32_t search(const stops *s, const char *text, size_t len, size_t *start, size_t *end)
{
    for (size_t e = 1; e <= len; e++) {
        int32_t best = -1;
        for (size_t i = 0; i < s->n; i++) {
            if (s->lens[i] <= e && memcmp(text + e - s->lens[i], s->strings[i], s->lens[i]) == 0 &&
                (best < 0 || s->lens[i] > s->lens[best])) {
                best = (int32_t)i;
            }
        }
        if (best >= 0) {
            *end = e;
            *start = e - s->lens[best];
            return best;
        }
    }
    return -1;
}

/* Length of the longest suffix of text that starts a stop string. */
static size_t held_back(const stops *s, const char *text, size_t len)
{
    size_t held = 0;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 1; k < s->lens[i] && k <= len; k++) {
            if (k > held && memcmp(text + len - k, s->strings[i], k) == 0) {
                held = k;
            }
        }
    }
    return held;
}

/* Push text in pieces that end where cuts has a set bit (and at its end); check every step. */
static void check(const stops *s, const char *text, size_t len, uint64_t cuts)
{
    gn_stop *stop = make_stop(s);
    gn_buf shown = {0};
    size_t start = 0;
    size_t end = 0;
    int32_t expected_hit = search(s, text, len, &start, &end);
    int32_t hit = -1;
    size_t from = 0;
    for (size_t at = 1; at <= len; at++) {
        if (at != len && (cuts >> (at % 64) & 1u) == 0) {
            continue;
        }
        size_t emit = 99;
        assert_int_equal(gn_stop_push(stop, text + from, at - from, &emit, &hit), GN_OK);
        assert_int_equal(gn_buf_append(&shown, gn_stop_text(stop), emit), GN_OK);
        bool ended = expected_hit >= 0 && at >= end;
        assert_int_equal(hit, ended ? expected_hit : -1);
        assert_int_equal(shown.len, ended ? start : at - held_back(s, text, at));
        from = at;
    }
    size_t rest = gn_stop_flush(stop);
    assert_int_equal(gn_buf_append(&shown, gn_stop_text(stop), rest), GN_OK);
    assert_int_equal(shown.len, expected_hit >= 0 ? start : len);
    assert_memory_equal(shown.data, text, shown.len);
    assert_int_equal(gn_stop_flush(stop), 0);
    gn_buf_fini(&shown);
    gn_stop_destroy(stop);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Hello.\nUser: and more", "Use\nUse\nUser:",     "aaaaab", "ababababc", "\n\n\nUser",
        "nothing here",           "naïve “quoted” 東京", "abcd",   "a",         "xabcx"};
    const stops lists[] = {list("\nUser:", "\n\nUser", NULL),
                           list("aab", "abab", "b"),
                           list("”", "東京", "ïv"),
                           list("abcd", "bcd", "bc"),
                           list("bcd", "abcde", NULL),
                           list("ababc", "babd", NULL),
                           list("a", "a", "ab"),
                           list(NULL, NULL, NULL)};
    for (size_t t = 0; t < GN_COUNTOF(texts); t++) {
        for (size_t l = 0; l < GN_COUNTOF(lists); l++) {
            size_t len = strlen(texts[t]);
            check(&lists[l], texts[t], len, 0);
            check(&lists[l], texts[t], len, ~(uint64_t)0);
            for (size_t cut = 1; cut < len; cut++) {
                check(&lists[l], texts[t], len, (uint64_t)1 << cut);
            }
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    gn_rng rng = {.state = 8};
    for (int round = 0; round < 20000; round++) {
        char pool[MAX_STRINGS][6];
        stops s = {.n = gn_rng_next(&rng) % (MAX_STRINGS + 1)};
        uint64_t letters = 1 + gn_rng_next(&rng) % 3;
        for (size_t i = 0; i < s.n; i++) {
            s.strings[i] = pool[i];
            s.lens[i] = 1 + gn_rng_next(&rng) % sizeof pool[i];
            for (size_t k = 0; k < s.lens[i]; k++) {
                pool[i][k] = (char)('a' + gn_rng_next(&rng) % letters);
            }
        }
        char text[50];
        size_t len = 1 + gn_rng_next(&rng) % sizeof text;
        for (size_t k = 0; k < len; k++) {
            text[k] = (char)('a' + gn_rng_next(&rng) % (letters + 1));
        }
        check(&s, text, len, gn_rng_next(&rng));
    }
}

static void test_bytes(void **state)
{
    (void)state;
    /* NUL and bytes above 127 are bytes like any other. */
    stops s = {.strings = {"\0\xff", "\xff\0"}, .lens = {2, 2}, .n = 2};
    check(&s, "ab\0\0\xff\0", 6, ~(uint64_t)0);
    check(&s, "ab\xff\xff\0", 5, 0);
}

static void test_utf8_stays_whole(void **state)
{
    (void)state;
    /* Three characters that share their first two bytes with the stop string. */
    stops s = list("“stop”", "€€", NULL);
    const char *text = "“stopp” €‚€uro „so“";
    gn_stop *stop = make_stop(&s);
    gn_buf shown = {0};
    for (size_t at = 0; text[at] != '\0';) {
        uint32_t cp = 0;
        size_t n = gn_utf8_decode(text + at, strlen(text + at), &cp);
        size_t emit;
        int32_t hit;
        assert_int_equal(gn_stop_push(stop, text + at, n, &emit, &hit), GN_OK);
        assert_int_equal(hit, -1);
        assert_true(gn_utf8_valid(gn_stop_text(stop), emit));
        assert_int_equal(gn_buf_append(&shown, gn_stop_text(stop), emit), GN_OK);
        at += n;
    }
    size_t rest = gn_stop_flush(stop);
    assert_int_equal(gn_buf_append(&shown, gn_stop_text(stop), rest), GN_OK);
    assert_string_equal(shown.data, text);
    gn_buf_fini(&shown);
    gn_stop_destroy(stop);
}

static void test_long(void **state)
{
    (void)state;
    enum { n = 200000 };
    char *a = gn_alloc(n);
    memset(a, 'a', n);
    a[n - 1] = 'b'; /* a…ab: every byte of a…a falls back */
    stops s = {.strings = {a}, .lens = {n}, .n = 1};
    gn_stop *stop = make_stop(&s);
    size_t emit;
    int32_t hit = -1;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gn_stop_push(stop, a, n - 1, &emit, &hit), GN_OK);
        assert_int_equal(emit, i == 0 ? 0 : n - 1);
        assert_int_equal(hit, -1);
    }
    assert_int_equal(gn_stop_push(stop, "b", 1, &emit, &hit), GN_OK);
    assert_int_equal(hit, 0);
    assert_int_equal(emit, 0);
    gn_stop_destroy(stop);
    gn_free(a);
}

static void test_arguments(void **state)
{
    (void)state;
    gn_stop *stop = NULL;
    const char *strings[] = {"a", ""};
    size_t lens[] = {1, 0};
    assert_int_equal(gn_stop_create(strings, lens, 2, &stop), GN_E_ARG);
    assert_string_equal(gn_error_message(), "stop string 1: found an empty string");
    lens[1] = SIZE_MAX;
    assert_int_equal(gn_stop_create(strings, lens, 2, &stop), GN_E_LIMIT);
    assert_null(stop);
    gn_stop_destroy(NULL);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    stops s = list("needle", "hay", NULL);
    gn_status status = GN_E_NOMEM;
    for (int n = 1; status != GN_OK; n++) {
        assert_in_range(n, 1, 10);
        int left = n;
        gn_alloc_set_fault(fail_nth, &left);
        gn_stop *stop = NULL;
        status = gn_stop_create(s.strings, s.lens, s.n, &stop);
        if (status == GN_OK) {
            size_t emit;
            int32_t hit;
            status = gn_stop_push(stop, "x needl", 7, &emit, &hit);
            if (status != GN_OK) { /* as if the call had never been made */
                assert_int_equal(gn_stop_push(stop, "x needl", 7, &emit, &hit), GN_OK);
            }
            assert_int_equal(emit, 2);
        }
        gn_alloc_set_fault(NULL, NULL);
        gn_stop_destroy(stop);
        assert_int_equal(gn_alloc_live(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_utf8_stays_whole),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
