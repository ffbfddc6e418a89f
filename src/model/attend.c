/* Attention of each row over its own sequence's pages. The tokens a row sees are cut at fixed positions into
 * parts of GN_ATTN_SPLIT; each part gets its own softmax, and parts are merged in ascending order (the merge
 * of Dao et al. 2023, Flash-Decoding), so the result does not depend on who computed what. All query heads
 * that share a key-value head read its rows together. */
#include "model/net_impl.h"

#include <string.h>

typedef struct attend_job {
    gn_net *net;
    uint32_t layer;
} attend_job;

/* One row and one key-value head. */
typedef struct attend_one {
    const gn_net *net;
    const gn_attn_scratch *s;
    const gn_kv_table *table;
    uint32_t layer;
    uint32_t head;
    const float *q; /* [group, d] */
    float *out;     /* [group, d] */
    size_t group;
    size_t d;
} attend_one;

/* Tokens [begin, end) that lie in one page, as rows of K or V. */
static const void *page_rows(const attend_one *one, uint32_t value, uint32_t begin)
{
    uint32_t page = one->table->pages[begin / GN_KV_PAGE_TOK];
    unsigned char *rows = gn_kv_rows(one->table->pool, page, one->layer, value, one->head);
    size_t elem = one->net->kv_type == GN_KV_F32 ? sizeof(float) : sizeof(uint16_t);
    return rows + (size_t)(begin % GN_KV_PAGE_TOK) * one->d * elem;
}

static uint32_t page_end(uint32_t begin, uint32_t end)
{
    uint32_t limit = (begin / GN_KV_PAGE_TOK + 1) * GN_KV_PAGE_TOK;
    return limit < end ? limit : end;
}

/* Softmax over tokens [begin, end) alone: s->out, s->max and s->sum of each query head. */
static void part(const attend_one *one, uint32_t begin, uint32_t end)
{
    const gn_net *net = one->net;
    const gn_kernels *k = net->k;
    const gn_attn_scratch *s = one->s;
    bool f32 = net->kv_type == GN_KV_F32;
    gn_k_attn_scores_fn *scores = f32 ? k->attn_scores_f32 : k->attn_scores_f16;
    gn_k_attn_accum_fn *accum = f32 ? k->attn_accum_f32 : k->attn_accum_f16;
    for (uint32_t t = begin; t < end; t = page_end(t, end)) {
        scores(one->group, one->q, one->d, one->d, page_rows(one, 0, t), one->d,
               page_end(t, end) - t, net->hp.attn_scale, s->scores + (t - begin), GN_ATTN_SPLIT);
    }
    size_t n = end - begin;
    for (size_t g = 0; g < one->group; g++) {
        float *row = s->scores + g * GN_ATTN_SPLIT;
        if (net->hp.attn_softcap > 0.0f) {
            k->tanh_cap(row, n, net->hp.attn_softcap);
        }
        k->max(row, n, &s->max[g]);
        k->exp_sum(row, n, s->max[g], &s->sum[g]);
    }
    memset(s->out, 0, one->group * one->d * sizeof(float));
    for (uint32_t t = begin; t < end; t = page_end(t, end)) {
        accum(one->group, s->scores + (t - begin), GN_ATTN_SPLIT, page_rows(one, 1, t), one->d,
              page_end(t, end) - t, one->d, s->out, one->d);
    }
}

/* Put the part in s behind what (out, max, sum) hold. */
static void merge(const attend_one *one, size_t g, float *max, float *sum)
{
    const gn_kernels *k = one->net->k;
    const gn_attn_scratch *s = one->s;
    float top = *max > s->max[g] ? *max : s->max[g];
    float old_w = *max;
    float new_w = s->max[g];
    float ignored;
    k->exp_sum(&old_w, 1, top, &ignored);
    k->exp_sum(&new_w, 1, top, &ignored);
    *sum = *sum * old_w + s->sum[g] * new_w;
    *max = top;
    float *out = one->out + g * one->d;
    k->scale(out, one->d, old_w);
    k->axpy(out, s->out + g * one->d, one->d, new_w);
}

static void attend(const attend_one *one, uint32_t pos, uint32_t window)
{
    float max[GN_MAX_GROUP];
    float sum[GN_MAX_GROUP];
    uint32_t end = pos + 1;
    uint32_t begin = window != 0 && end > window ? end - window : 0;
    bool first = true;
    while (begin < end) {
        uint32_t stop = (begin / GN_ATTN_SPLIT + 1) * GN_ATTN_SPLIT;
        stop = stop < end ? stop : end;
        part(one, begin, stop);
        for (size_t g = 0; g < one->group; g++) {
            if (first) {
                max[g] = one->s->max[g];
                sum[g] = one->s->sum[g];
            } else {
                merge(one, g, &max[g], &sum[g]);
            }
        }
        if (first) {
            memcpy(one->out, one->s->out, one->group * one->d * sizeof(float));
        }
        first = false;
        begin = stop;
    }
    for (size_t g = 0; g < one->group; g++) {
        one->net->k->scale(one->out + g * one->d, one->d, 1.0f / sum[g]);
    }
}

/* Items are pairs (row, key-value head), the head running fastest. */
static void attend_items(void *ctx, size_t begin, size_t end, int worker)
{
    const attend_job *job = ctx;
    gn_net *net = job->net;
    const gn_hparams *hp = &net->hp;
    size_t group = hp->n_head / hp->n_head_kv;
    for (size_t item = begin; item < end; item++) {
        size_t i = item / hp->n_head_kv;
        uint32_t head = (uint32_t)(item % hp->n_head_kv);
        const gn_row *row = &net->rows[i];
        size_t offset = (i * hp->n_head + head * group) * hp->head_dim;
        attend_one one = {.net = net,
                          .s = &net->attn[worker],
                          .table = row->table,
                          .layer = job->layer,
                          .head = head,
                          .q = net->q + offset,
                          .out = net->a + offset,
                          .group = group,
                          .d = hp->head_dim};
        attend(&one, row->pos, hp->windowed[job->layer] ? hp->n_window : 0);
    }
}

void gn_net_attend(gn_net *net, uint32_t layer)
{
    attend_job job = {net, layer};
    gn_os_pool_run(net->pool, net->n_rows * net->hp.n_head_kv, 1, attend_items, &job);
}
