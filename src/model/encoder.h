/* BERT encoders (Devlin et al. 2019): every token sees every other; post-norm blocks with biases.
 * One thread at a time calls; the pool's workers do the work. */
#ifndef GN_MODEL_ENCODER_H
#define GN_MODEL_ENCODER_H

#include "model/arch.h"
#include "tensor/compute.h"

typedef struct gn_encoder gn_encoder;

/* Build over an open source, which must outlive the encoder. */
GN_MUST_USE gn_status gn_encoder_create(const gn_source *source, gn_os_pool *pool, bool exact,
                                        gn_encoder **out);
void gn_encoder_destroy(gn_encoder *encoder);

const gn_hparams *gn_encoder_hparams(const gn_encoder *encoder);

/* Last hidden states [n, n_embd] of ids[0 .. n), 1 ≤ n ≤ n_ctx, all of token type 0. Never fails. */
void gn_encoder_forward(gn_encoder *encoder, const int32_t *ids, size_t n, float *hidden);

#endif
