/* Read-only file mappings. A mapped file that another process cuts short raises SIGBUS on access;
 * gn_os_guard_maps() lets a program turn that into one line and an exit instead of a crash. */
#ifndef GN_OS_MAP_H
#define GN_OS_MAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Which file, in which state: each write changes mtime or ctime, a file put in its place the inode. */
typedef struct gn_os_file_id {
    uint64_t inode;
    int64_t mtime_ns;
    int64_t ctime_ns;
} gn_os_file_id;

typedef struct gn_os_map {
    const unsigned char *data; /* NULL for an empty file */
    size_t size;               /* bytes */
    gn_os_file_id id;          /* when it was mapped */
} gn_os_map;

/* Map the whole regular file at `path` read-only and shared. GN_E_NOT_FOUND where there is none,
 * GN_E_IO otherwise (a directory, no permission …); the message names the path. */
GN_MUST_USE gn_status gn_os_map_file(const char *path, gn_os_map *out);

/* NULL and zeroed are fine. */
void gn_os_unmap(gn_os_map *map);

/* Touch the byte at `p`, which lies in data[0 .. bytes) of a mapping, and tell how many bytes around it the system
 * has mapped by now in one piece: a page, or more that it mapped with it. Looks 1 MiB far to both sides, no
 * further than `data`. 0 where the system does not say. */
size_t gn_os_mapped_around(const void *data, size_t bytes, const void *p);

/* How many of the bytes of the pages of data[0 .. bytes) are mapped into this process by now. Touches none. 0 where
 * the system does not say. */
size_t gn_os_mapped_bytes(const void *data, size_t bytes);

/* Programs only, once, before threads: on SIGBUS print one line, PREFIX, the file's path and what happened
 * to it, to standard error and _exit with `exit_code`. `prefix` must stay valid. */
void gn_os_guard_maps(const char *prefix, int exit_code);

#endif
