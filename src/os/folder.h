/* Folders. */
#ifndef GN_OS_FOLDER_H
#define GN_OS_FOLDER_H

#include "base/buf.h"

/* Create the folder at `path` and those above it where they are absent. GN_E_UNAVAILABLE, GN_E_NOMEM. */
GN_MUST_USE gn_status gn_os_make_folder(const char *path);

/* Append the path of a folder for things that can be had again: what the environment's `variable` says, else
 * $XDG_CACHE_HOME/ganglion/NAME, else ~/.cache/ganglion/NAME; a variable that is empty does not count, and no
 * slash stands at the end. GN_E_NOT_FOUND without any of them. */
GN_MUST_USE gn_status gn_os_cache_folder(const char *variable, const char *name, gn_buf *out);

#endif
