/* Counters and histograms of the HTTP side, in Prometheus' text format (version 0.0.4). What the step loops count is
 * read from them when it is asked for. Any thread. */
#ifndef GN_SERVE_METRICS_H
#define GN_SERVE_METRICS_H

#include "base/buf.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GN_METRIC_BUCKETS  20
#define GN_METRIC_ROUTES   96
#define GN_METRIC_STATUSES 12

typedef struct gn_histogram { /* of seconds */
    atomic_uint_fast64_t counts[GN_METRIC_BUCKETS + 1];
    atomic_uint_fast64_t sum_us;
} gn_histogram;

typedef struct gn_metrics {
    gn_histogram first_token; /* from submission to the first token */
    gn_histogram inter_token;
    gn_histogram request;  /* from submission to the end */
    gn_histogram queue[3]; /* waiting, by class */
    gn_histogram call;     /* whole calls */
    atomic_uint_fast64_t calls[GN_METRIC_ROUTES][GN_METRIC_STATUSES];
    atomic_uint_fast64_t n_prompt_tok, n_generated_tok, n_cached_tok;
    atomic_uint_fast64_t n_gone;    /* clients that went away in the middle */
    atomic_uint_fast64_t n_dropped; /* connections that were too slow */
    atomic_uint_fast64_t n_refused; /* by key, host or origin */
    atomic_uint_fast64_t n_unknown_fields;
} gn_metrics;

void gn_histogram_add(gn_histogram *h, double seconds);
/* Append one histogram; labels: `a="b",` or "". Its # TYPE line goes first where `head`. */
GN_MUST_USE gn_status gn_histogram_put(const gn_histogram *h, const char *name, const char *help,
                                       const char *labels, bool head, gn_buf *out);
/* The column of an HTTP status. */
unsigned gn_metric_status_column(unsigned status);
unsigned gn_metric_status_at(unsigned column);

#endif
