/* A decoder's forward pass over a batch of rows. A row is one token of one sequence at one position; rows of
 * many sequences may share a batch. A row's result depends on its own sequence's prefix alone.
 * It knows no text and no request. One thread at a time calls; the pool's workers do the work. */
#ifndef GN_MODEL_NET_H
#define GN_MODEL_NET_H

#include "kv/table.h"
#include "model/arch.h"
#include "model/rope.h"
#include "tensor/compute.h"

#define GN_NET_MAX_ROWS 256u /* rows of one forward pass */

typedef struct gn_net gn_net;

/* Build over an open source, which must outlive the net. pool may be NULL. kv_type: how the pages of its
 * pool hold keys and values; GN_KV_F32 goes with f32 activations, the exact mode. */
GN_MUST_USE gn_status gn_net_create(const gn_source *source, gn_os_pool *pool, bool exact,
                                    gn_kv_type kv_type, gn_net **out);
void gn_net_destroy(gn_net *net);

/* Threads of the pool for passes of up to 16 rows, and of more; at first all of them. Not during a pass. */
void gn_net_set_threads(gn_net *net, int few_rows, int many_rows);

const gn_hparams *gn_net_hparams(const gn_net *net);
const gn_arch *gn_net_arch(const gn_net *net);
/* Each matrix that products read, always in the same order: for setting `panels` before the first forward
 * pass (tensor/panels.h). */
void gn_net_each_weight(gn_net *net, void (*fn)(void *ctx, gn_view *weight), void *ctx);
/* What a KV pool for this net must hold. */
gn_kv_shape gn_net_kv_shape(const gn_net *net);

/* Bytes of matrices, as the file has them, that a pass of one row reads: all but what an embedding matrix of
 * its own holds of other tokens, and of a layer's experts the share that one row uses. */
uint64_t gn_net_read_bytes(const gn_net *net);

/* Bytes of keys and values that a row at position n_ctx - 1 reads; layers with a window read no further
 * back. */
uint64_t gn_net_kv_read_bytes(const gn_net *net, uint32_t n_ctx);

/* The matrix whose rows tokens begin with; the output's own data where the two are tied. */
const gn_view *gn_net_token_embd(const gn_net *net);

typedef struct gn_row {
    int32_t id; /* 0 .. n_vocab-1 */
    uint32_t
        pos; /* position in its sequence; positions before it were computed, or are in this batch */
    gn_kv_table *table; /* has room for pos (gn_kv_table_reserve) */
    bool long_context;  /* LongRoPE: the sequence may grow past the model's original context */
    bool wants_output;
} gn_row;

/* Compute rows [n_rows], 1 .. GN_NET_MAX_ROWS; rows of one sequence in order of position. For each row that
 * wants output, in order: logits [n_out, n_vocab] and, where hidden is not NULL, the final normed state
 * [n_out, n_embd]; logits may be NULL where only hidden is wanted. Keys and values go to the tables' pages.
 * Never fails: all memory was taken at creation. */
void gn_net_forward(gn_net *net, const gn_row *rows, size_t n_rows, float *logits, float *hidden);

#endif
