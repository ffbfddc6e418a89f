/* file/gguf: crafted faults. Each is a valid file with one thing wrong, and must be refused as
 * GN_E_FORMAT with one line that names place, found and expected, with few allocations and no leak. */
#include "pack.h"

#include "file/gguf.h"

typedef struct fault {
    const char *name;
    const char *text; /* for pack() */
    const char *fragment;
} fault;

/* The valid file: one key, tensors a (F32 [2, 32]) and b (Q8_0 [32]). */
#define HEAD(n_tensors, n_keys) "'GGUF' u4:3 u8:" #n_tensors " u8:" #n_keys " "
#define ARCH                    "s:general.architecture u4:8 s:llama "
#define KEY(text)               HEAD(2, 2) ARCH text " " A B DATA
#define TENSOR(text)            HEAD(2, 1) ARCH A text " " DATA
#define ALIGN(text)             KEY("s:general.alignment " text)
#define A                       "s:a u4:2 u8:32 u8:2 u4:0 u8:0 "
#define B                       "s:b u4:1 u8:32 u4:8 u8:256 "
#define DATA                    "align:32 z:290"

static const fault faults[] = {
    /* header */
    {"empty file", "", "offset 0: found an empty file"},
    {"1 byte", "'G'", "found a file of 1 bytes, expected at least 24"},
    {"3 bytes", "'GGU'", "found a file of 3 bytes"},
    {"4 bytes", "'GGUF'", "found a file of 4 bytes"},
    {"7 bytes", "'GGUF' u2:3 u1:0", "found a file of 7 bytes"},
    {"23 bytes", "'GGUF' u4:3 u8:0 u4:0 u2:0 u1:0", "found a file of 23 bytes"},
    {"wrong magic", "'GGML' u4:3 u8:0 u8:0", "magic: found \"GGML\", expected \"GGUF\""},
    {"magic with control bytes", "'\\x1b[2J' u4:3 u8:0 u8:0", "magic: found \"\\x1b[2J\""},
    {"another format", "'{\"a\":1}' z:40", "magic: found \"{\\\"a\\\"\""},
    {"swapped magic", "'FUGG' u4:3 u8:0 u8:0", "byte-swapped (big endian)"},
    {"big endian", "'GGUF' u4:0x03000000 u8:0 u8:0",
     "version: found 50331648: the file is byte-swapped"},
    {"version 0", "'GGUF' u4:0 u8:0 u8:0", "version: found 0, expected 2 or 3"},
    {"version 1", "'GGUF' u4:1 u4:0 u4:0 z:8", "version: found 1, expected 2 or 3"},
    {"version 4", "'GGUF' u4:4 u8:0 u8:0", "version: found 4, expected 2 or 3"},
    {"version 2^32-1", "'GGUF' u4:0xffffffff u8:0 u8:0", "version: found 4294967295"},
    {"2^63 tensors", HEAD(0x8000000000000000, 1) ARCH A B DATA,
     "offset 8: tensor count: found 9223372036854775808, expected at most"},
    {"2^64-1 tensors", HEAD(-1, 1) ARCH A B DATA, "tensor count: found 18446744073709551615"},
    {"2^63 keys", HEAD(2, 0x8000000000000000) ARCH A B DATA, "offset 16: key count: found"},
    {"2^58 keys", HEAD(2, 0x400000000000000) ARCH A B DATA, "key count: found"},
    {"100,000 keys", HEAD(0, 100000) "z:2000000",
     "key count: found 100000, expected at most 65536"},
    {"100,000 tensors", HEAD(100000, 0) "z:4000000",
     "tensor count: found 100000, expected at most 65536"},
    {"one key too many", HEAD(2, 2) ARCH A B DATA, "tensor 1 of 2: offset 84: tensor name"},
    {"one tensor too many", HEAD(3, 1) ARCH A B DATA, "tensor 3 of 3"},
    /* keys */
    {"empty key", KEY("s: u4:4 u4:1"), "key \"\" is empty"},
    {"key of 2^40", KEY("u8:0x10000000000 'k' u4:4 u4:1"), "key: found a length of 1099511627776"},
    {"key of 2^64-1", KEY("u8:-1 'k' u4:4 u4:1"), "key: found a length of 18446744073709551615"},
    {"key with NUL", KEY("s:k\\x00 u4:4 u4:1"), "key \"k\\x00\" has a control character"},
    {"key with a line break", KEY("s:a\\x0ab u4:4 u4:1"),
     "key \"a\\x0ab\" has a control character"},
    {"key not UTF-8", KEY("s:k\\xff u4:4 u4:1"), "key \"k\\xff\" is not UTF-8"},
    {"key too long", HEAD(0, 1) "u8:65536 z:65536 u4:4 u4:1", "is too long, expected 1 to 65535"},
    {"key twice", KEY(ARCH), "key \"general.architecture\": found twice"},
    {"key twice, other type", KEY("s:general.architecture u4:4 u4:1"),
     "found twice, expected once"},
    {"no architecture", HEAD(0, 1) "s:k u4:4 u4:1", "\"general.architecture\": not found"},
    {"architecture a number", HEAD(0, 1) "s:general.architecture u4:4 u4:1",
     "\"general.architecture\": found type u32, expected string"},
    {"architecture empty", HEAD(0, 1) "s:general.architecture u4:8 s:", "found an empty string"},
    {"model without architecture", HEAD(0, 1) "s:general.type u4:8 s:model",
     "\"general.architecture\": not found"},
    /* values */
    {"type 13", KEY("s:k u4:13 u4:1"),
     "key \"k\": offset 78: value type: found 13, expected 0 to 12"},
    {"type 2^32-1", KEY("s:k u4:-1 u4:1"), "value type: found 4294967295"},
    {"bool 2", KEY("s:k u4:7 u1:2"), "key \"k\": offset 82: bool: found 2, expected 0 or 1"},
    {"bool 255", KEY("s:k u4:7 u1:255"), "bool: found 255"},
    {"bool 2 in an array", KEY("s:k u4:9 u4:7 u8:2 u1:0 u1:2"), "bool: found 2"},
    {"string past the end", KEY("s:k u4:8 u8:5000 'x'"), "string: found a length of 5000"},
    {"string of 2^64-1", KEY("s:k u4:8 u8:-1"), "string: found a length of 18446744073709551615"},
    {"string of 2^64-8", KEY("s:k u4:8 u8:-8"), "string: found a length of 18446744073709551608"},
    {"array of type 13", KEY("s:k u4:9 u4:13 u8:1 u1:0"), "array element type: found 13"},
    {"array of 2^60 u8", KEY("s:k u4:9 u4:0 u8:0x1000000000000000"),
     "array count: found 1152921504606846976"},
    {"array of 2^61 u64", KEY("s:k u4:9 u4:10 u8:0x2000000000000000"), "array count: found"},
    {"array of 2^60 strings", KEY("s:k u4:9 u4:8 u8:0x1000000000000000"), "array count: found"},
    {"array of 2^60 arrays", KEY("s:k u4:9 u4:9 u8:0x1000000000000000"), "array count: found"},
    {"string in an array past the end", KEY("s:k u4:9 u4:8 u8:2 s:ok u8:9999"),
     "string: found a length of 9999"},
    {"arrays 9 deep", KEY("s:k u4:9 deep:9 u4:0 u8:0"),
     "arrays in arrays: found more than 8 levels"},
    {"arrays 10,000 deep", KEY("s:k u4:9 deep:10000 u4:0 u8:0"),
     "arrays in arrays: found more than 8"},
    {"count in an inner array", KEY("s:k u4:9 u4:9 u8:1 u4:0 u8:0x1000000000000000"),
     "array count: found"},
    {"value past the end", HEAD(0, 2) ARCH "s:k u4:10 u4:0",
     "key \"k\": offset 82: value: found 4 bytes left in the file, expected 8"},
    /* alignment */
    {"alignment 0", ALIGN("u4:4 u4:0"), "\"general.alignment\": found 0, expected a power of two"},
    {"alignment 1", ALIGN("u4:4 u4:1"), "\"general.alignment\": found 1"},
    {"alignment 3", ALIGN("u4:4 u4:3"), "\"general.alignment\": found 3"},
    {"alignment 24", ALIGN("u4:4 u4:24"), "\"general.alignment\": found 24"},
    {"alignment 2^17", ALIGN("u4:4 u4:0x20000"), "\"general.alignment\": found 131072"},
    {"alignment 2^31", ALIGN("u4:4 u4:0x80000000"), "\"general.alignment\": found 2147483648"},
    {"alignment a u64", ALIGN("u4:10 u8:32"),
     "\"general.alignment\": found type u64, expected u32"},
    {"alignment a string", ALIGN("u4:8 s:32"),
     "\"general.alignment\": found type string, expected u32"},
    {"alignment an array", ALIGN("u4:9 u4:4 u8:1 u4:32"), "found type array, expected u32"},
    /* tensors */
    {"name empty", TENSOR("s: u4:1 u8:32 u4:8 u8:256"), "tensor 2 of 2: offset"},
    {"name too long",
     TENSOR("s:0123456789012345678901234567890123456789012345678901234567890123x u4:1 u8:32 u4:8 "
            "u8:256"),
     "is too long, expected 1 to 64"},
    {"name twice", TENSOR("s:a u4:1 u8:32 u4:8 u8:256"), "tensor \"a\": found twice"},
    {"name a path", TENSOR("s:../x u4:1 u8:32 u4:8 u8:256"),
     "tensor name \"../x\" has a path part \"..\""},
    {"name a deep path", TENSOR("s:x/../y u4:1 u8:32 u4:8 u8:256"), "has a path part \"..\""},
    {"name a Windows path", TENSOR("s:x\\x5c.. u4:1 u8:32 u4:8 u8:256"), "has a path part \"..\""},
    {"name not UTF-8", TENSOR("s:\\xc0\\x80 u4:1 u8:32 u4:8 u8:256"),
     "tensor name \"\\xc0\\x80\" is not UTF-8"},
    {"name of 2^62", TENSOR("u8:0x4000000000000000 'b' u4:1 u8:32 u4:8 u8:256"),
     "tensor name: found a length of"},
    {"0 dimensions", TENSOR("s:b u4:0 u4:8 u8:256"),
     "tensor \"b\": offset 119: number of dimensions: found 0, expected 1 to 4"},
    {"5 dimensions", TENSOR("s:b u4:5 u8:1 u8:1 u8:1 u8:1 u8:1 u4:0 u8:256"),
     "number of dimensions: found 5"},
    {"2^32-1 dimensions", TENSOR("s:b u4:-1 u8:32 u4:8 u8:256"),
     "number of dimensions: found 4294967295"},
    {"dimension 0", TENSOR("s:b u4:1 u8:0 u4:8 u8:256"),
     "tensor \"b\": offset 123: dimension 0: found 0"},
    {"dimension -1", TENSOR("s:b u4:1 u8:-1 u4:8 u8:256"),
     "dimension 0: found 18446744073709551615"},
    {"2^42+1 twice", TENSOR("s:b u4:2 u8:0x40000000001 u8:0x40000000001 u4:0 u8:256"),
     "dimension 1: found 4398046511105, expected a product of dimensions below 2^63"},
    {"INT64_MAX times 2", TENSOR("s:b u4:2 u8:0x7fffffffffffffff u8:2 u4:0 u8:256"),
     "product of dimensions below 2^63"},
    {"2^62 f32", TENSOR("s:b u4:1 u8:0x4000000000000000 u4:0 u8:256"),
     "the product of dimensions wraps"},
    {"2^31 squared f32", TENSOR("s:b u4:2 u8:0x80000000 u8:0x80000000 u4:0 u8:256"),
     "the product of dimensions wraps"},
    {"row not in blocks", TENSOR("s:b u4:1 u8:33 u4:8 u8:256"),
     "row length: found 33, expected a multiple of 32 (the block of Q8_0)"},
    {"row not in K blocks", TENSOR("s:b u4:2 u8:32 u8:8 u4:12 u8:256"),
     "expected a multiple of 256 (the block of Q4_K)"},
    {"removed type 4", TENSOR("s:b u4:1 u8:32 u4:4 u8:256"),
     "tensor type: found 4, expected a type number in use"},
    {"removed type 31", TENSOR("s:b u4:1 u8:32 u4:31 u8:256"), "tensor type: found 31"},
    {"type 99", TENSOR("s:b u4:1 u8:32 u4:99 u8:256"), "tensor type: found 99"},
    {"our own type number", TENSOR("s:b u4:1 u8:32 u4:1001 u8:256"), "tensor type: found 1001"},
    {"type 2^32-1", TENSOR("s:b u4:1 u8:32 u4:-1 u8:256"), "tensor type: found 4294967295"},
    /* data */
    {"offset unaligned", TENSOR("s:b u4:1 u8:32 u4:8 u8:257"),
     "tensor offset: found 257, expected a multiple of 32"},
    {"offset past the end", TENSOR("s:b u4:1 u8:32 u4:8 u8:288"),
     "tensor \"b\": found 34 bytes at offset 288 of the data section, expected at most 290 bytes "
     "in all"},
    {"offset 2^64-32", TENSOR("s:b u4:1 u8:32 u4:8 u8:-32"), "at offset 18446744073709551584"},
    {"offset 2^63", TENSOR("s:b u4:1 u8:32 u4:8 u8:0x8000000000000000"),
     "at offset 9223372036854775808"},
    {"overlap", TENSOR("s:b u4:1 u8:32 u4:8 u8:224"),
     "tensor \"b\": found offset 224, expected 256 or more (the end of tensor \"a\")"},
    {"the same place", TENSOR("s:b u4:2 u8:32 u8:2 u4:0 u8:0"),
     "found offset 0, expected 256 or more"},
    {"one byte short", HEAD(2, 1) ARCH A B "align:32 z:289",
     "tensor \"b\": found 34 bytes at offset 256"},
    {"half short", HEAD(2, 1) ARCH A B "align:32 z:145",
     "tensor \"a\": found 256 bytes at offset 0"},
    {"no data section", HEAD(1, 1) ARCH "s:long_name_of_a_tensor u4:1 u8:1 u4:0 u8:0",
     "data section: found the end of the file"},
    /* split sets */
    {"part past the count", KEY("s:split.no u4:2 u2:1"),
     "\"split.no\": found 1, expected less than split.count"},
    {"count a string", KEY("s:split.count u4:8 s:2"),
     "\"split.count\": found type string, expected an integer"},
    {"count negative", KEY("s:split.count u4:5 u4:-2"),
     "\"split.count\": found -2, expected 0 or more"},
    {"count too large", KEY("s:split.count u4:4 u4:65536"),
     "\"split.count\": found 65536, expected at most 65535"},
};

static void test_valid(void **state)
{
    (void)state;
    gn_buf buf = {0};
    gn_gguf *g = NULL;
    pack(&buf, HEAD(2, 1) ARCH A B DATA);
    assert_int_equal(gn_gguf_open_memory(buf.data, buf.len, &g), GN_OK);
    gn_gguf_close(g);
    gn_buf_fini(&buf);
}

static void test_faults(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < GN_COUNTOF(faults); i++) {
        gn_buf buf = {0};
        pack(&buf, faults[i].text);
        unsigned char *bytes = exact_copy(buf.data, buf.len);
        size_t n = buf.len;
        gn_buf_fini(&buf);
        long live = gn_alloc_live();
        alloc_fault count = {0};
        gn_gguf *g = NULL;
        gn_alloc_set_fault(fail_nth, &count);
        gn_status status = gn_gguf_open_memory(bytes, n, &g);
        gn_alloc_set_fault(NULL, NULL);
        bad += !failed_as(status, GN_E_FORMAT, faults[i].fragment, faults[i].name);
        assert_null(g);
        assert_int_equal(gn_alloc_live(), live);
        assert_true(count.seen < 10);
        free(bytes);
    }
    assert_int_equal(bad, 0);
}

/* A valid file cut at any byte is refused. */
static void test_truncated(void **state)
{
    (void)state;
    gn_buf buf = {0};
    pack(&buf, HEAD(2, 4) ARCH "s:t u4:9 u4:8 u8:2 s:ab s:c s:n u4:9 u4:9 u8:1 u4:7 u8:2 u1:1 u1:0 "
                               "s:general.alignment u4:4 u4:8 " A B "align:8 z:290");
    gn_gguf *g = NULL;
    assert_int_equal(gn_gguf_open_memory(buf.data, buf.len, &g), GN_OK);
    gn_gguf_close(g);
    for (size_t n = 0; n < buf.len; n++) {
        unsigned char *bytes = exact_copy(buf.data, n);
        g = NULL;
        char which[32];
        (void)snprintf(which, sizeof which, "cut at %zu", n);
        assert_true(failed_as(gn_gguf_open_memory(bytes, n, &g), GN_E_FORMAT, "found", which));
        assert_null(g);
        free(bytes);
    }
    gn_buf_fini(&buf);
}

/* Any one byte changed: refused or read, but never a crash, and what is read can be walked. */
static void test_flipped(void **state)
{
    (void)state;
    gn_buf buf = {0};
    pack(&buf, HEAD(2, 3) ARCH
         "s:t u4:9 u4:8 u8:2 s:ab s:c s:n u4:9 u4:9 u8:1 u4:7 u8:2 u1:1 u1:0 " A B DATA);
    static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x20, 0x08};
    for (size_t at = 0; at + 290 < buf.len; at++) {
        for (size_t c = 0; c < GN_COUNTOF(changes); c++) {
            unsigned char *bytes = exact_copy(buf.data, buf.len);
            bytes[at] ^= changes[c];
            gn_gguf *g = NULL;
            if (gn_gguf_open_memory(bytes, buf.len, &g) == GN_OK) {
                unsigned sum = 0;
                for (size_t i = 0; i < gn_gguf_n_tensors(g); i++) {
                    const gn_view *v = &gn_gguf_tensor_at(g, i)->view;
                    sum += *((const unsigned char *)v->data + v->bytes - 1);
                }
                assert_true(sum <= 2 * 255);
            }
            gn_gguf_close(g);
            free(bytes);
        }
    }
    gn_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped),
    };
    return cmocka_run_group_tests_name("file/gguf_faults", tests, NULL, NULL);
}
