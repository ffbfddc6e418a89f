/* See os/folder.h. */
#include "os/folder.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

gn_status gn_os_make_folder(const char *path)
{
    char *copy = gn_strdup(path);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = GN_OK;
    for (char *s = copy + 1; status == GN_OK; s++) {
        if (*s != '/' && *s != '\0') {
            continue;
        }
        char end = *s;
        *s = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST) {
            status = gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot create the folder: %s", copy,
                                  strerror(errno));
        }
        *s = end;
        if (end == '\0') {
            break;
        }
    }
    gn_free(copy);
    return status;
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

gn_status gn_os_cache_folder(const char *variable, const char *name, gn_buf *out)
{
    if (env(variable) != NULL) {
        GN_TRY(gn_buf_puts(out, env(variable)));
    } else if (env("XDG_CACHE_HOME") != NULL) {
        GN_TRY(gn_buf_printf(out, "%s/ganglion/%s", env("XDG_CACHE_HOME"), name));
    } else {
        GN_REQUIRE(env("HOME") != NULL, GN_E_NOT_FOUND,
                   "%s folder: found neither %s nor HOME in the environment", name, variable);
        GN_TRY(gn_buf_printf(out, "%s/.cache/ganglion/%s", env("HOME"), name));
    }
    while (out->len > 1 && out->data[out->len - 1] == '/') {
        out->data[--out->len] = '\0';
    }
    return GN_OK;
}
