/* Log-probabilities over the full vocabulary. Sums run in double, in a fixed order. */
#include "sample/cand.h"

#include "base/status.h"
#include "sample/explog.h"

#include <math.h>

#define BLOCK 256

double gn_sample_logsumexp(const float *logits, int32_t n)
{
    float max = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (!(logits[i] < INFINITY)) {
            return (double)logits[i]; /* NaN and +infinity pass through */
        }
        max = logits[i] > max ? logits[i] : max;
    }
    if (max == -INFINITY) {
        return -INFINITY;
    }
    double weights[BLOCK];
    double total = 0.0;
    for (int32_t start = 0; start < n; start += BLOCK) {
        int32_t len = n - start < BLOCK ? n - start : BLOCK;
        for (int32_t i = 0; i < len; i++) {
            weights[i] = gn_sample_exp((double)logits[start + i] - (double)max);
        }
        double sum = 0.0;
        for (int32_t i = 0; i < len; i++) {
            sum += weights[i];
        }
        total += sum;
    }
    return (double)max + gn_sample_log(total);
}

gn_status gn_sample_top_logprobs(const float *logits, int32_t n, int32_t k, gn_logprob *out)
{
    GN_REQUIRE(n >= 1, GN_E_ARG, "n: found %d, expected 1 or more", n);
    GN_REQUIRE(k >= 0 && k <= n, GN_E_ARG, "k: found %d, expected 0 to %d", k, n);
    double lse = gn_sample_logsumexp(logits, n);
    GN_REQUIRE(isfinite(lse), GN_E_FORMAT,
               "logits: found NaN, +infinity or nothing finite, expected finite numbers");
    gn_cand_select_values(logits, (size_t)n, (size_t)k, out);
    for (int32_t i = 0; i < k; i++) {
        out[i].logprob = (float)((double)out[i].logprob - lse);
    }
    return GN_OK;
}
