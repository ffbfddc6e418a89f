/* What running a model takes, told by one that is open: the heap is counted while a model is opened, so that no
 * formula of it is written down twice, and opening reads the file's header alone. */
#include "engine/session_impl.h"
#include "os/map.h"
#include "tensor/panels.h"

#include <math.h>

#define PROBES 8

/* Bytes of an embedding that n_tok different tokens map. Each brings the piece of the file that its row lies in: pieces
 * drawn at random from n leave a share of (1 - 1/n)^n_tok of them out. */
static uint64_t embedding_bytes(const gn_view *embd, uint64_t n_tok)
{
    const unsigned char *data = embd->data;
    size_t sum = 0;
    for (size_t i = 0; i < PROBES; i++) {
        sum += gn_os_mapped_around(data, embd->bytes,
                                   data + (2 * i + 1) * (embd->bytes / (2 * PROBES)));
    }
    double n_pieces = (double)embd->bytes / ((double)sum / PROBES + (double)embd->row_bytes);
    double share = sum != 0 ? 1.0 - exp(-(double)n_tok / n_pieces) : 1.0;
    return (uint64_t)(share * (double)embd->bytes);
}

typedef struct mapped {
    const gn_view *embd;
    bool embd_is_read; /* whole, by the output that it is tied to */
    uint64_t files;    /* of the model's own files, the embedding aside */
    uint64_t panels;
} mapped;

/* A matrix with packed panels is read from those, and of its form in the file is mapped what came with its
 * neighbours. */
static void count_weight(void *ctx, gn_view *w)
{
    mapped *m = ctx;
    bool is_embd = w->data == m->embd->data;
    if (w->panels != NULL) {
        m->panels += gn_panels_count(w) * gn_panels_stride(w);
        m->files -= is_embd ? 0 : w->bytes - gn_os_mapped_bytes(w->data, w->bytes);
    } else if (is_embd) {
        m->embd_is_read = true;
    }
}

/* Norms and biases stay in the file: touching them maps what a pass will map with them. */
static void touch_vectors(const gn_source *source)
{
    for (size_t i = 0; i < gn_source_n_tensors(source); i++) {
        const char *name;
        const gn_view *view = gn_source_tensor_at(source, i, &name);
        if (view->n_dims == 1 && view->bytes != 0) {
            (void)gn_os_mapped_around(view->data, view->bytes, view->data);
        }
    }
}

static void plan_decoder(const gn_model *model, gn_plan *plan)
{
    uint64_t users = (uint64_t)plan->n_users;
    uint64_t n_ctx = (uint64_t)plan->n_ctx;
    gn_kv_shape shape = gn_net_kv_shape(model->net);
    mapped m = {.embd = gn_net_token_embd(model->net)};
    m.files = model->info.weight_bytes - m.embd->bytes;
    touch_vectors(model->source);
    gn_net_each_weight(model->net, count_weight, &m);
    plan->weight_bytes =
        m.files + (m.embd_is_read ? m.embd->bytes : embedding_bytes(m.embd, users * n_ctx));
    plan->cache_bytes = m.panels;
    plan->kv_bytes = users * gn_kv_table_bytes(&shape, (uint32_t)n_ctx);
    plan->scratch_bytes += users * gn_session_bytes(model, (size_t)plan->n_ctx);
    plan->read_bytes_per_tok = model->info.read_bytes_per_tok;
    plan->kv_read_bytes_per_tok = gn_net_kv_read_bytes(model->net, (uint32_t)plan->n_ctx);
}

gn_status gn_model_plan(const gn_model *model, int32_t n_ctx, int32_t n_users, gn_plan *out)
{
    GN_REQUIRE(n_ctx >= 0, GN_E_ARG, "n_ctx: found %d, expected 0 or more", n_ctx);
    GN_REQUIRE(n_users >= 1, GN_E_ARG, "n_users: found %d, expected 1 or more", n_users);
    gn_plan plan = {.n_ctx = n_ctx != 0 ? n_ctx : model->info.n_ctx_train,
                    .n_users = n_users,
                    .header_bytes = gn_source_bytes(model->source) - model->info.weight_bytes,
                    .scratch_bytes = model->net_bytes,
                    .text_bytes = model->text_bytes,
                    .weight_bytes = model->info.weight_bytes};
    if (model->net != NULL) {
        plan_decoder(model, &plan);
    }
    *out = plan;
    return GN_OK;
}
