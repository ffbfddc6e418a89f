/* Embeddings: the mean of the last hidden states, scaled to length 1 (Reimers and Gurevych 2019). */
#include "base/alloc.h"
#include "engine/model_impl.h"

#include <math.h>

static void mean_and_normalise(const float *hidden, size_t n, size_t width, float *out)
{
    double norm = 0.0;
    for (size_t j = 0; j < width; j++) {
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            sum += (double)hidden[i * width + j];
        }
        sum /= (double)n;
        out[j] = (float)sum;
        norm += sum * sum;
    }
    norm = sqrt(norm);
    for (size_t j = 0; norm > 0.0 && j < width; j++) {
        out[j] = (float)((double)out[j] / norm);
    }
}

/* A decoder's hidden states of ids[0 .. n), with pages of its own. */
static gn_status decoder_hidden(gn_model *model, const int32_t *ids, size_t n, float *hidden)
{
    gn_row *rows = model->rows;
    gn_kv_table table;
    gn_kv_table_init(&table, model->kv);
    gn_status status = GN_OK;
    for (size_t done = 0; done < n && status == GN_OK;) {
        (void)pthread_mutex_lock(&model->lock); /* others compute between two passes */
        status = gn_kv_table_reserve(&table, (uint32_t)n);
        if (status != GN_OK) {
            (void)pthread_mutex_unlock(&model->lock);
            break;
        }
        size_t m = n - done < GN_NET_MAX_ROWS ? n - done : GN_NET_MAX_ROWS;
        for (size_t i = 0; i < m; i++) {
            rows[i] = (gn_row){.id = ids[done + i],
                               .pos = (uint32_t)(done + i),
                               .table = &table,
                               .wants_output = true};
        }
        gn_net_forward(model->net, rows, m, NULL, hidden + done * (size_t)model->info.n_embd);
        done += m;
        gn_kv_table_advance(&table, (uint32_t)done);
        (void)pthread_mutex_unlock(&model->lock);
    }
    (void)pthread_mutex_lock(&model->lock);
    gn_kv_table_fini(&table);
    (void)pthread_mutex_unlock(&model->lock);
    return status;
}

gn_status gn_model_embed_ids(gn_model *model, const int32_t *ids, size_t n, float *out)
{
    size_t width = (size_t)model->info.n_embd;
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(ids[i] >= 0 && ids[i] < model->info.n_vocab, GN_E_ARG,
                   "token %zu: found id %d, expected 0 to %d", i, ids[i], model->info.n_vocab - 1);
    }
    GN_REQUIRE(n >= 1, GN_E_ARG, "an empty text has no embedding");
    GN_REQUIRE(n <= (size_t)model->info.n_ctx_train, GN_E_LIMIT,
               "the text has %zu tokens, the model's context %d", n, model->info.n_ctx_train);
    float *hidden = gn_alloc_array(n, width * sizeof *hidden);
    if (hidden == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = GN_OK;
    if (model->encoder != NULL) {
        (void)pthread_mutex_lock(&model->lock);
        gn_encoder_forward(model->encoder, ids, n, hidden);
        (void)pthread_mutex_unlock(&model->lock);
    } else {
        status = decoder_hidden(model, ids, n, hidden);
    }
    if (status == GN_OK) {
        mean_and_normalise(hidden, n, width, out);
        for (size_t j = 0; j < width && status == GN_OK; j++) {
            status = isfinite(out[j]) ? GN_OK : gn_engine_nonfinite(model);
        }
    }
    gn_free(hidden);
    return status;
}

gn_status gn_model_embed(gn_model *model, const char *text, size_t len, float *out)
{
    int32_t *ids = NULL;
    size_t n = 0;
    GN_TRY(gn_model_tokenize(model, text, len, GN_TOKENIZE_BOS, &ids, &n));
    gn_status status = gn_model_embed_ids(model, ids, n, out);
    gn_free(ids);
    return status;
}
