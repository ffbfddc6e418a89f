/* os/quota: control groups of both versions, nested, in a folder made for the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/quota.h"
#include "tests/unit/os/groups.h"

static int quota(const char *cgroup)
{
    return gn_os_cpu_quota(self_in(cgroup), root);
}

static void test_v2(void **state)
{
    (void)state;
    put("app/cpu.max", "max 100000\n");
    put("app/web/cpu.max", "250000 100000\n");
    put("app/web/one/cpu.max", "max 100000\n");
    assert_int_equal(quota("0::/app\n"), 0);
    assert_int_equal(quota("0::/app/web\n"), 3);
    assert_int_equal(quota("0::/app/web/one\n"), 3); /* the parent's limit holds below */
    put("app/cpu.max", "100000 100000\n");
    assert_int_equal(quota("0::/app/web/one\n"), 1);
    assert_int_equal(quota("0::/not/there\n"), 0);
    put("cpu.max", "200000 100000\n"); /* a container's own, seen at its root */
    assert_int_equal(quota("0::/not/there\n"), 2);
    assert_int_equal(quota("0::/\n"), 2);
    put("cpu.max", "max 100000\n");
}

static void test_v1(void **state)
{
    (void)state;
    put("cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
    put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("5:memory:/a\n3:cpu,cpuacct:/a/b\n0::/\n"), 2);
    assert_int_equal(quota("3:cpuset:/a/b\n0::/\n"), 0);
    put("cpu/c/cpu.cfs_quota_us", "50000\n");
    put("cpu/c/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("1:cpu:/c\n"), 1);
}

static void test_malformed(void **state)
{
    (void)state;
    put("bad/cpu.max", "12 zebras\n");
    put("worse/cpu.max", "");
    put("zero/cpu.max", "100000 0\n");
    put("huge/cpu.max", "99999999999999999999 1\n");
    assert_int_equal(quota("0::/bad\n"), 0);
    assert_int_equal(quota("0::/worse\n"), 0);
    assert_int_equal(quota("0::/zero\n"), 0);
    assert_int_equal(quota("0::/huge\n"), 0);
    assert_int_equal(quota("nonsense\n::\n:\n\n"), 0);
    assert_int_equal(gn_os_cpu_quota("/no/such/file", root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_v2), cmocka_unit_test(test_v1),
                                       cmocka_unit_test(test_malformed)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
