/* Requests, their headers and their failures. Every wait has an end: connecting and standing still are
 * bounded by the timeout, failures in a row by the retries. */
#include "cli/pull_http.h"

#include "ganglion/model.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_REDIRECTS   8
#define FIRST_WAIT_MS   250
#define LONGEST_WAIT_MS 8000
#define LONGEST_ASKED_S 30
#define STALL_BYTES_S   256

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    (void)sig;
    interrupted = 1;
}

bool gn_cli_http_interrupted(void)
{
    return interrupted != 0;
}

void gn_cli_http_guard(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_signal : SIG_DFL};
    (void)sigemptyset(&action.sa_mask);
    interrupted = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    struct sigaction pipe = {.sa_handler = on ? SIG_IGN : SIG_DFL};
    (void)sigemptyset(&pipe.sa_mask);
    (void)sigaction(SIGPIPE, &pipe, NULL);
}

void gn_cli_http_wait_ms(uint64_t ms)
{
    if (!interrupted) {
        (void)poll(NULL, 0, (int)ms);
    }
}

/* The value of header line `line` if its name is `name`, trimmed; NULL otherwise. */
static const char *header_value(const char *line, size_t len, const char *name, size_t *value_len)
{
    size_t n = strlen(name);
    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':') {
        return NULL;
    }
    const char *s = line + n + 1;
    const char *end = line + len;
    while (s < end && (*s == ' ' || *s == '\t')) {
        s++;
    }
    while (end > s && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) {
        end--;
    }
    *value_len = (size_t)(end - s);
    return s;
}

static void copy_value(char out[GN_CLI_MAX_VALIDATOR], const char *s, size_t len)
{
    if (len < GN_CLI_MAX_VALIDATOR) {
        memcpy(out, s, len);
        out[len] = '\0';
    }
}

/* "bytes FIRST-LAST/TOTAL" or "bytes * / TOTAL" (without the spaces). */
static void parse_range(gn_cli_http_header *header, const char *s, size_t len)
{
    char text[96];
    if (len >= sizeof text) {
        return;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    unsigned long long first = 0;
    unsigned long long last = 0;
    unsigned long long total = 0;
    if (sscanf(text, "bytes %20llu-%20llu/%20llu", &first, &last, &total) == 3) {
        header->has_range = true;
        header->has_total = true;
        header->range_first = first;
        header->range_total = total;
    } else if (sscanf(text, "bytes */%20llu", &total) == 1) {
        header->has_total = true;
        header->range_total = total;
    }
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    gn_cli_http_header *header = ctx;
    size_t len = size * n;
    size_t value_len = 0;
    const char *value;
    if (len > 5 && strncmp(line, "HTTP/", 5) == 0) {
        *header = (gn_cli_http_header){0};
        const char *space = memchr(line, ' ', len);
        header->code = space != NULL ? strtol(space, NULL, 10) : 0;
    } else if ((value = header_value(line, len, "Content-Length", &value_len)) != NULL) {
        header->has_length = true;
        header->length = strtoull(value, NULL, 10);
    } else if ((value = header_value(line, len, "Content-Range", &value_len)) != NULL) {
        parse_range(header, value, value_len);
    } else if ((value = header_value(line, len, "ETag", &value_len)) != NULL) {
        if (value_len > 0 && value[0] == '"') {
            copy_value(header->etag, value, value_len);
        }
    } else if ((value = header_value(line, len, "Last-Modified", &value_len)) != NULL) {
        copy_value(header->modified, value, value_len);
    }
    return len;
}

CURL *gn_cli_http_handle(const char *url, const gn_cli_pull_options *options, char *error,
                         gn_cli_http_header *header)
{
    CURL *handle = curl_easy_init();
    if (handle == NULL) {
        return NULL;
    }
    char agent[64];
    (void)snprintf(agent, sizeof agent, "ganglion/%.32s", gn_version());
    const char *redirects = strncasecmp(url, "https:", 6) == 0 ? "https" : "http,https";
    *header = (gn_cli_http_header){0};
    error[0] = '\0';
    bool ok = curl_easy_setopt(handle, CURLOPT_URL, url) == CURLE_OK &&
              curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
              curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, redirects) == CURLE_OK &&
              curl_easy_setopt(handle, CURLOPT_USERAGENT, agent) == CURLE_OK;
    (void)curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    (void)curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)options->timeout_s);
    (void)curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_S);
    (void)curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)options->timeout_s);
    (void)curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L * 1024);
    (void)curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
    (void)curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(handle, CURLOPT_HEADERDATA, header);
    if (!ok) {
        curl_easy_cleanup(handle);
        return NULL;
    }
    return handle;
}

static bool is_transient(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN: return true;
    default: return false;
    }
}

gn_cli_http_outcome gn_cli_http_judge(CURLcode result, const gn_cli_http_header *header,
                                      const char *url, const char *error)
{
    long code = header->code;
    if (result != CURLE_OK && code < 400) {
        const char *why = error[0] != '\0' ? error : curl_easy_strerror(result);
        (void)gn_base_fail(result == CURLE_OUT_OF_MEMORY ? GN_E_NOMEM : GN_E_UNAVAILABLE, "%s: %s",
                           url, why);
        return is_transient(result) ? GN_CLI_HTTP_RETRY : GN_CLI_HTTP_FINAL;
    }
    if (code == 200 || code == 206) {
        return GN_CLI_HTTP_OK;
    }
    (void)gn_base_fail(GN_E_UNAVAILABLE, "%s: found HTTP status %ld, expected 200%s", url, code,
                       code == 401 || code == 403 ? " (access is restricted)" : "");
    return code == 408 || code == 429 || code >= 500 ? GN_CLI_HTTP_RETRY : GN_CLI_HTTP_FINAL;
}

uint64_t gn_cli_http_backoff_ms(int64_t failures, CURL *handle)
{
    uint64_t ms = FIRST_WAIT_MS;
    for (int64_t i = 1; i < failures && ms < LONGEST_WAIT_MS; i++) {
        ms *= 2;
    }
    ms = ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS;
    curl_off_t asked_s = 0;
    if (handle != NULL && curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &asked_s) == CURLE_OK &&
        asked_s > 0) {
        uint64_t asked = (uint64_t)(asked_s < LONGEST_ASKED_S ? asked_s : LONGEST_ASKED_S) * 1000;
        ms = asked > ms ? asked : ms;
    }
    return ms;
}

/* Lets the one byte of a range pass, and ends a response that is the whole file. */
static size_t on_probe_body(char *data, size_t size, size_t n, void *ctx)
{
    (void)data;
    const gn_cli_http_header *header = ctx;
    return header->code == 200 ? CURL_WRITEFUNC_ERROR : size * n;
}

static void take_facts(const gn_cli_http_header *header, gn_cli_http_facts *out)
{
    *out = (gn_cli_http_facts){0};
    out->ranges = header->code == 206 && header->has_range && header->range_first == 0;
    out->size_known =
        header->code == 206 || header->code == 416 ? header->has_total : header->has_length;
    out->size = header->code == 200 ? header->length : header->range_total;
    memcpy(out->validator, header->etag[0] != '\0' ? header->etag : header->modified,
           sizeof out->validator);
}

static gn_cli_http_outcome probe_once(const char *url, const gn_cli_pull_options *options,
                                      int64_t failures, gn_status *status, gn_cli_http_facts *out)
{
    char error[CURL_ERROR_SIZE];
    gn_cli_http_header header;
    CURL *handle = gn_cli_http_handle(url, options, error, &header);
    if (handle == NULL) {
        *status = gn_base_fail(GN_E_NOMEM, "out of memory");
        return GN_CLI_HTTP_FINAL;
    }
    (void)curl_easy_setopt(handle, CURLOPT_RANGE, "0-0");
    (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_probe_body);
    (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, &header);
    CURLcode result = curl_easy_perform(handle);
    bool empty = header.code == 416 && header.has_total && header.range_total == 0;
    bool cut_by_us = header.code == 200 && result == CURLE_WRITE_ERROR;
    gn_cli_http_outcome outcome =
        empty || cut_by_us ? GN_CLI_HTTP_OK : gn_cli_http_judge(result, &header, url, error);
    if (outcome == GN_CLI_HTTP_OK) {
        take_facts(&header, out);
    } else {
        *status = GN_E_UNAVAILABLE;
    }
    if (outcome == GN_CLI_HTTP_RETRY && failures < options->retries) {
        gn_cli_http_wait_ms(gn_cli_http_backoff_ms(failures + 1, handle));
    }
    curl_easy_cleanup(handle);
    return outcome;
}

gn_status gn_cli_http_probe(const char *url, const gn_cli_pull_options *options,
                            gn_cli_http_facts *out)
{
    gn_status status = GN_OK;
    for (int64_t failures = 0; failures <= options->retries && !gn_cli_http_interrupted();
         failures++) {
        gn_cli_http_outcome outcome = probe_once(url, options, failures, &status, out);
        if (outcome != GN_CLI_HTTP_RETRY) {
            return outcome == GN_CLI_HTTP_OK ? GN_OK : status;
        }
    }
    return gn_cli_http_interrupted() ? gn_base_fail(GN_E_CANCELLED, "%s: interrupted", url)
                                     : status;
}

typedef struct text_sink {
    gn_buf *out;
    gn_status status;
} text_sink;

static size_t on_text_body(char *data, size_t size, size_t n, void *ctx)
{
    text_sink *sink = ctx;
    sink->status = gn_buf_append(sink->out, data, size * n);
    return sink->status == GN_OK ? size * n : CURL_WRITEFUNC_ERROR;
}

gn_status gn_cli_pull_text(const char *url, const gn_cli_pull_options *options, size_t limit,
                           gn_buf *out)
{
    out->limit = limit;
    gn_status status = GN_E_UNAVAILABLE;
    for (int64_t failures = 0; failures <= options->retries && !gn_cli_http_interrupted();
         failures++) {
        char error[CURL_ERROR_SIZE];
        gn_cli_http_header header;
        text_sink sink = {.out = out};
        CURL *handle = gn_cli_http_handle(url, options, error, &header);
        if (handle == NULL) {
            return gn_base_fail(GN_E_NOMEM, "out of memory");
        }
        gn_buf_clear(out);
        (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_text_body);
        (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, &sink);
        CURLcode result = curl_easy_perform(handle);
        gn_cli_http_outcome outcome = sink.status != GN_OK
                                          ? GN_CLI_HTTP_FINAL
                                          : gn_cli_http_judge(result, &header, url, error);
        status = sink.status != GN_OK ? sink.status : GN_E_UNAVAILABLE;
        if (outcome == GN_CLI_HTTP_RETRY && failures < options->retries) {
            gn_cli_http_wait_ms(gn_cli_http_backoff_ms(failures + 1, handle));
        }
        curl_easy_cleanup(handle);
        if (outcome == GN_CLI_HTTP_OK) {
            return GN_OK;
        }
        if (outcome == GN_CLI_HTTP_FINAL) {
            return status;
        }
    }
    return gn_cli_http_interrupted() ? gn_base_fail(GN_E_CANCELLED, "%s: interrupted", url)
                                     : status;
}
