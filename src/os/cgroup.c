/* A group's limit holds for all groups below it, so every one on the way up counts. In a container the
 * path may be the host's and not exist there; the way up then ends at the container's own limit. */
#include "os/cgroup.h"

#include "base/attr.h"

#include <stdio.h>
#include <string.h>

typedef struct walk {
    const char *root, *controller;
    gn_os_cgroup_visit *visit;
    void *ctx;
} walk;

/* From mount/group up to mount. A path too long to be written is left out, but not the mount itself. */
static void walk_up(const walk *w, const char *mount, const char *group, bool v2)
{
    char dir[GN_OS_CGROUP_DIR];
    int n = snprintf(dir, sizeof dir, "%s%s", mount, group);
    if (n < 0 || n >= (int)sizeof dir) {
        w->visit(w->ctx, mount, v2);
        return;
    }
    size_t end = strlen(mount);
    for (;;) {
        w->visit(w->ctx, dir, v2);
        char *slash = strrchr(dir + end, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

/* Is the controller one of the names in a list with commas? */
static bool has(const char *list, const char *controller)
{
    size_t n = strlen(controller);
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, controller, n) == 0 && (p[n] == ',' || p[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* One line of the process's list: id:controllers:group. A mount of version 1 has the name of its
 * controller or of its whole list; version 2 is mounted at the root, or beside those of version 1. */
static void walk_line(const walk *w, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) {
        return;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    bool v2 = *controllers == '\0';
    if (!v2 && !has(controllers, w->controller)) {
        return;
    }
    const char *const places[2][2] = {{w->controller, controllers}, {"", "unified"}};
    for (size_t i = 0; i < GN_COUNTOF(places[0]); i++) {
        const char *place = places[v2][i];
        char mount[512];
        int n = snprintf(mount, sizeof mount, "%s%s%s", w->root, *place != '\0' ? "/" : "", place);
        if (n > 0 && n < (int)sizeof mount) {
            walk_up(w, mount, group, v2);
        }
    }
}

void gn_os_cgroup_walk(const char *cgroup_file, const char *root, const char *controller,
                       gn_os_cgroup_visit *visit, void *ctx)
{
    FILE *f = fopen(cgroup_file, "re");
    if (f == NULL) {
        return;
    }
    const walk w = {root, controller, visit, ctx};
    char line[1024];
    while (fgets(line, sizeof line, f) != NULL) {
        walk_line(&w, line);
    }
    (void)fclose(f);
}
