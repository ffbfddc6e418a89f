#include "serve/metrics.h"

/* Upper bounds in seconds: from a token's gap to a long answer. */
static const double bounds[GN_METRIC_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08,
                                                 0.15,  0.3,    0.5,   1,    2,    4,    8,
                                                 15,    30,     60,    120,  300,  600};

static const unsigned statuses[GN_METRIC_STATUSES] = {200, 204, 400, 401, 403, 404,
                                                      405, 413, 429, 500, 503, 0};

void gn_histogram_add(gn_histogram *h, double seconds)
{
    unsigned i = 0;
    while (i < GN_METRIC_BUCKETS && seconds > bounds[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    uint64_t us = seconds > 0 ? (uint64_t)(seconds * 1e6) : 0;
    atomic_fetch_add_explicit(&h->sum_us, us, memory_order_relaxed);
}

gn_status gn_histogram_put(const gn_histogram *h, const char *name, const char *help,
                           const char *labels, bool head, gn_buf *out)
{
    if (head) {
        GN_TRY(gn_buf_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name));
    }
    uint64_t total = 0;
    for (unsigned i = 0; i < GN_METRIC_BUCKETS; i++) {
        total += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        GN_TRY(gn_buf_printf(out, "%s_bucket{%sle=\"%g\"} %llu\n", name, labels, bounds[i],
                             (unsigned long long)total));
    }
    total += atomic_load_explicit(&h->counts[GN_METRIC_BUCKETS], memory_order_relaxed);
    GN_TRY(gn_buf_printf(out, "%s_bucket{%sle=\"+Inf\"} %llu\n", name, labels,
                         (unsigned long long)total));
    size_t len = 0;
    while (labels[len] != '\0') {
        len++;
    }
    len -= len > 0; /* without the last comma */
    const char *open = len > 0 ? "{" : "";
    const char *close = len > 0 ? "}" : "";
    uint64_t us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);
    return gn_buf_printf(out, "%s_sum%s%.*s%s %.6f\n%s_count%s%.*s%s %llu\n", name, open, (int)len,
                         labels, close, (double)us / 1e6, name, open, (int)len, labels, close,
                         (unsigned long long)total);
}

unsigned gn_metric_status_column(unsigned status)
{
    unsigned i = 0;
    while (i + 1 < GN_METRIC_STATUSES && statuses[i] != status) {
        i++;
    }
    return i;
}

unsigned gn_metric_status_at(unsigned column)
{
    return statuses[column];
}
