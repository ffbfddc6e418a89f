/* Recording and forwarding failures. See ganglion/status.h for the codes. */
#ifndef GN_BASE_STATUS_H
#define GN_BASE_STATUS_H

#include "base/attr.h"
#include "ganglion/status.h"

/* Record a failure for this thread and return `code`. The message is cut at 1,000 bytes and control
 * characters are written as \xNN, so it stays one line. Never allocates. */
gn_status gn_base_fail(gn_status code, const char *fmt, ...) GN_PRINTF(2, 3) GN_COLD;

/* Put text in front of the recorded message ("FILE: message"), keeping code and message; returns
 * `code`. For the caller who knows the file that the callee was reading. */
gn_status gn_base_fail_prefix(gn_status code, const char *fmt, ...) GN_PRINTF(2, 3) GN_COLD;

/* Forget the recorded message. */
void gn_base_fail_clear(void);

/* Return early where nothing needs undoing. */
#define GN_REQUIRE(cond, code, ...)                                                                \
    do {                                                                                           \
        if (GN_UNLIKELY(!(cond))) {                                                                \
            return gn_base_fail((code), __VA_ARGS__);                                              \
        }                                                                                          \
    } while (0)
#define GN_TRY(call)                                                                               \
    do {                                                                                           \
        gn_status gn_try_status_ = (call);                                                         \
        if (GN_UNLIKELY(gn_try_status_ != GN_OK)) {                                                \
            return gn_try_status_;                                                                 \
        }                                                                                          \
    } while (0)

#endif
