/* Folders. */
#ifndef GN_OS_FOLDER_H
#define GN_OS_FOLDER_H

#include "base/status.h"

/* Create the folder at `path` and those above it where they are absent. GN_E_UNAVAILABLE, GN_E_NOMEM. */
GN_MUST_USE gn_status gn_os_make_folder(const char *path);

#endif
