/* How many rows of prompts a step takes while others generate, so that those hardly notice: what such a step takes
 * more than one without is held to what the latter takes. Found from the steps themselves. */
#ifndef GN_ENGINE_PACE_H
#define GN_ENGINE_PACE_H

#include <stdint.h>

#define GN_PACE_BUCKETS 10u /* of decode rows: 1, 2–3, 4–7 … 256 and more */

typedef struct gn_engine_pace {
    uint64_t decode_ns[GN_PACE_BUCKETS]; /* a step of decode rows alone; 0: not yet seen */
    uint64_t row_ns;                     /* what a prompt's row adds; 0: not yet seen */
} gn_engine_pace;

/* A step took ns. */
void gn_engine_pace_add(gn_engine_pace *pace, uint32_t n_decode, uint32_t n_prompt, uint64_t ns);

/* Rows of prompts for a step with n_decode ≥ 1 others: 1 or more, at most `most`. */
uint32_t gn_engine_pace_rows(const gn_engine_pace *pace, uint32_t n_decode, uint32_t most);

#endif
