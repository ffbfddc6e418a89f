/* Cache files of packed weights: what is written comes back, whatever else lies there is refused, and the
 * folder stays within its limit. */
#include "base/alloc.h"
#include "file/panel_cache.h"
#include "file/panel_format.h"
#include "tensor/panels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 40, COLUMNS = 256, ROW_BYTES = COLUMNS / 32 * 18, N = 3 };

static uint8_t blocks[ROWS * ROW_BYTES];
static const float plain[16];
static char folder[64];

/* Two quantized weights, the second a part of the first, and one that is never packed (a vector). */
static const gn_view first = {.dtype = GN_DTYPE_Q4_0,
                              .n_dims = 2,
                              .shape = {ROWS, COLUMNS, 1, 1},
                              .data = blocks,
                              .bytes = sizeof blocks,
                              .row_bytes = ROW_BYTES};
static const gn_view second = {.dtype = GN_DTYPE_Q4_0,
                               .n_dims = 2,
                               .shape = {16, COLUMNS, 1, 1},
                               .data = blocks,
                               .bytes = (size_t)16 * ROW_BYTES,
                               .row_bytes = ROW_BYTES};
static const gn_view third = {.dtype = GN_DTYPE_F64,
                              .n_dims = 1,
                              .shape = {8, 1, 1, 1},
                              .data = plain,
                              .bytes = sizeof plain,
                              .row_bytes = sizeof plain};
static const gn_view *const weights[N] = {&first, &second, &third};

static gn_panel_key key_of(unsigned char c)
{
    gn_panel_key key;
    memset(key.digest, c, sizeof key.digest);
    return key;
}

static gn_panel_write job_of(unsigned char c, const char *model)
{
    return (gn_panel_write){
        .folder = folder, .model = model, .key = key_of(c), .weights = weights, .n = N};
}

static void path_of(unsigned char c, const char *suffix, char out[160])
{
    (void)snprintf(out, 160, "%s/", folder);
    for (int i = 0; i < 16; i++) {
        (void)snprintf(out + strlen(out), 8, "%02x", c);
    }
    (void)snprintf(out + strlen(out), 16, "%s", suffix);
}

static gn_status open_key(unsigned char c, gn_panel_cache **out)
{
    gn_panel_key key = key_of(c);
    return gn_panel_cache_open(folder, &key, weights, N, out);
}

static size_t n_files(void)
{
    gn_panel_cache_entry *entries = NULL;
    size_t n = 0;
    assert_int_equal(gn_panel_cache_list(folder, &entries, &n), GN_OK);
    gn_free(entries);
    return n;
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof blocks; i++) {
        blocks[i] = (uint8_t)(i * 37 + i / 251);
    }
    (void)snprintf(folder, sizeof folder, "/tmp/ganglion-panels-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    size_t n;
    uint64_t bytes;
    int bad = gn_panel_cache_remove(folder, NULL, &n, &bytes) != GN_OK;
    return bad || rmdir(folder) != 0 ? -1 : 0;
}

static void check_equal(unsigned char c)
{
    gn_panel_cache *cache = NULL;
    assert_int_equal(open_key(c, &cache), GN_OK);
    for (size_t i = 0; i < N; i++) {
        size_t stride = gn_panels_stride(weights[i]);
        const void *found = gn_panel_cache_at(cache, i);
        if (stride == 0) {
            assert_null(found);
            continue;
        }
        size_t n = gn_panels_count(weights[i]);
        void *expected = gn_alloc_aligned(n, stride);
        _Alignas(64) unsigned char scratch[GN_PANELS_SCRATCH];
        gn_panels_pack(weights[i], 0, n, scratch, expected);
        assert_int_equal((uintptr_t)found % 64, 0);
        assert_memory_equal(found, expected, n * stride);
        gn_free_aligned(expected);
    }
    gn_panel_cache_close(cache);
}

static void test_what_is_written_comes_back(void **state)
{
    (void)state;
    gn_panel_write job = job_of(1, "/models/a.gguf");
    gn_panel_cache *cache = NULL;
    assert_int_equal(open_key(1, &cache), GN_E_NOT_FOUND);
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    check_equal(1);
    assert_int_equal(open_key(2, &cache), GN_E_NOT_FOUND);
    struct stat st;
    char path[160];
    path_of(1, ".panels", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal((uint64_t)st.st_size, gn_panel_cache_bytes(weights, N));
}

/* Every byte of header and table, and the samples: any change is seen. A cut too. */
static void test_damage_is_refused(void **state)
{
    (void)state;
    gn_panel_write job = job_of(1, "m");
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    char path[160];
    path_of(1, ".panels", path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    gn_panel_row rows[N];
    assert_int_equal(gn_panel_layout(weights, N, rows), (uint64_t)size);
    off_t places[] = {0,
                      9,
                      13,
                      20,
                      48,
                      56,
                      70,
                      2000,
                      4095,
                      4096,
                      4096 + 30,
                      (off_t)rows[0].offset,
                      (off_t)(rows[0].offset + rows[0].n_panels * rows[0].stride - 1),
                      (off_t)rows[1].offset + 255,
                      size - 1};
    gn_panel_cache *cache = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        unsigned char byte;
        assert_int_equal(pread(fd, &byte, 1, places[i]), 1);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, places[i]), 1);
        assert_int_equal(open_key(1, &cache), GN_E_FORMAT);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, places[i]), 1);
    }
    check_equal(1);
    off_t cuts[] = {0, 1, 4095, 4096, 4200, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        assert_int_equal(ftruncate(fd, cuts[i]), 0);
        assert_int_equal(open_key(1, &cache), GN_E_FORMAT);
    }
    (void)close(fd);
    assert_int_equal(gn_panel_cache_write(&job), GN_OK); /* written anew over the damaged one */
    check_equal(1);
    assert_int_equal(n_files(), 1);
}

static void test_other_weights_are_refused(void **state)
{
    (void)state;
    gn_panel_write job = job_of(1, "m");
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    const gn_view *const fewer[] = {&first, &second};
    const gn_view *const swapped[] = {&second, &first, &third};
    gn_panel_key key = key_of(1);
    gn_panel_cache *cache = NULL;
    assert_int_equal(gn_panel_cache_open(folder, &key, fewer, 2, &cache), GN_E_FORMAT);
    assert_int_equal(gn_panel_cache_open(folder, &key, swapped, N, &cache), GN_E_FORMAT);
}

static void test_one_writer_at_a_time(void **state)
{
    (void)state;
    char part[160];
    path_of(1, ".part", part);
    int fd = open(part, O_RDWR | O_CREAT, 0644);
    assert_int_equal(write(fd, "left", 4), 4);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    gn_panel_write job = job_of(1, "m");
    assert_int_equal(gn_panel_cache_write(&job), GN_E_STATE);
    assert_int_equal(access(part, F_OK), 0); /* the other's part is left alone */
    size_t n;
    uint64_t bytes;
    assert_int_equal(gn_panel_cache_remove(folder, NULL, &n, &bytes), GN_OK);
    assert_int_equal(n, 0);
    (void)close(fd); /* the writer dies; what it left is taken over */
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    assert_int_not_equal(access(part, F_OK), 0);
    check_equal(1);
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    return false;
}

static void test_a_good_file_is_not_written_again(void **state)
{
    (void)state;
    gn_panel_write job = job_of(1, "m");
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    job.progress = stop_at_once; /* would cancel a second one */
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    char path[160];
    path_of(1, ".part", path);
    assert_int_not_equal(access(path, F_OK), 0);
    check_equal(1);
    path_of(1, ".panels", path);
    assert_int_equal(truncate(path, 5000), 0);
    job.progress = NULL;
    assert_int_equal(gn_panel_cache_write(&job), GN_OK);
    check_equal(1);
}

static void test_failures_leave_nothing(void **state)
{
    (void)state;
    gn_panel_write job = job_of(1, "m");
    job.progress = stop_at_once;
    assert_int_equal(gn_panel_cache_write(&job), GN_E_CANCELLED);
    assert_int_equal(n_files(), 0);
    job.progress = NULL;
    job.limit_bytes = 100;
    assert_int_equal(gn_panel_cache_write(&job), GN_E_LIMIT);
    assert_int_equal(n_files(), 0);
    job.limit_bytes = 0;
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = {6000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gn_status status = gn_panel_cache_write(&job);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, GN_E_LIMIT);
    assert_int_equal(n_files(), 0);
    char inside_a_file[160];
    path_of(9, ".panels", inside_a_file);
    int fd = open(inside_a_file, O_CREAT | O_WRONLY, 0644);
    (void)close(fd);
    job.folder = inside_a_file;
    assert_int_equal(gn_panel_cache_write(&job), GN_E_UNAVAILABLE);
}

static void test_least_used_goes_first(void **state)
{
    (void)state;
    gn_panel_write a = job_of(1, "/models/a");
    gn_panel_write b = job_of(2, "/models/b");
    gn_panel_write c = job_of(3, "/models/c");
    c.limit_bytes = 3 * gn_panel_cache_bytes(weights, N) - 1;
    assert_int_equal(gn_panel_cache_write(&a), GN_OK);
    assert_int_equal(gn_panel_cache_write(&b), GN_OK);
    char path[160];
    path_of(2, ".panels", path);
    struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    assert_int_equal(gn_panel_cache_write(&c), GN_OK);
    gn_panel_cache *cache = NULL;
    assert_int_equal(open_key(2, &cache), GN_E_NOT_FOUND);
    check_equal(1);
    check_equal(3);
    /* Use is noted: now c is the older one. */
    path_of(1, ".panels", path);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    path_of(3, ".panels", path);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    check_equal(1);
    b.limit_bytes = c.limit_bytes;
    assert_int_equal(gn_panel_cache_write(&b), GN_OK);
    assert_int_equal(open_key(3, &cache), GN_E_NOT_FOUND);
    check_equal(1);
}

static void test_a_changed_model_replaces_its_file(void **state)
{
    (void)state;
    gn_panel_write before = job_of(1, "/models/a");
    gn_panel_write after = job_of(2, "/models/a");
    assert_int_equal(gn_panel_cache_write(&before), GN_OK);
    assert_int_equal(gn_panel_cache_write(&after), GN_OK);
    assert_int_equal(n_files(), 1);
    check_equal(2);
}

static void test_list_and_remove(void **state)
{
    (void)state;
    gn_panel_write a = job_of(1, "/models/a.gguf");
    gn_panel_write b = job_of(2, "/other/b.gguf");
    assert_int_equal(gn_panel_cache_write(&a), GN_OK);
    assert_int_equal(gn_panel_cache_write(&b), GN_OK);
    char strange[160];
    (void)snprintf(strange, sizeof strange, "%s/notes.txt", folder);
    int fd = open(strange, O_CREAT | O_WRONLY, 0644);
    (void)close(fd);
    gn_panel_cache_entry *entries = NULL;
    size_t n = 0;
    assert_int_equal(gn_panel_cache_list(folder, &entries, &n), GN_OK);
    assert_int_equal(n, 2);
    bool a_first = strcmp(entries[0].model, "/models/a.gguf") == 0;
    assert_string_equal(entries[a_first ? 1 : 0].model, "/other/b.gguf");
    assert_false(entries[0].partial);
    gn_free(entries);
    uint64_t bytes;
    assert_int_equal(gn_panel_cache_remove(folder, "c.gguf", &n, &bytes), GN_E_NOT_FOUND);
    assert_int_equal(gn_panel_cache_remove(folder, "b.gguf", &n, &bytes), GN_OK);
    assert_int_equal(n, 1);
    assert_true(bytes > 0);
    assert_int_equal(gn_panel_cache_remove(folder, "/models/a.gguf", &n, &bytes), GN_OK);
    assert_int_equal(n_files(), 0);
    assert_int_equal(access(strange, F_OK), 0); /* not ours */
    (void)unlink(strange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_weights_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_writer_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_good_file_is_not_written_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_leave_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_least_used_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_changed_model_replaces_its_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_and_remove, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
