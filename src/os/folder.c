/* See os/folder.h. */
#include "os/folder.h"

#include "base/alloc.h"

#include <errno.h>
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
