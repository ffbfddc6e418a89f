/* Attention of each row over its own sequence's pages.
 *
 * Rows of one sequence that follow each other (a prompt's chunk, tokens to verify) are taken in blocks, so that a
 * page is read once for all query heads of a group and all rows of the block. The tokens a row sees are cut at fixed
 * positions into parts of GN_ATTN_SPLIT; each part gets its own softmax, and parts are merged in ascending order (the
 * merge of Dao et al. 2023, Flash-Decoding), so the result does not depend on who computed what, or beside what.
 *
 * An item of work is a block and a key-value head with all its parts. Where there are too few of those for the
 * workers (a few sequences that decode), an item is a single part instead; parts wait in slots and are merged
 * afterwards, as many parts at a time as there are slots for. */
#include "model/net_impl.h"

#include "kernels/paged/paged.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

static_assert(GN_ATTN_SPLIT % GN_KV_PAGE_TOK == 0, "parts are whole pages");

/* What a sequence of parts has come to, per query row. */
typedef struct sums {
    float *out; /* [nq, d_kv] */
    float *max; /* [nq]; -infinity: nothing yet */
    float *sum; /* [nq] */
} sums;

/* A block of rows and one key-value head. */
typedef struct unit {
    const gn_net *net;
    const gn_attn_scratch *s;
    const gn_attn_block *block;
    uint32_t layer;
    uint32_t head;
    size_t group;
    size_t nq;       /* rows of the block times group, the query head running fastest */
    uint32_t window; /* 0: none */
} unit;

typedef struct range {
    uint32_t begin, end;
} range;

static gn_k_paged_scores_fn *scores_of(const gn_kernels *k, gn_kv_type type)
{
    switch (type) {
    case GN_KV_F16: return k->paged_scores_f16;
    case GN_KV_F32: return k->paged_scores_f32;
    case GN_KV_FP8: return k->paged_scores_fp8;
    case GN_KV_Q8:
    case GN_KV_Q4: break;
    }
    return k->paged_scores_q8;
}

static gn_k_paged_accum_fn *accum_of(const gn_kernels *k, gn_kv_type type)
{
    switch (type) {
    case GN_KV_F16: return k->paged_accum_f16;
    case GN_KV_F32: return k->paged_accum_f32;
    case GN_KV_Q8: return k->paged_accum_q8;
    case GN_KV_FP8: return k->paged_accum_fp8;
    case GN_KV_Q4: break;
    }
    return k->paged_accum_q4;
}

static const gn_row *row_of(const unit *u, size_t i)
{
    return &u->net->rows[u->block->first + i];
}

/* The tokens that row i of the block sees. */
static range seen(const unit *u, size_t i)
{
    uint32_t end = row_of(u, i)->pos + 1;
    return (range){u->window != 0 && end > u->window ? end - u->window : 0, end};
}

static range clip(range a, range b)
{
    a.begin = a.begin > b.begin ? a.begin : b.begin;
    a.end = a.end < b.end ? a.end : b.end;
    a.end = a.end > a.begin ? a.end : a.begin;
    return a;
}

/* The parts that any row of the block needs. */
static range parts_of(const unit *u)
{
    uint32_t begin = seen(u, 0).begin;
    uint32_t end = seen(u, u->block->n - 1u).end;
    return (range){begin / GN_ATTN_SPLIT, (end - 1) / GN_ATTN_SPLIT + 1};
}

static const void *block_of(const unit *u, uint32_t value, uint32_t tok)
{
    const gn_kv_table *table = row_of(u, 0)->table;
    return gn_kv_block(table->pool, table->pages[tok / GN_KV_PAGE_TOK], u->layer, value, u->head);
}

/* The scales of a q8 or fp8 page's values. */
static const float *value_scales(const unit *u, const void *block)
{
    return (const float *)(const void *)((const char *)block + u->net->d_kv * GN_KV_PAGE_TOK);
}

/* Queries as the kernels take them: scaled, rotated where keys are, padded, transposed. */
static void load_queries(const unit *u)
{
    const gn_net *net = u->net;
    size_t d = net->hp.head_dim;
    for (size_t i = 0; i < u->nq; i++) {
        size_t row = u->block->first + i / u->group;
        size_t head = u->head * u->group + i % u->group;
        const float *q = net->q + (row * net->hp.n_head + head) * d;
        float *copy = u->s->head;
        memcpy(copy, q, d * sizeof *q);
        if (net->rotated) {
            gn_net_rotate_head(copy, d);
        }
        for (size_t j = 0; j < net->d_kv; j++) {
            u->s->q[j * u->nq + i] = j < d ? copy[j] * net->hp.attn_scale : 0.0f;
        }
    }
}

/* Scores of query row i become weights over the tokens it sees of the part, and count. */
static void softmax(const unit *u, range part, size_t i, const sums *to)
{
    const gn_kernels *k = u->net->k;
    range r = clip(seen(u, i / u->group), part);
    float *row = u->s->scores + i * GN_ATTN_SPLIT + (r.begin - part.begin);
    size_t n = r.end - r.begin;
    if (n == 0) {
        to->max[i] = -INFINITY;
        to->sum[i] = 0.0f;
        return;
    }
    if (u->net->hp.attn_softcap > 0.0f) {
        k->tanh_cap(row, n, u->net->hp.attn_softcap);
    }
    k->max(row, n, &to->max[i]);
    k->exp_sum(row, n, to->max[i], &to->sum[i]);
}

/* Add the values of one page, weighted. Rows that see all of it go together, others row by row. */
static void add_values(const unit *u, range part, range page, const sums *to)
{
    const gn_net *net = u->net;
    gn_k_paged_accum_fn *accum = accum_of(net->k, net->kv_type);
    const void *block = block_of(u, 1, page.begin);
    bool scaled = net->kv_type == GN_KV_Q8 || net->kv_type == GN_KV_FP8;
    size_t first_whole = u->block->n;
    size_t n_whole = 0;
    for (size_t i = 0; i < u->block->n; i++) {
        range r = clip(seen(u, i), page);
        float *p = u->s->scores + i * u->group * GN_ATTN_SPLIT + (page.begin - part.begin);
        size_t from = r.begin - page.begin;
        size_t n = r.end - r.begin;
        for (size_t g = 0; scaled && n > 0 && g < u->group; g++) {
            net->k->mul(p + g * GN_ATTN_SPLIT + from, value_scales(u, block) + from, n);
        }
        if (n == GN_KV_PAGE_TOK) {
            first_whole = n_whole == 0 ? i : first_whole;
            n_whole++;
        } else if (n > 0) {
            accum(u->group, p, GN_ATTN_SPLIT, block, from, from + n, net->d_kv,
                  to->out + i * u->group * net->d_kv, net->d_kv);
        }
    }
    if (n_whole > 0) {
        /* Both ends of what a row sees ascend with the row, so those that see a whole page are neighbours. */
        size_t i = first_whole * u->group;
        accum(n_whole * u->group, u->s->scores + i * GN_ATTN_SPLIT + (page.begin - part.begin),
              GN_ATTN_SPLIT, block, 0, GN_KV_PAGE_TOK, net->d_kv, to->out + i * net->d_kv,
              net->d_kv);
    }
}

/* The part's softmax and sums alone. */
static void compute_part(const unit *u, uint32_t index, const sums *to)
{
    const gn_net *net = u->net;
    gn_k_paged_scores_fn *scores = scores_of(net->k, net->kv_type);
    range part = {index * GN_ATTN_SPLIT, (index + 1) * GN_ATTN_SPLIT};
    range all = {seen(u, 0).begin, seen(u, u->block->n - 1u).end};
    all = clip(all, part);
    uint32_t first = all.begin / GN_KV_PAGE_TOK * GN_KV_PAGE_TOK;
    for (uint32_t t = first; t < all.end; t += GN_KV_PAGE_TOK) {
        scores(u->nq, u->s->q, u->nq, net->d_kv, block_of(u, 0, t), u->s->scores + (t - part.begin),
               GN_ATTN_SPLIT);
    }
    for (size_t i = 0; i < u->nq; i++) {
        softmax(u, part, i, to);
    }
    memset(to->out, 0, u->nq * net->d_kv * sizeof(float));
    for (uint32_t t = first; t < all.end; t += GN_KV_PAGE_TOK) {
        add_values(u, part, (range){t, t + GN_KV_PAGE_TOK}, to);
    }
}

/* exp(x - top), x <= top. */
static float weight(const gn_kernels *k, float x, float top)
{
    float ignored;
    k->exp_sum(&x, 1, top, &ignored);
    return x;
}

/* Put a part behind what `to` holds, for query row i. */
static void merge(const unit *u, const sums *to, const sums *part, size_t i)
{
    const gn_kernels *k = u->net->k;
    size_t d = u->net->d_kv;
    float *out = to->out + i * d;
    const float *more = part->out + i * d;
    if (part->max[i] == -INFINITY) {
        return; /* the row sees nothing of this part */
    }
    if (to->max[i] == -INFINITY) {
        to->max[i] = part->max[i];
        to->sum[i] = part->sum[i];
        memcpy(out, more, d * sizeof *out);
        return;
    }
    float top = to->max[i] > part->max[i] ? to->max[i] : part->max[i];
    float old_w = weight(k, to->max[i], top);
    float new_w = weight(k, part->max[i], top);
    to->sum[i] = to->sum[i] * old_w + part->sum[i] * new_w;
    to->max[i] = top;
    k->scale(out, d, old_w);
    k->axpy(out, more, d, new_w);
}

static void clear(const unit *u, const sums *to)
{
    for (size_t i = 0; i < u->nq; i++) {
        to->max[i] = -INFINITY;
        to->sum[i] = 0.0f;
    }
}

/* Divide by the sum, rotate back and hand over. */
static void finish(const unit *u, const sums *total)
{
    const gn_net *net = u->net;
    size_t d = net->hp.head_dim;
    for (size_t i = 0; i < u->nq; i++) {
        float *out = total->out + i * net->d_kv;
        net->k->scale(out, d, 1.0f / total->sum[i]);
        if (net->rotated) {
            gn_net_rotate_head(out, d);
        }
        size_t row = u->block->first + i / u->group;
        size_t head = u->head * u->group + i % u->group;
        memcpy(net->a + (row * net->hp.n_head + head) * d, out, d * sizeof *out);
    }
}

static unit unit_at(gn_net *net, uint32_t layer, size_t index, int worker)
{
    const gn_hparams *hp = &net->hp;
    const gn_attn_block *block = &net->blocks[index / hp->n_head_kv];
    size_t group = hp->n_head / hp->n_head_kv;
    return (unit){.net = net,
                  .s = &net->attn[worker],
                  .block = block,
                  .layer = layer,
                  .head = (uint32_t)(index % hp->n_head_kv),
                  .group = group,
                  .nq = block->n * group,
                  .window = hp->windowed[layer] ? hp->n_window : 0};
}

/* --- whole units --- */

typedef struct attend_job {
    gn_net *net;
    uint32_t layer;
    uint32_t wave; /* parts [wave, wave + n_parts) of each unit, counted from its first */
    uint32_t n_parts;
} attend_job;

static void attend_units(void *ctx, size_t begin, size_t end, int worker)
{
    const attend_job *job = ctx;
    for (size_t item = begin; item < end; item++) {
        unit u = unit_at(job->net, job->layer, item, worker);
        sums total = {u.s->out, u.s->max, u.s->sum};
        sums part = {u.s->part_out, u.s->part_max, u.s->part_sum};
        load_queries(&u);
        clear(&u, &total);
        range parts = parts_of(&u);
        for (uint32_t i = parts.begin; i < parts.end; i++) {
            compute_part(&u, i, &part);
            for (size_t r = 0; r < u.nq; r++) {
                merge(&u, &total, &part, r);
            }
        }
        finish(&u, &total);
    }
}

/* --- single parts --- */

/* Slots: one for each part of the wave, and behind them one for each unit's total. */
static sums slot(const gn_net *net, size_t index)
{
    size_t group = net->hp.n_head / net->hp.n_head_kv;
    float *memory = net->attn_slots + index * group * (net->d_kv + 2);
    return (sums){memory, memory + group * net->d_kv, memory + group * (net->d_kv + 1)};
}

/* The parts of the wave into the unit's total; with the last wave, the end. */
static void merge_parts(const attend_job *job, const unit *u, size_t index)
{
    size_t n_units = job->net->n_blocks * job->net->hp.n_head_kv;
    sums total = slot(job->net, n_units * job->n_parts + index);
    if (job->wave == 0) {
        clear(u, &total);
    }
    range parts = parts_of(u);
    uint32_t begin = parts.begin + job->wave;
    uint32_t end = begin + job->n_parts < parts.end ? begin + job->n_parts : parts.end;
    for (uint32_t i = begin; i < end; i++) {
        sums part = slot(job->net, index * job->n_parts + (i - begin));
        for (size_t r = 0; r < u->nq; r++) {
            merge(u, &total, &part, r);
        }
    }
    if (begin < parts.end && end == parts.end) {
        finish(u, &total);
    }
}

/* Whoever is done with the last part of a unit merges them all, so that nobody waits in between. */
static void attend_parts(void *ctx, size_t begin, size_t end, int worker)
{
    const attend_job *job = ctx;
    for (size_t item = begin; item < end; item++) {
        size_t unit_index = item / job->n_parts;
        unit u = unit_at(job->net, job->layer, unit_index, worker);
        range parts = parts_of(&u);
        uint32_t index = parts.begin + job->wave + (uint32_t)(item % job->n_parts);
        if (index < parts.end) {
            sums part = slot(job->net, item);
            load_queries(&u);
            compute_part(&u, index, &part);
        }
        if (atomic_fetch_add_explicit(&job->net->parts_done[unit_index], 1, memory_order_acq_rel) ==
            job->n_parts - 1) {
            merge_parts(job, &u, unit_index);
        }
    }
}

/* The most parts that a unit has. */
static uint32_t most_parts(gn_net *net, uint32_t layer)
{
    uint32_t most = 0;
    for (size_t i = 0; i < net->n_blocks; i++) {
        unit u = unit_at(net, layer, i * net->hp.n_head_kv, 0);
        range parts = parts_of(&u);
        most = parts.end - parts.begin > most ? parts.end - parts.begin : most;
    }
    return most;
}

/* Cut the rows into blocks: neighbours of one sequence. */
static void find_blocks(gn_net *net)
{
    size_t group = net->hp.n_head / net->hp.n_head_kv;
    size_t most = net->attn_rows / group;
    net->n_blocks = 0;
    for (size_t i = 0; i < net->n_rows; i++) {
        const gn_row *row = &net->rows[i];
        gn_attn_block *last = net->n_blocks > 0 ? &net->blocks[net->n_blocks - 1] : NULL;
        if (last != NULL && last->n < most && row->table == row[-1].table &&
            row->pos == row[-1].pos + 1) {
            last->n++;
        } else {
            net->blocks[net->n_blocks++] = (gn_attn_block){.first = (uint32_t)i, .n = 1};
        }
    }
}

void gn_net_attend(gn_net *net, uint32_t layer)
{
    find_blocks(net);
    attend_job job = {.net = net, .layer = layer};
    size_t n_units = net->n_blocks * net->hp.n_head_kv;
    bool single = net->n_blocks == net->n_rows;
    if (!single || n_units >= (size_t)net->n_workers * 4 || n_units * 2 > net->n_attn_slots) {
        gn_os_pool_run(net->pool, n_units, 1, attend_units, &job);
        return;
    }
    uint32_t most = most_parts(net, layer);
    size_t room = net->n_attn_slots / n_units - 1;
    job.n_parts = most < room ? most : (uint32_t)room;
    for (; job.wave < most; job.wave += job.n_parts) {
        for (size_t i = 0; i < n_units; i++) {
            atomic_store_explicit(&net->parts_done[i], 0, memory_order_relaxed);
        }
        gn_os_pool_run(net->pool, n_units * job.n_parts, 1, attend_parts, &job);
    }
}
