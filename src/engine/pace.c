#include "engine/pace.h"

#define FIRST_ROWS 32u /* while nothing is known */
#define FEWEST     8u  /* a prompt goes on, whatever the figures say */

static uint32_t bucket_of(uint32_t n_decode)
{
    uint32_t bucket = 0;
    while (n_decode > 1 && bucket < GN_PACE_BUCKETS - 1) {
        n_decode /= 2;
        bucket++;
    }
    return bucket;
}

/* The time of a step without prompts: of as many rows, else of the nearest count of fewer, else of more. */
static uint64_t decode_ns(const gn_engine_pace *pace, uint32_t n_decode)
{
    uint32_t bucket = bucket_of(n_decode);
    for (uint32_t i = bucket + 1; i-- > 0;) {
        if (pace->decode_ns[i] != 0) {
            return pace->decode_ns[i];
        }
    }
    for (uint32_t i = bucket; i < GN_PACE_BUCKETS; i++) {
        if (pace->decode_ns[i] != 0) {
            return pace->decode_ns[i];
        }
    }
    return 0;
}

/* Three parts of what was known, one of what was seen. */
static void learn(uint64_t *known, uint64_t seen)
{
    *known = *known != 0 ? (3 * *known + seen) / 4 : seen;
    *known = *known != 0 ? *known : 1;
}

void gn_engine_pace_add(gn_engine_pace *pace, uint32_t n_decode, uint32_t n_prompt, uint64_t ns)
{
    if (n_decode == 0) {
        return;
    }
    if (n_prompt == 0) {
        learn(&pace->decode_ns[bucket_of(n_decode)], ns);
        return;
    }
    uint64_t alone = decode_ns(pace, n_decode);
    if (alone != 0) {
        learn(&pace->row_ns, (ns > alone ? ns - alone : 0) / n_prompt);
    }
}

uint32_t gn_engine_pace_rows(const gn_engine_pace *pace, uint32_t n_decode, uint32_t most)
{
    uint64_t rows = FIRST_ROWS;
    uint64_t alone = decode_ns(pace, n_decode);
    if (alone != 0 && pace->row_ns != 0) {
        rows = alone / pace->row_ns;
        rows = rows > FEWEST ? rows : FEWEST;
    }
    return rows < most ? (uint32_t)rows : most;
}
