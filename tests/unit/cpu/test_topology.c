/* cpu/topology: machines described to hwloc, and this one. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/topology.h"

static void test_twins(void **state)
{
    (void)state;
    const char *machine = "node:2 core:4 pu:2";
    assert_int_equal(gn_cpu_count_cores(machine, "0-15"), 8);
    assert_int_equal(gn_cpu_count_cores(machine, "0,2,4,6"), 4);
    assert_int_equal(gn_cpu_count_cores(machine, "0-1"), 1);
    assert_int_equal(gn_cpu_count_cores(machine, "1,3,14-15"), 3);
    assert_int_equal(gn_cpu_count_cores(machine, "5-8"), 3);
}

/* Processors as Linux numbers them: first one of each core, then the twins. */
static void test_numbering(void **state)
{
    (void)state;
    const char *machine = "core:4 pu:2(indexes=0,4,1,5,2,6,3,7)";
    assert_int_equal(gn_cpu_count_cores(machine, "0-7"), 4);
    assert_int_equal(gn_cpu_count_cores(machine, "0-3"), 4);
    assert_int_equal(gn_cpu_count_cores(machine, "0,4"), 1);
    assert_int_equal(gn_cpu_count_cores(machine, "3-4"), 2);
}

static void test_odd(void **state)
{
    (void)state;
    assert_int_equal(gn_cpu_count_cores("pu:6", "0-5"), 6);      /* no cores known */
    assert_int_equal(gn_cpu_count_cores("core:4 pu:1", "9"), 0); /* not there */
    assert_int_equal(gn_cpu_count_cores("core:4 pu:1", "0-99"), 4);
    assert_int_equal(gn_cpu_count_cores("no machine", "0"), 0);
}

static void test_here(void **state)
{
    (void)state;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int n = gn_cpu_count_cores(NULL, NULL);
    assert_in_range(n, 1, CPU_COUNT(&before));
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));

    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(gn_cpu_count_cores(NULL, NULL), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_twins),
                                       cmocka_unit_test(test_numbering), cmocka_unit_test(test_odd),
                                       cmocka_unit_test(test_here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
