/* What a forward pass reads of the weights. */
#include "model/net_impl.h"
#include "tensor/panels.h"

static uint64_t layer_bytes(const gn_hparams *hp, const gn_layer *layer)
{
    uint64_t bytes = layer->q.bytes + layer->k.bytes + layer->v.bytes + layer->o.bytes;
    if (layer->router.data == NULL) {
        return bytes + layer->gate.bytes + layer->up.bytes + layer->down.bytes;
    }
    uint64_t experts = 0;
    for (uint32_t i = 0; i < hp->n_expert; i++) {
        experts +=
            layer->expert_gate[i].bytes + layer->expert_up[i].bytes + layer->expert_down[i].bytes;
    }
    return bytes + layer->router.bytes + experts / hp->n_expert * hp->n_expert_used;
}

uint64_t gn_net_read_bytes(const gn_net *net)
{
    uint64_t bytes = net->w.token_embd.row_bytes + net->w.output.bytes;
    for (uint32_t i = 0; i < net->hp.n_layer; i++) {
        bytes += layer_bytes(&net->hp, &net->w.layers[i]);
    }
    return bytes;
}

uint64_t gn_net_kv_read_bytes(const gn_net *net, uint32_t n_ctx)
{
    const gn_hparams *hp = &net->hp;
    gn_kv_shape one_layer = gn_net_kv_shape(net);
    one_layer.n_layer = 1;
    uint64_t bytes_per_tok = gn_kv_page_bytes(&one_layer) / GN_KV_PAGE_TOK;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        bool cut = hp->windowed[i] && hp->n_window < n_ctx;
        bytes += bytes_per_tok * (cut ? hp->n_window : n_ctx);
    }
    return bytes;
}

/* Move a matrix from the tensors that the file has to the panels, where it has some. */
static void count_panels(const gn_view *w, gn_net_mapped *m)
{
    if (w->data != NULL && w->panels != NULL) {
        m->tensors -= w->bytes;
        m->panels += gn_panels_count(w) * gn_panels_stride(w);
    }
}

gn_net_mapped gn_net_get_mapped(const gn_net *net)
{
    gn_net_mapped m = {0};
    for (size_t i = 0; i < gn_source_n_tensors(net->source); i++) {
        const char *name;
        m.tensors += gn_source_tensor_at(net->source, i, &name)->bytes;
    }
    for (uint32_t i = 0; i < net->hp.n_layer; i++) {
        const gn_layer *l = &net->w.layers[i];
        const gn_view *matrices[] = {&l->q,    &l->k,  &l->v,    &l->o,
                                     &l->gate, &l->up, &l->down, &l->router};
        for (size_t j = 0; j < GN_COUNTOF(matrices); j++) {
            count_panels(matrices[j], &m);
        }
        for (uint32_t j = 0; l->router.data != NULL && j < net->hp.n_expert; j++) {
            count_panels(&l->expert_gate[j], &m);
            count_panels(&l->expert_up[j], &m);
            count_panels(&l->expert_down[j], &m);
        }
    }
    count_panels(&net->w.output, &m);
    if (net->w.token_embd.data != net->w.output.data || net->w.output.panels != NULL) {
        /* Rows of it are read one by one, from the file's blocks. */
        m.embd = &net->w.token_embd;
        m.tensors -= net->w.token_embd.data != net->w.output.data ? m.embd->bytes : 0;
    }
    return m;
}
