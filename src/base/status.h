/* Recording and forwarding failures. See ganglion/status.h for the codes. */
#ifndef GN_BASE_STATUS_H
#define GN_BASE_STATUS_H

#include "base/attr.h"
#include "ganglion/status.h"

/* Record a failure's message for this thread. It is cut at 1,000 bytes and control
 * characters are written as \xNN, so it stays one line. Never allocates. */
void gn_base_record(const char *fmt, ...) GN_PRINTF(1, 2) GN_COLD;

/* Record a message and give `code`, which is evaluated twice. A macro, so that the compiler sees at the
 * caller that the result is not GN_OK, and no false path with outputs unset. */
#define gn_base_fail(code, ...) (gn_base_record(__VA_ARGS__), (code))

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
