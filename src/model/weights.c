/* Binding tensors to roles. Two naming schemes lead to the same struct: GGUF's "blk.N.attn_q.weight" and
 * Hugging Face's "model.layers.N.self_attn.q_proj.weight" (also below "language_model."). */
#include "model/weights.h"

#include "base/alloc.h"
#include "tensor/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 192

/* Fill %u in turn with layer and expert; `name` is one of our own constants. */
static void expand(const char *name, uint32_t layer, uint32_t expert, char out[NAME_BYTES])
{
    size_t n = 0;
    uint32_t values[2] = {layer, expert};
    size_t next = 0;
    for (const char *p = name; *p != '\0' && n + 16 < NAME_BYTES; p++) {
        if (p[0] == '%' && p[1] == 'u') {
            n += (size_t)snprintf(out + n, NAME_BYTES - n, "%u", values[next < 2 ? next++ : 1]);
            p++;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

/* Hugging Face checkpoints of models that also see put the text model below a prefix. */
static const gn_view *find_hf(const gn_source *source, const char *name)
{
    static const char *const prefixes[] = {"", "language_model.", "model.language_model."};
    char full[NAME_BYTES + 32];
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const char *rest = name;
        if (i == 2 && strncmp(name, "model.", 6) == 0) {
            rest = name + 6;
        }
        (void)snprintf(full, sizeof full, "%s%s", prefixes[i], rest);
        const gn_view *view = gn_source_find(source, full);
        if (view != NULL) {
            return view;
        }
    }
    return NULL;
}

static const gn_view *find(const gn_source *source, const char *name)
{
    return gn_source_get_kind(source) == GN_SOURCE_GGUF ? gn_source_find(source, name)
                                                        : find_hf(source, name);
}

static gn_status check_type(const gn_view *view, const char *name)
{
    const gn_dtype_info *info = gn_dtype_find((uint32_t)view->dtype);
    GN_REQUIRE(gn_compute_supports(view->dtype), GN_E_UNSUPPORTED,
               "tensor \"%s\": type %s is known but not computed yet", name,
               info != NULL ? info->name : "?");
    return GN_OK;
}

gn_status gn_weights_matrix(const gn_source *source, const char *pattern, uint32_t layer,
                            uint64_t rows, uint64_t cols, gn_view *out)
{
    char name[NAME_BYTES];
    expand(pattern, layer, 0, name);
    const gn_view *view = find(source, name);
    GN_REQUIRE(view != NULL, GN_E_FORMAT, "tensor \"%s\" is missing", name);
    GN_REQUIRE(view->n_dims == 2 && view->shape[0] == rows && view->shape[1] == cols, GN_E_FORMAT,
               "tensor \"%s\": found %d dimensions [%llu, %llu], expected [%llu, %llu]", name,
               view->n_dims, (unsigned long long)view->shape[0], (unsigned long long)view->shape[1],
               (unsigned long long)rows, (unsigned long long)cols);
    GN_TRY(check_type(view, name));
    *out = *view;
    return GN_OK;
}

gn_status gn_weights_vector(gn_arena *arena, const gn_source *source, const char *pattern,
                            uint32_t layer, uint64_t n, bool required, const float **out)
{
    char name[NAME_BYTES];
    expand(pattern, layer, 0, name);
    const gn_view *view = find(source, name);
    if (view == NULL) {
        GN_REQUIRE(!required, GN_E_FORMAT, "tensor \"%s\" is missing", name);
        *out = NULL;
        return GN_OK;
    }
    GN_REQUIRE(view->n_dims == 1 && view->shape[0] == n, GN_E_FORMAT,
               "tensor \"%s\": found %d dimensions [%llu …], expected [%llu]", name, view->n_dims,
               (unsigned long long)view->shape[0], (unsigned long long)n);
    GN_TRY(check_type(view, name));
    if (view->dtype == GN_DTYPE_F32 && (uintptr_t)view->data % sizeof(float) == 0) {
        *out = view->data;
        return GN_OK;
    }
    float *copy = gn_arena_calloc(arena, (size_t)n, sizeof *copy);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    gn_compute_dequant(view, 0, copy);
    *out = copy;
    return GN_OK;
}

/* --- decoders --- */

/* The tensors that have found a role. */
typedef struct used_set {
    const gn_view **views; /* [cap] */
    size_t n;
    size_t cap;
} used_set;

typedef struct binder {
    gn_weights *w;
    used_set *used;
    const gn_source *source;
    const gn_hparams *hp;
    const gn_layer_names *names;
    bool gguf;
} binder;

static const char *pick(const binder *b, gn_tensor_name name)
{
    return b->gguf ? name.gguf : name.hf;
}

#define PICK(b, g, h) ((b)->gguf ? (g) : (h))

static void mark_used(const binder *b, const char *pattern, uint32_t layer)
{
    char name[NAME_BYTES];
    expand(pattern, layer, 0, name);
    const gn_view *view = find(b->source, name);
    if (view != NULL && b->used->n < b->used->cap) {
        b->used->views[b->used->n++] = view;
    }
}

static gn_status matrix(const binder *b, const char *name, uint32_t layer, uint64_t rows,
                        uint64_t cols, gn_view *out)
{
    mark_used(b, name, layer);
    return gn_weights_matrix(b->source, name, layer, rows, cols, out);
}

/* A vector under an optional name. */
static gn_status vector(const binder *b, const char *name, uint32_t layer, uint64_t n,
                        bool required, const float **out)
{
    if (name == NULL) {
        *out = NULL;
        return GN_OK;
    }
    mark_used(b, name, layer);
    return gn_weights_vector(&b->w->arena, b->source, name, layer, n, required, out);
}

/* Rows [first, first + n) of a matrix. */
static gn_view rows_of(const gn_view *view, uint64_t first, uint64_t n)
{
    gn_view part = *view;
    part.data = (const unsigned char *)view->data + first * view->row_bytes;
    part.shape[0] = n;
    part.bytes = (size_t)n * view->row_bytes;
    return part;
}

static gn_status bind_attention(const binder *b, uint32_t i, gn_layer *layer)
{
    const gn_hparams *hp = b->hp;
    uint64_t n_q = (uint64_t)hp->n_head * hp->head_dim;
    uint64_t n_kv = (uint64_t)hp->n_head_kv * hp->head_dim;
    const char *qkv = pick(b, b->names->qkv);
    if (qkv != NULL) {
        gn_view all;
        GN_TRY(matrix(b, qkv, i, n_q + 2 * n_kv, hp->n_embd, &all));
        layer->q = rows_of(&all, 0, n_q);
        layer->k = rows_of(&all, n_q, n_kv);
        layer->v = rows_of(&all, n_q + n_kv, n_kv);
    } else {
        GN_TRY(matrix(b, PICK(b, "blk.%u.attn_q.weight", "model.layers.%u.self_attn.q_proj.weight"),
                      i, n_q, hp->n_embd, &layer->q));
        GN_TRY(matrix(b, PICK(b, "blk.%u.attn_k.weight", "model.layers.%u.self_attn.k_proj.weight"),
                      i, n_kv, hp->n_embd, &layer->k));
        GN_TRY(matrix(b, PICK(b, "blk.%u.attn_v.weight", "model.layers.%u.self_attn.v_proj.weight"),
                      i, n_kv, hp->n_embd, &layer->v));
        GN_TRY(vector(b, PICK(b, "blk.%u.attn_q.bias", "model.layers.%u.self_attn.q_proj.bias"), i,
                      n_q, false, &layer->q_bias));
        GN_TRY(vector(b, PICK(b, "blk.%u.attn_k.bias", "model.layers.%u.self_attn.k_proj.bias"), i,
                      n_kv, false, &layer->k_bias));
        GN_TRY(vector(b, PICK(b, "blk.%u.attn_v.bias", "model.layers.%u.self_attn.v_proj.bias"), i,
                      n_kv, false, &layer->v_bias));
    }
    GN_TRY(matrix(b,
                  PICK(b, "blk.%u.attn_output.weight", "model.layers.%u.self_attn.o_proj.weight"),
                  i, hp->n_embd, n_q, &layer->o));
    GN_TRY(vector(b, PICK(b, "blk.%u.attn_output.bias", "model.layers.%u.self_attn.o_proj.bias"), i,
                  hp->n_embd, false, &layer->o_bias));
    GN_TRY(vector(b, pick(b, b->names->attn_norm), i, hp->n_embd, true, &layer->attn_norm));
    GN_TRY(
        vector(b, pick(b, b->names->attn_post_norm), i, hp->n_embd, true, &layer->attn_post_norm));
    GN_TRY(vector(b, pick(b, b->names->q_norm), i, hp->head_dim, true, &layer->q_norm));
    return vector(b, pick(b, b->names->k_norm), i, hp->head_dim, true, &layer->k_norm);
}

static gn_status bind_dense(const binder *b, uint32_t i, gn_layer *layer)
{
    const gn_hparams *hp = b->hp;
    const char *gate_up = pick(b, b->names->gate_up);
    if (gate_up != NULL) {
        gn_view both;
        GN_TRY(matrix(b, gate_up, i, 2 * (uint64_t)hp->n_ff, hp->n_embd, &both));
        layer->gate = rows_of(&both, 0, hp->n_ff);
        layer->up = rows_of(&both, hp->n_ff, hp->n_ff);
    } else {
        GN_TRY(matrix(b, PICK(b, "blk.%u.ffn_gate.weight", "model.layers.%u.mlp.gate_proj.weight"),
                      i, hp->n_ff, hp->n_embd, &layer->gate));
        GN_TRY(matrix(b, PICK(b, "blk.%u.ffn_up.weight", "model.layers.%u.mlp.up_proj.weight"), i,
                      hp->n_ff, hp->n_embd, &layer->up));
    }
    return matrix(b, PICK(b, "blk.%u.ffn_down.weight", "model.layers.%u.mlp.down_proj.weight"), i,
                  hp->n_embd, hp->n_ff, &layer->down);
}

/* One stacked tensor [n_expert, rows, cols] as n_expert matrices of its rows [first, first + n). */
static gn_status slice_experts(const binder *b, const gn_view *stack, const char *name,
                               uint64_t rows, uint64_t cols, uint64_t first, uint64_t n,
                               gn_view *out)
{
    uint32_t n_expert = b->hp->n_expert;
    GN_REQUIRE(stack->n_dims == 3 && stack->shape[0] == n_expert && stack->shape[1] == rows &&
                   stack->shape[2] == cols,
               GN_E_FORMAT, "tensor \"%s\": found [%llu, %llu, %llu], expected [%u, %llu, %llu]",
               name, (unsigned long long)stack->shape[0], (unsigned long long)stack->shape[1],
               (unsigned long long)stack->shape[2], n_expert, (unsigned long long)rows,
               (unsigned long long)cols);
    GN_TRY(check_type(stack, name));
    for (uint32_t e = 0; e < n_expert; e++) {
        gn_view one = *stack;
        one.n_dims = 2;
        one.shape[0] = rows;
        one.shape[1] = cols;
        one.shape[2] = 1;
        one.bytes = (size_t)rows * stack->row_bytes;
        one.data = (const unsigned char *)stack->data + (size_t)e * one.bytes;
        out[e] = rows_of(&one, first, n);
    }
    return GN_OK;
}

/* The experts' matrices of one kind: stacked in GGUF; one by one in config.json checkpoints, or stacked as
 * `stacked` with the wanted rows starting at `first`. */
static gn_status bind_experts(const binder *b, uint32_t i, const char *gguf, const char *hf_leaf,
                              const char *hf_stacked, uint64_t rows, uint64_t cols,
                              uint64_t stack_rows, uint64_t first, gn_view **out)
{
    gn_view *views = gn_arena_calloc(&b->w->arena, b->hp->n_expert, sizeof *views);
    if (views == NULL) {
        return gn_alloc_failed();
    }
    *out = views;
    char name[NAME_BYTES];
    char pattern[NAME_BYTES];
    if (b->gguf) {
        expand(gguf, i, 0, name);
        const gn_view *stack = find(b->source, name);
        GN_REQUIRE(stack != NULL, GN_E_FORMAT, "tensor \"%s\" is missing", name);
        mark_used(b, name, 0);
        return slice_experts(b, stack, name, rows, cols, 0, rows, views);
    }
    (void)snprintf(pattern, sizeof pattern, "model.layers.%%u.%s.experts.%s", b->names->hf_experts,
                   hf_stacked);
    expand(pattern, i, 0, name);
    const gn_view *stack = find(b->source, name);
    if (stack != NULL) {
        /* Gate and up share one stack, which is noted once. */
        if (first == 0) {
            mark_used(b, name, 0);
        }
        return slice_experts(b, stack, name, stack_rows, cols, first, rows, views);
    }
    (void)snprintf(pattern, sizeof pattern, "model.layers.%%u.%s.experts.%%u.%s.weight",
                   b->names->hf_experts, hf_leaf);
    for (uint32_t e = 0; e < b->hp->n_expert; e++) {
        expand(pattern, i, e, name);
        GN_TRY(matrix(b, name, 0, rows, cols, &views[e]));
    }
    return GN_OK;
}

static gn_status bind_moe(const binder *b, uint32_t i, gn_layer *layer)
{
    const gn_hparams *hp = b->hp;
    const gn_layer_names *n = b->names;
    char router[NAME_BYTES];
    (void)snprintf(router, sizeof router, "model.layers.%%u.%s.gate.weight",
                   n->hf_experts != NULL ? n->hf_experts : "mlp");
    GN_TRY(matrix(b, PICK(b, "blk.%u.ffn_gate_inp.weight", router), i, hp->n_expert, hp->n_embd,
                  &layer->router));
    uint64_t n_ff = hp->n_ff_expert;
    GN_TRY(bind_experts(b, i, "blk.%u.ffn_gate_exps.weight", n->hf_expert_gate, "gate_up_proj",
                        n_ff, hp->n_embd, 2 * n_ff, 0, &layer->expert_gate));
    GN_TRY(bind_experts(b, i, "blk.%u.ffn_up_exps.weight", n->hf_expert_up, "gate_up_proj", n_ff,
                        hp->n_embd, 2 * n_ff, n_ff, &layer->expert_up));
    return bind_experts(b, i, "blk.%u.ffn_down_exps.weight", n->hf_expert_down, "down_proj",
                        hp->n_embd, n_ff, hp->n_embd, 0, &layer->expert_down);
}

/* Mixed models have dense layers too: the router says which is which. */
static bool has_router(const binder *b, uint32_t i)
{
    char pattern[NAME_BYTES];
    char name[NAME_BYTES];
    (void)snprintf(pattern, sizeof pattern, "model.layers.%%u.%s.gate.weight",
                   b->names->hf_experts != NULL ? b->names->hf_experts : "mlp");
    expand(PICK(b, "blk.%u.ffn_gate_inp.weight", pattern), i, 0, name);
    return b->hp->n_expert != 0 && find(b->source, name) != NULL;
}

static gn_status bind_layer(const binder *b, uint32_t i, gn_layer *layer)
{
    GN_TRY(bind_attention(b, i, layer));
    GN_TRY(vector(b, pick(b, b->names->ffn_norm), i, b->hp->n_embd, true, &layer->ffn_norm));
    GN_TRY(
        vector(b, pick(b, b->names->ffn_post_norm), i, b->hp->n_embd, true, &layer->ffn_post_norm));
    return has_router(b, i) ? bind_moe(b, i, layer) : bind_dense(b, i, layer);
}

static gn_status bind_rope_factors(const binder *b)
{
    if (!b->gguf) {
        return GN_OK;
    }
    uint64_t n = b->hp->n_rot / 2;
    gn_weights *w = b->w;
    GN_TRY(vector(b, "rope_factors_short.weight", 0, n, false, &w->rope_factors));
    GN_TRY(vector(b, "rope_factors_long.weight", 0, n, false, &w->rope_factors_long));
    return w->rope_factors != NULL ? GN_OK
                                   : vector(b, "rope_freqs.weight", 0, n, false, &w->rope_factors);
}

/* --- what no role has asked for --- */

static int by_address(const void *a, const void *b)
{
    const gn_view *const *x = a;
    const gn_view *const *y = b;
    return (*x > *y) - (*x < *y);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Tables that older converters wrote though they follow from the metadata. */
static bool is_table(const char *name)
{
    static const char *const ends[] = {"rope_freqs.weight", "attn_rot_embd.weight",
                                       "rotary_emb.inv_freq"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (ends_with(name, ends[i])) {
            return true;
        }
    }
    return false;
}

/* Would a model without this tensor be another model? In a GGUF all tensors are the decoder's; a folder's
 * may belong to an image encoder or a further head, those below its layers do not. */
static bool matters(const binder *b, const char *name)
{
    static const char *const layers[] = {"model.layers.", "language_model.model.layers.",
                                         "model.language_model.layers."};
    if (is_table(name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        if (strncmp(name, layers[i], strlen(layers[i])) == 0) {
            return true;
        }
    }
    return b->gguf;
}

/* A tensor that the forward pass would silently leave out (a bias, a sink, a layer) is refused. */
static gn_status check_all_used(const binder *b)
{
    used_set *used = b->used;
    qsort(used->views, used->n, sizeof(const gn_view *), by_address);
    for (size_t i = 0; i < gn_source_n_tensors(b->source); i++) {
        const char *name = NULL;
        const gn_view *view = gn_source_tensor_at(b->source, i, &name);
        bool found =
            bsearch(&view, used->views, used->n, sizeof(const gn_view *), by_address) != NULL;
        GN_REQUIRE(found || !matters(b, name), GN_E_UNSUPPORTED,
                   "tensor \"%s\" has no role in this architecture", name);
    }
    return GN_OK;
}

gn_status gn_weights_bind(gn_weights *out, const gn_source *source, gn_hparams *hp,
                          const gn_layer_names *names)
{
    size_t n_tensors = gn_source_n_tensors(source);
    used_set used = {.cap = n_tensors};
    used.views = gn_arena_calloc(&out->arena, n_tensors + 1, sizeof *used.views);
    if (used.views == NULL) {
        return gn_alloc_failed();
    }
    binder b = {out, &used, source, hp, names, gn_source_get_kind(source) == GN_SOURCE_GGUF};
    const char *embd = PICK(&b, "token_embd.weight", "model.embed_tokens.weight");
    const gn_view *view = find(source, embd);
    GN_REQUIRE(view != NULL, GN_E_FORMAT, "tensor \"%s\" is missing", embd);
    if (hp->n_vocab == 0) {
        GN_REQUIRE(view->shape[0] <= (1u << 24), GN_E_FORMAT,
                   "tensor \"%s\": found %llu rows, expected at most 2^24", embd,
                   (unsigned long long)view->shape[0]);
        hp->n_vocab = (uint32_t)view->shape[0];
    }
    GN_TRY(matrix(&b, embd, 0, hp->n_vocab, hp->n_embd, &out->token_embd));
    const char *output = PICK(&b, "output.weight", "lm_head.weight");
    out->output = out->token_embd;
    if (find(source, output) != NULL || hp->untied) {
        GN_TRY(matrix(&b, output, 0, hp->n_vocab, hp->n_embd, &out->output));
    }
    GN_TRY(vector(&b, PICK(&b, "output_norm.weight", "model.norm.weight"), 0, hp->n_embd, true,
                  &out->output_norm));
    GN_TRY(bind_rope_factors(&b));
    out->layers = gn_arena_calloc(&out->arena, hp->n_layer, sizeof *out->layers);
    if (out->layers == NULL) {
        return gn_alloc_failed();
    }
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        GN_TRY(bind_layer(&b, i, &out->layers[i]));
    }
    return check_all_used(&b);
}

void gn_weights_each(gn_weights *weights, const gn_hparams *hp,
                     void (*fn)(void *ctx, gn_view *weight), void *ctx)
{
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        gn_layer *layer = &weights->layers[i];
        gn_view *dense[] = {&layer->q,  &layer->k,    &layer->v,    &layer->o,
                            &layer->up, &layer->gate, &layer->down, &layer->router};
        for (size_t j = 0; j < GN_COUNTOF(dense); j++) {
            if (dense[j]->data != NULL) {
                fn(ctx, dense[j]);
            }
        }
        for (uint32_t e = 0; layer->expert_gate != NULL && e < hp->n_expert; e++) {
            fn(ctx, &layer->expert_gate[e]);
            fn(ctx, &layer->expert_up[e]);
            fn(ctx, &layer->expert_down[e]);
        }
    }
    fn(ctx, &weights->output);
}

void gn_weights_fini(gn_weights *weights)
{
    if (weights != NULL) {
        gn_arena_fini(&weights->arena);
        *weights = (gn_weights){0};
    }
}

const char *gn_weights_find_nonfinite(const gn_source *source)
{
    for (size_t i = 0; i < gn_source_n_tensors(source); i++) {
        const char *name = NULL;
        const gn_view *view = gn_source_tensor_at(source, i, &name);
        if (!gn_compute_supports(view->dtype)) {
            continue;
        }
        size_t cols = (size_t)view->shape[view->n_dims - 1];
        float *row = gn_alloc_array(cols, sizeof *row);
        if (row == NULL) {
            return NULL;
        }
        bool bad = false;
        for (size_t r = 0; r < view->bytes / view->row_bytes && !bad; r++) {
            gn_compute_dequant(view, r, row);
            for (size_t j = 0; j < cols && !bad; j++) {
                bad = !isfinite(row[j]);
            }
        }
        gn_free(row);
        if (bad) {
            return name;
        }
    }
    return NULL;
}
