/* One forward pass of a decoder, as sessions and the step loop of a server make it. Under the model's lock. */
#ifndef GN_ENGINE_PASS_H
#define GN_ENGINE_PASS_H

#include "engine/model_impl.h"

/* Compute model->rows [n]. logits [rows that want output, n_vocab]; may be NULL where none does. A pass of one row
 * has its own count of threads, and may be one of those that find it out: not while packed weights are being
 * written, which takes processors and bandwidth. */
void gn_engine_pass(gn_model *model, size_t n, float *logits);

bool gn_engine_all_finite(const float *x, size_t n);

#endif
