/* file/digest: published test vectors, pieces of any size, files. */
#include "pack.h"

#include "file/digest.h"

#include <unistd.h>

/* FIPS 180-4's "abc" and RFC 7693's with a digest of 32 bytes, and those of no bytes. */
static const struct {
    gn_digest_kind kind;
    const char *text;
    const char *hex;
} vectors[] = {
    {GN_DIGEST_SHA256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {GN_DIGEST_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {GN_DIGEST_BLAKE2B, "", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {GN_DIGEST_BLAKE2B, "abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
};

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_COUNTOF(vectors); i++) {
        unsigned char out[GN_DIGEST_BYTES];
        char hex[GN_DIGEST_HEX_BYTES];
        gn_digest *digest = NULL;
        assert_int_equal(gn_digest_create(vectors[i].kind, &digest), GN_OK);
        for (const char *p = vectors[i].text; *p != '\0'; p++) {
            gn_digest_update(digest, p, 1);
        }
        gn_digest_final(digest, out);
        gn_digest_destroy(digest);
        gn_digest_to_hex(out, hex);
        assert_string_equal(hex, vectors[i].hex);
    }
}

typedef struct seen {
    uint64_t done;
    uint64_t total;
    int calls;
    int stop_at; /* 0: never */
} seen;

static bool note(void *ctx, uint64_t done, uint64_t total)
{
    seen *s = ctx;
    assert_true(done >= s->done);
    s->done = done;
    s->total = total;
    s->calls++;
    return s->calls != s->stop_at;
}

static void test_file(void **state)
{
    (void)state;
    enum { BYTES = (9 << 20) + 17 };
    char path[] = "/tmp/ganglion-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    unsigned char *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i++) {
        data[i] = (unsigned char)(i * 31 + (i >> 8));
    }
    write_file(path, data, BYTES);
    long live = gn_alloc_live();
    for (int kind = GN_DIGEST_SHA256; kind <= GN_DIGEST_BLAKE2B; kind++) {
        unsigned char whole[GN_DIGEST_BYTES];
        unsigned char read[GN_DIGEST_BYTES];
        gn_digest *digest = NULL;
        seen progress = {0};
        assert_int_equal(gn_digest_create((gn_digest_kind)kind, &digest), GN_OK);
        gn_digest_update(digest, data, BYTES);
        gn_digest_final(digest, whole);
        gn_digest_destroy(digest);
        assert_int_equal(gn_digest_file(path, (gn_digest_kind)kind, note, &progress, read), GN_OK);
        assert_memory_equal(whole, read, sizeof whole);
        assert_int_equal(progress.done, BYTES);
        assert_int_equal(progress.total, BYTES);
        assert_true(progress.calls >= 3);
        seen stop = {.stop_at = 2};
        assert_int_equal(gn_digest_file(path, (gn_digest_kind)kind, note, &stop, read),
                         GN_E_CANCELLED);
    }
    free(data);
    unsigned char out[GN_DIGEST_BYTES];
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gn_digest_file(path, GN_DIGEST_SHA256, NULL, NULL, out), GN_E_NOT_FOUND);
    assert_int_equal(gn_digest_file("/tmp", GN_DIGEST_SHA256, NULL, NULL, out), GN_E_IO);
    assert_int_equal(gn_alloc_live(), live);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/ganglion-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    long live = gn_alloc_live();
    for (long at = 1; at <= 3; at++) {
        unsigned char out[GN_DIGEST_BYTES];
        alloc_fault failing = {.at = at};
        gn_alloc_set_fault(fail_nth, &failing);
        gn_status status = gn_digest_file(path, GN_DIGEST_SHA256, NULL, NULL, out);
        gn_alloc_set_fault(NULL, NULL);
        assert_int_equal(status, at <= 2 ? GN_E_NOMEM : GN_OK);
        assert_int_equal(gn_alloc_live(), live);
    }
    assert_int_equal(unlink(path), 0);
}

static void test_hex(void **state)
{
    (void)state;
    static const char upper[] = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    unsigned char bytes[GN_DIGEST_BYTES];
    char hex[GN_DIGEST_HEX_BYTES];
    assert_true(gn_digest_from_hex(upper, bytes));
    gn_digest_to_hex(bytes, hex);
    assert_string_equal(hex, vectors[1].hex);
    assert_false(gn_digest_from_hex("", bytes));
    assert_false(gn_digest_from_hex(upper + 1, bytes));
    assert_false(gn_digest_from_hex(
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015Ag", bytes));
    assert_false(gn_digest_from_hex(
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD00", bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests_name("file/digest", tests, NULL, NULL);
}
