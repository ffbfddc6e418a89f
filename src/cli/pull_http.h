/* HTTP through curl: settings that every request shares, and which failures are worth another try.
 * One thread. */
#ifndef GN_CLI_PULL_HTTP_H
#define GN_CLI_PULL_HTTP_H

#include "cli/pull.h"
#include "cli/pull_part.h"

#include <curl/curl.h>

/* What the last response's header said. Reset when a new response begins (after a redirect). */
typedef struct gn_cli_http_header {
    long code;
    bool has_length, has_range, has_total;
    uint64_t length;                     /* Content-Length */
    uint64_t range_first, range_total;   /* Content-Range: bytes first-last/total */
    char etag[GN_CLI_MAX_VALIDATOR];     /* strong only */
    char modified[GN_CLI_MAX_VALIDATOR]; /* Last-Modified */
} gn_cli_http_header;

/* A handle for `url` that follows redirects (never from https to http), has timeouts, and parses the
 * header into *header. NULL: out of memory. */
CURL *gn_cli_http_handle(const char *url, const gn_cli_pull_options *options, char *error,
                         gn_cli_http_header *header);

typedef enum gn_cli_http_outcome {
    GN_CLI_HTTP_OK,
    GN_CLI_HTTP_RETRY, /* worth another try: connection, timeout, 408, 429, 5xx */
    GN_CLI_HTTP_FINAL  /* another try gives the same */
} gn_cli_http_outcome;

/* Judge a finished transfer and record the failure's message ("URL: found HTTP 404 …"). */
gn_cli_http_outcome gn_cli_http_judge(CURLcode result, const gn_cli_http_header *header,
                                      const char *url, const char *error);

/* Milliseconds to wait before try `failures` + 1, with what the server asked for taken into account. */
uint64_t gn_cli_http_backoff_ms(int64_t failures, CURL *handle);

/* Sleep, cut short by an interrupt. */
void gn_cli_http_wait_ms(uint64_t ms);

/* Was the program interrupted (SIGINT, SIGTERM)? The guard catches both while it is on. */
bool gn_cli_http_interrupted(void);
void gn_cli_http_guard(bool on);

/* Size, validator and whether ranges work, learned by asking for the first byte. Retries. */
typedef struct gn_cli_http_facts {
    uint64_t size;
    bool size_known, ranges;
    char validator[GN_CLI_MAX_VALIDATOR];
} gn_cli_http_facts;
GN_MUST_USE gn_status gn_cli_http_probe(const char *url, const gn_cli_pull_options *options,
                                        gn_cli_http_facts *out);

#endif
