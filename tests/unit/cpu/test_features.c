/* cpu/features: levels, and GANGLION_CPU. The level is chosen once a process, so each case is a child
 * process of its own; its exit status is the result. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/features.h"
#include "kernels/kernels.h"

static int in_child(int (*run)(const char *wanted), const char *wanted)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)setenv("GANGLION_CPU", wanted, 1);
        _exit(run(wanted));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 0: accepted, and in force for the op table as well. */
static int expect_level(const char *wanted)
{
    if (gn_cpu_init() != GN_OK || strcmp(gn_cpu_level_name(gn_cpu_active()), wanted) != 0) {
        return 1;
    }
    return gn_kernels_get()->level == gn_cpu_active() ? 0 : 2;
}

/* 0: refused, twice, by a line that names the value and a level that can run; the detected level
 * stays in force. */
static int expect_refusal(const char *wanted)
{
    for (int i = 0; i < 2; i++) {
        if (gn_cpu_init() != GN_E_ARG || strstr(gn_error_message(), wanted) == NULL ||
            strstr(gn_error_message(), " ref") == NULL) {
            return 1;
        }
    }
    return gn_cpu_active() == gn_cpu_detect() ? 0 : 2;
}

static int expect_detected(const char *wanted)
{
    (void)wanted;
    return gn_cpu_init() == GN_OK && gn_cpu_active() == gn_cpu_detect() ? 0 : 1;
}

static void test_levels_can_be_chosen(void **state)
{
    (void)state;
    for (gn_cpu_level level = GN_CPU_REF; level < GN_CPU_N_LEVELS; level++) {
        const char *name = gn_cpu_level_name(level);
        assert_int_equal(in_child(gn_cpu_has(level) ? expect_level : expect_refusal, name), 0);
    }
}

static void test_unknown_is_refused(void **state)
{
    (void)state;
    assert_int_equal(in_child(expect_refusal, "avx9000"), 0);
    assert_int_equal(in_child(expect_refusal, "AVX2"), 0);
    assert_int_equal(in_child(expect_detected, ""), 0);
}

static void test_levels_are_a_chain(void **state)
{
    (void)state;
    assert_true(gn_cpu_has(GN_CPU_REF));
    assert_true(gn_cpu_has(gn_cpu_detect()));
    assert_false(gn_cpu_has(GN_CPU_N_LEVELS));
    assert_string_equal(gn_cpu_level_name(GN_CPU_N_LEVELS), "?");
}

/* Self-tests that stand in for AMX's. */
static int faults(void)
{
    (void)raise(SIGILL);
    return 0;
}

static int is_wrong(void)
{
    return 1;
}

static int hangs(void)
{
    while (pause() != 0) {
    }
    return 0;
}

static int n_lines;
static char last_line[256];

static void keep_line(void *ctx, const char *line)
{
    (void)ctx;
    n_lines++;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
}

/* With a self-test that fails, 0 where the level falls back and one line says why. */
static int falls_back(int (*test)(void), const char *why)
{
    gn_set_log(keep_line, NULL);
    gn_cpu_set_amx_test(test);
    for (int i = 0; i < 2; i++) {
        if (gn_cpu_init() != GN_OK || gn_cpu_active() != GN_CPU_VNNI || gn_cpu_has(GN_CPU_AMX)) {
            return 1;
        }
    }
    return n_lines == 1 && strstr(last_line, why) != NULL ? 0 : 2;
}

static int falls_back_on_fault(const char *wanted)
{
    (void)wanted;
    return falls_back(faults, "signal 4");
}

static int falls_back_on_wrong_numbers(const char *wanted)
{
    (void)wanted;
    return falls_back(is_wrong, "wrong numbers");
}

static int falls_back_on_hang(const char *wanted)
{
    (void)wanted;
    return falls_back(hangs, "signal 14");
}

/* The program's own handlers and children stay its own: the fault of the self-test reaches no handler
 * here, and nobody who waits for children finds one. */
static void not_expected(int signal)
{
    (void)signal;
    _exit(9);
}

static int falls_back_unseen(const char *wanted)
{
    (void)wanted;
    (void)signal(SIGILL, not_expected);
    (void)signal(SIGCHLD, not_expected);
    int result = falls_back(faults, "signal 4");
    return result == 0 && waitpid(-1, NULL, 0) == -1 ? result : 3;
}

static int works(void)
{
    return 0;
}

static int is_advertised(const char *wanted)
{
    (void)wanted;
    gn_cpu_set_amx_test(works);
    return gn_cpu_has(GN_CPU_AMX) ? 0 : 1;
}

/* Before the tests that ask this process for its level, which is found only once. */
static void test_amx_that_faults_is_not_used(void **state)
{
    (void)state;
    if (in_child(is_advertised, "") != 0) {
        skip();
    }
    assert_int_equal(in_child(falls_back_on_fault, ""), 0);
    assert_int_equal(in_child(falls_back_on_wrong_numbers, ""), 0);
    assert_int_equal(in_child(falls_back_on_hang, ""), 0);
    assert_int_equal(in_child(falls_back_unseen, ""), 0);
}

static void test_ref_table_is_plain(void **state)
{
    (void)state;
    gn_kernels k;
    gn_kernels_for_level(GN_CPU_REF, &k);
    assert_int_equal(k.level, GN_CPU_REF);
#define GN_KERNEL_OP(op, CLASS) assert_true(k.op == gn_k_##op##_ref);
#define GN_KERNEL(op, variant, level)
#include "kernels/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amx_that_faults_is_not_used),
        cmocka_unit_test(test_levels_can_be_chosen),
        cmocka_unit_test(test_unknown_is_refused),
        cmocka_unit_test(test_levels_are_a_chain),
        cmocka_unit_test(test_ref_table_is_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
