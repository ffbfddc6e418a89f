/* Control groups made of files in a folder of the test program's own: group set-up and tear-down, and what the
 * files hold. */
#ifndef GN_TESTS_UNIT_OS_GROUPS_H
#define GN_TESTS_UNIT_OS_GROUPS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/gn_groups_XXXXXX";

/* Write text to root/path, its folders made. */
static void put(const char *path, const char *text)
{
    char full[512];
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = strchr(full + sizeof root, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(full, 0755);
        *p = '/';
    }
    FILE *f = fopen(full, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The path of a file that says `cgroup`, as /proc/self/cgroup would. */
static const char *self_in(const char *cgroup)
{
    static char file[512];
    put("self", cgroup);
    (void)snprintf(file, sizeof file, "%s/self", root);
    return file;
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

#endif
