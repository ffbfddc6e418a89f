/* What a forward pass reads of the weights. */
#include "model/net_impl.h"

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
    gn_kv_shape shape = gn_net_kv_shape(net);
    uint64_t bytes_per_tok = gn_kv_page_bytes(&shape) / hp->n_layer / GN_KV_PAGE_TOK;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        bool cut = hp->windowed[i] && hp->n_window < n_ctx;
        bytes += bytes_per_tok * (cut ? hp->n_window : n_ctx);
    }
    return bytes;
}

const gn_view *gn_net_token_embd(const gn_net *net)
{
    return &net->w.token_embd;
}
