/* Mixture of experts (Shazeer et al. 2017; Jiang et al. 2024): a router chooses n_expert_used experts for
 * each row; each expert then runs over the rows that chose it. A row's sum is built in ascending order of
 * expert, whatever else is in the batch. */
#include "model/net_impl.h"

#include <string.h>

/* Softmax over the experts; the best stay, the rest become 0; ties go to the lower index. */
static void choose(const gn_net *net, float *probs, uint32_t *chosen)
{
    const gn_hparams *hp = &net->hp;
    float max;
    float sum;
    net->k->max(probs, hp->n_expert, &max);
    net->k->exp_sum(probs, hp->n_expert, max, &sum);
    for (uint32_t i = 0; i < hp->n_expert_used; i++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t e = 0; e < hp->n_expert; e++) {
            bool taken = false;
            for (uint32_t j = 0; j < i; j++) {
                taken = taken || chosen[j] == e;
            }
            if (!taken && (best == UINT32_MAX || probs[e] > probs[best])) {
                best = e;
            }
        }
        chosen[i] = best;
    }
    float total = sum;
    if (hp->expert_norm_topk) {
        total = 0.0f;
        for (uint32_t i = 0; i < hp->n_expert_used; i++) {
            total += probs[chosen[i]];
        }
    }
    for (uint32_t i = 0; i < hp->n_expert_used; i++) {
        probs[chosen[i]] /= total;
    }
}

/* The rows that chose expert e, and their weights. */
static size_t gather(gn_net *net, uint32_t e)
{
    const gn_hparams *hp = &net->hp;
    size_t n = 0;
    for (size_t i = 0; i < net->n_rows; i++) {
        const uint32_t *chosen = net->chosen + i * hp->n_expert_used;
        for (uint32_t j = 0; j < hp->n_expert_used; j++) {
            if (chosen[j] == e) {
                memcpy(net->xe + n * hp->n_embd, net->h + i * hp->n_embd,
                       hp->n_embd * sizeof(float));
                net->gathered[n] = (uint32_t)i;
                net->gathered_w[n] = net->router[i * hp->n_expert + e];
                n++;
            }
        }
    }
    return n;
}

static void run_expert(gn_net *net, const gn_layer *layer, uint32_t e, size_t n)
{
    const gn_hparams *hp = &net->hp;
    size_t n_ff = hp->n_ff_expert;
    gn_acts acts = {.x = net->xe, .ldx = hp->n_embd, .m = n, .k = hp->n_embd};
    const gn_matmul both[] = {{&layer->expert_gate[e], net->gate, n_ff},
                              {&layer->expert_up[e], net->up, n_ff}};
    gn_compute_matmul(net->compute, &acts, both, 2);
    gn_net_gated_act(net, net->gate, net->up, n, n_ff);
    acts = (gn_acts){.x = net->gate, .ldx = n_ff, .m = n, .k = n_ff};
    const gn_matmul down = {&layer->expert_down[e], net->ye, hp->n_embd};
    gn_compute_matmul(net->compute, &acts, &down, 1);
    for (size_t i = 0; i < n; i++) {
        net->k->axpy(net->y + net->gathered[i] * hp->n_embd, net->ye + i * hp->n_embd, hp->n_embd,
                     net->gathered_w[i]);
    }
}

void gn_net_moe(gn_net *net, const gn_layer *layer)
{
    const gn_hparams *hp = &net->hp;
    gn_acts acts = {.x = net->h, .ldx = hp->n_embd, .m = net->n_rows, .k = hp->n_embd};
    const gn_matmul router = {&layer->router, net->router, hp->n_expert};
    gn_compute_matmul(net->compute, &acts, &router, 1);
    for (size_t i = 0; i < net->n_rows; i++) {
        choose(net, net->router + i * hp->n_expert, net->chosen + i * hp->n_expert_used);
    }
    memset(net->y, 0, net->n_rows * hp->n_embd * sizeof(float));
    for (uint32_t e = 0; e < hp->n_expert; e++) {
        size_t n = gather(net, e);
        if (n != 0) {
            run_expert(net, layer, e, n);
        }
    }
}
