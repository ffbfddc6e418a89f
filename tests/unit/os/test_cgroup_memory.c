/* os/memory: limits of control groups of both versions, nested, in a folder made for the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/memory.h"
#include "tests/unit/os/groups.h"

static uint64_t left(const char *cgroup)
{
    return gn_os_cgroup_memory(self_in(cgroup), root);
}

static void test_v2(void **state)
{
    (void)state;
    put("app/memory.max", "max\n");
    put("app/memory.current", "5000\n");
    assert_true(left("0::/app\n") == UINT64_MAX);
    put("app/web/memory.max", "1000\n");
    put("app/web/memory.current", "400\n");
    put("app/web/one/memory.max", "900\n");
    put("app/web/one/memory.current", "100\n");
    assert_true(left("0::/app/web\n") == 600);
    assert_true(left("0::/app/web/one\n") == 600); /* the parent's limit holds below */
    put("app/web/one/memory.max", "300\n");
    assert_true(left("0::/app/web/one\n") == 200);
    put("app/memory.max", "5100\n");
    assert_true(left("0::/app/web/one\n") == 100);
    put("app/memory.max", "4000\n"); /* lowered below what is used */
    assert_true(left("0::/app/web/one\n") == 0);
    assert_true(left("0::/not/there\n") == UINT64_MAX);
    put("memory.max", "70000\n"); /* a container's own, seen at its root */
    put("memory.current", "20000\n");
    assert_true(left("0::/not/there\n") == 50000);
    assert_true(left("0::/\n") == 50000);
    put("memory.max", "max\n");
}

static void test_v1(void **state)
{
    (void)state;
    put("memory/a/memory.limit_in_bytes", "8000\n");
    put("memory/a/memory.usage_in_bytes", "3000\n");
    put("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/a/b/memory.usage_in_bytes", "1000\n");
    assert_true(left("5:memory:/a/b\n3:cpu,cpuacct:/a/b\n0::/\n") == 5000);
    assert_true(left("5:cpu:/a/b\n0::/\n") == UINT64_MAX);
}

static void test_malformed(void **state)
{
    (void)state;
    put("bad/memory.max", "zebras\n");
    put("bad/memory.current", "1\n");
    put("empty/memory.max", "");
    put("minus/memory.max", "-1\n");
    put("minus/memory.current", "1\n");
    put("alone/memory.max", "1000\n"); /* nothing says what is used */
    assert_true(left("0::/bad\n") == UINT64_MAX);
    assert_true(left("0::/empty\n") == UINT64_MAX);
    assert_true(left("0::/minus\n") == UINT64_MAX);
    assert_true(left("0::/alone\n") == UINT64_MAX);
    assert_true(left("nonsense\n::\n:\n\n") == UINT64_MAX);
    assert_true(gn_os_cgroup_memory("/no/such/file", root) == UINT64_MAX);
}

static void test_this_machine(void **state)
{
    (void)state;
    assert_true(gn_os_free_memory() >= (64u << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_v2), cmocka_unit_test(test_v1),
                                       cmocka_unit_test(test_malformed),
                                       cmocka_unit_test(test_this_machine)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
