/* Status codes of the library, and the message that goes with a failure.
 *
 * Every function that can fail returns a gn_status: GN_OK (0) or a negative code. The function that
 * first sees a fault records one line about it (what, where, found, expected) for the calling thread;
 * gn_error_message() reads that line until the next failure on the same thread. */
#ifndef GANGLION_STATUS_H
#define GANGLION_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text): the one list that enum, names and texts are generated from. */
#define GN_STATUS_LIST(X)                                                                          \
    X(OK, 0, "done")                                                                               \
    X(E_ARG, -1, "an argument is out of its range")                                                \
    X(E_NOMEM, -2, "out of memory")                                                                \
    X(E_IO, -3, "reading or writing failed")                                                       \
    X(E_FORMAT, -4, "the file or text is malformed")                                               \
    X(E_UNSUPPORTED, -5, "known, but not supported by this build")                                 \
    X(E_NOT_FOUND, -6, "not found")                                                                \
    X(E_NO_PAGES, -7, "the KV pool has no free page")                                              \
    X(E_LIMIT, -8, "a limit was reached")                                                          \
    X(E_REFUSED, -9, "refused")                                                                    \
    X(E_UNAVAILABLE, -10, "not available now")                                                     \
    X(E_CANCELLED, -11, "cancelled")                                                               \
    X(E_STATE, -12, "not allowed in this state")                                                   \
    X(E_DIGEST, -13, "the digest does not match")

typedef enum gn_status {
#define GN_STATUS_ENUM(name, value, text) GN_##name = (value),
    GN_STATUS_LIST(GN_STATUS_ENUM)
#undef GN_STATUS_ENUM
} gn_status;

#if defined(__GNUC__)
#define GN_MUST_USE __attribute__((warn_unused_result))
#define GN_API      __attribute__((visibility("default")))
#else
#define GN_MUST_USE
#define GN_API
#endif

/* "GN_E_FORMAT" for GN_E_FORMAT; "GN_E_?" for a value that is no code. Static storage. */
GN_API const char *gn_status_name(gn_status status);

/* A general sentence about the code. Static storage. */
GN_API const char *gn_status_text(gn_status status);

/* The line recorded by the last failure on this thread; "" if there was none. Control characters
 * are escaped, so it is always one line. Valid until the next failure on this thread. */
GN_API const char *gn_error_message(void);

/* What the library has to say where nothing failed: one line, no newline, control characters escaped, in
 * English: a processor feature that is advertised but does not work, a cache file that could not be
 * written. The library itself never prints. The hook may be called from any thread, also from one that
 * the library started, and must not call the library. NULL (the default) drops the lines. Set it before
 * the first other call. */
typedef void gn_log_fn(void *ctx, const char *line);
GN_API void gn_set_log(gn_log_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
