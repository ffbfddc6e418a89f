/* Opening a model: file → tokenizer, chat template, network, KV pool. */
#include "engine/model_impl.h"

#include "base/alloc.h"
#include "cpu/topology.h"
#include "os/memory.h"

#include <stdio.h>
#include <string.h>

#define MAX_THREADS 1024

static gn_status open_tokenizer(gn_model *m)
{
    if (gn_source_get_kind(m->source) == GN_SOURCE_HF && gn_source_tokenizer(m->source) == NULL) {
        return GN_OK;
    }
    if (gn_source_get_kind(m->source) == GN_SOURCE_GGUF &&
        gn_gguf_find(gn_source_gguf(m->source), "tokenizer.ggml.model") == NULL) {
        return GN_OK;
    }
    GN_TRY(gn_tokenizer_create(m->source, &m->tokenizer));
    int32_t n = gn_tokenizer_n_vocab(m->tokenizer);
    GN_REQUIRE(n <= m->info.n_vocab, GN_E_FORMAT,
               "the vocabulary has %d tokens, but the embedding only %d rows", n, m->info.n_vocab);
    gn_tokenizer_set_rows(m->tokenizer, m->info.n_vocab);
    m->info.bos = gn_tokenizer_bos(m->tokenizer);
    m->info.eos = gn_tokenizer_eos(m->tokenizer);
    return gn_engine_vocab_create(m->tokenizer, (size_t)m->info.n_vocab, &m->vocab);
}

/* A template that can't be parsed does not keep the model from loading: the error comes when it is used. */
static gn_status open_template(gn_model *m)
{
    const char *text = gn_source_chat_template(m->source);
    if (text == NULL && m->tokenizer != NULL) {
        text = gn_tokenizer_chat_template(m->tokenizer);
    }
    if (text == NULL) {
        return GN_OK;
    }
    m->info.has_chat_template = true;
    gn_status status = gn_template_parse(text, strlen(text), &m->chat);
    if (status == GN_E_NOMEM) {
        return status;
    }
    if (status != GN_OK) {
        m->chat_error = gn_strdup(gn_error_message());
        return m->chat_error != NULL ? GN_OK : gn_alloc_failed();
    }
    return GN_OK;
}

static gn_kv_type kv_type(const gn_model_options *options)
{
    static const gn_kv_type types[] = {[GN_KV_FORMAT_F16] = GN_KV_F16,
                                       [GN_KV_FORMAT_Q8] = GN_KV_Q8,
                                       [GN_KV_FORMAT_FP8] = GN_KV_FP8,
                                       [GN_KV_FORMAT_Q4] = GN_KV_Q4};
    bool exact = options->activations == GN_ACTIVATIONS_F32;
    return exact && options->kv_format == GN_KV_FORMAT_F16 ? GN_KV_F32 : types[options->kv_format];
}

static gn_status open_decoder(gn_model *m, const gn_model_options *options)
{
    GN_TRY(gn_net_create(m->source, m->pool, options->activations == GN_ACTIVATIONS_F32,
                         kv_type(options), &m->net));
    const gn_hparams *hp = gn_net_hparams(m->net);
    gn_kv_shape shape = gn_net_kv_shape(m->net);
    m->info.n_vocab = (int32_t)hp->n_vocab;
    m->info.n_embd = (int32_t)hp->n_embd;
    m->info.n_layer = (int32_t)hp->n_layer;
    m->info.n_ctx_train = (int32_t)hp->n_ctx;
    m->rows = gn_calloc(GN_NET_MAX_ROWS, sizeof *m->rows);
    if (m->rows == NULL) {
        return gn_alloc_failed();
    }
    if (options->cache != GN_CACHE_OFF && options->activations != GN_ACTIVATIONS_F32) {
        GN_TRY(gn_engine_panels_open(m->source, m->net, options, &m->panels));
        m->info.cache_bytes = gn_engine_panels_bytes(m->panels);
    }
    m->info.read_bytes_per_tok = gn_net_read_bytes(m->net);
    m->info.kv_bytes_per_tok = gn_kv_page_bytes(&shape) / GN_KV_PAGE_TOK;
    uint64_t limit = options->kv_bytes != 0 ? options->kv_bytes : gn_os_free_memory() / 2;
    return gn_kv_pool_create(&shape, limit, &m->kv);
}

static gn_status open_encoder(gn_model *m, const gn_model_options *options)
{
    GN_TRY(gn_encoder_create(m->source, m->pool, options->activations == GN_ACTIVATIONS_F32,
                             &m->encoder));
    const gn_hparams *hp = gn_encoder_hparams(m->encoder);
    m->info.is_encoder = true;
    m->info.n_vocab = (int32_t)hp->n_vocab;
    m->info.n_embd = (int32_t)hp->n_embd;
    m->info.n_layer = (int32_t)hp->n_layer;
    m->info.n_ctx_train = (int32_t)hp->n_ctx;
    return GN_OK;
}

/* general.name of a GGUF; nothing elsewhere. */
static gn_status read_name(gn_model *m)
{
    gn_gguf_str s = {"", 0};
    const gn_gguf *gguf = gn_source_gguf(m->source);
    if (gguf != NULL && gn_gguf_get_str(gguf, "general.name", &s) != GN_OK) {
        s = (gn_gguf_str){"", 0};
    }
    m->name = gn_strndup(s.s, s.len);
    m->info.name = m->name;
    return m->name != NULL ? GN_OK : gn_alloc_failed();
}

static void count_weights(gn_model *m)
{
    for (size_t i = 0; i < gn_source_n_tensors(m->source); i++) {
        const char *name = NULL;
        const gn_view *view = gn_source_tensor_at(m->source, i, &name);
        uint64_t n = 1;
        for (int d = 0; d < view->n_dims; d++) {
            n *= view->shape[d];
        }
        m->info.n_params += n;
        m->info.weight_bytes += view->bytes;
    }
}

/* Cores rather than processors: two that share a core share what computes. Where there is no choice the
 * topology isn't loaded. */
static int usable_cores(void)
{
    int n = gn_os_cpu_count();
    int n_cores = n > 2 ? gn_cpu_count_cores(NULL, NULL) : 0;
    return n_cores != 0 && n_cores < n ? n_cores : n;
}

static gn_status open_pool(gn_model *m, const gn_model_options *options)
{
    bool fixed = options->threads != 0;
    int n_decode = fixed ? options->threads : usable_cores();
    n_decode = n_decode < MAX_THREADS ? n_decode : MAX_THREADS;
    int n_prefill = options->prefill_threads != 0 ? options->prefill_threads : n_decode;
    GN_TRY(gn_os_pool_create(n_decode > n_prefill ? n_decode : n_prefill, &m->pool));
    gn_os_pool_use(m->pool, n_prefill); /* of encoders; decoders choose for each pass */
    gn_engine_tuner_init(&m->tuner, n_decode, fixed);
    atomic_init(&m->n_threads_one, n_decode);
    m->n_threads_few = n_decode;
    m->n_threads_many = n_prefill;
    return GN_OK;
}

static gn_status open_parts(gn_model *m, const char *path, const gn_model_options *options)
{
    uint64_t heap = gn_alloc_bytes();
    GN_TRY(gn_source_open(path, &m->source));
    gn_meta meta;
    const gn_arch *arch = NULL;
    GN_TRY(gn_meta_init(&meta, m->source));
    GN_TRY(gn_arch_find(&meta, &arch));
    memcpy(m->arch, meta.arch, sizeof m->arch);
    m->info.architecture = m->arch;
    GN_TRY(open_pool(m, options));
    m->info.cpu_level = gn_cpu_level_name(gn_kernels_get()->level);
    m->info.bos = -1;
    m->info.eos = -1;
    uint64_t before_net = gn_alloc_bytes();
    GN_TRY(arch->encoder ? open_encoder(m, options) : open_decoder(m, options));
    if (m->net != NULL) {
        gn_net_set_threads(m->net, m->n_threads_few, m->n_threads_many);
    }
    m->net_bytes = gn_alloc_bytes() - before_net;
    GN_TRY(read_name(m));
    count_weights(m);
    GN_TRY(open_tokenizer(m));
    GN_TRY(open_template(m));
    m->text_bytes = gn_alloc_bytes() - heap - m->net_bytes;
    return GN_OK;
}

gn_status gn_model_open(const char *path, const gn_model_options *options, gn_model **out)
{
    GN_REQUIRE(path != NULL && out != NULL, GN_E_ARG, "gn_model_open: path and out must be given");
    gn_model_options chosen = options != NULL ? *options : (gn_model_options){0};
    GN_REQUIRE(chosen.threads >= 0 && chosen.threads <= MAX_THREADS, GN_E_ARG,
               "threads: found %d, expected 0 to %d", chosen.threads, MAX_THREADS);
    GN_REQUIRE(chosen.prefill_threads >= 0 && chosen.prefill_threads <= MAX_THREADS, GN_E_ARG,
               "prefill_threads: found %d, expected 0 to %d", chosen.prefill_threads, MAX_THREADS);
    GN_REQUIRE(chosen.activations == GN_ACTIVATIONS_INT8 ||
                   chosen.activations == GN_ACTIVATIONS_F32,
               GN_E_ARG, "activations: found %d, expected 0 or 1", (int)chosen.activations);
    GN_REQUIRE(chosen.cache >= GN_CACHE_READ && chosen.cache <= GN_CACHE_OFF, GN_E_ARG,
               "cache: found %d, expected 0 to 2", (int)chosen.cache);
    GN_REQUIRE((int)chosen.kv_format >= GN_KV_FORMAT_F16 && chosen.kv_format <= GN_KV_FORMAT_Q4,
               GN_E_ARG, "kv_format: found %d, expected 0 to 3", (int)chosen.kv_format);
    GN_TRY(gn_cpu_init());
    gn_model *m = gn_calloc(1, sizeof *m);
    if (m == NULL) {
        return gn_alloc_failed();
    }
    (void)pthread_mutex_init(&m->lock, NULL);
    gn_status status = open_parts(m, path, &chosen);
    if (status != GN_OK) {
        gn_model_close(m);
        /* The reader of files has named the file already; the later stages do not know it. */
        return strncmp(gn_error_message(), path, strlen(path)) == 0
                   ? status
                   : gn_base_fail_prefix(status, "%s: ", path);
    }
    gn_base_fail_clear(); /* what was looked for in vain on the way is no failure */
    *out = m;
    return GN_OK;
}

void gn_model_close(gn_model *m)
{
    if (m == NULL) {
        return;
    }
    gn_engine_panels_close(m->panels);
    gn_kv_pool_destroy(m->kv);
    gn_free(m->rows);
    gn_net_destroy(m->net);
    gn_encoder_destroy(m->encoder);
    gn_os_pool_destroy(m->pool);
    gn_template_destroy(m->chat);
    gn_engine_vocab_destroy(m->vocab);
    gn_tokenizer_destroy(m->tokenizer);
    gn_source_close(m->source);
    gn_free(m->chat_error);
    gn_free(m->name);
    (void)pthread_mutex_destroy(&m->lock);
    gn_free(m);
}

gn_model_info gn_model_get_info(const gn_model *model)
{
    gn_model_info info = model->info;
    info.threads = atomic_load_explicit(&model->n_threads_one, memory_order_relaxed);
    return info;
}

bool gn_model_cache_wait(gn_model *model, int32_t ms, uint64_t *done, uint64_t *total)
{
    return gn_engine_panels_wait(model->panels, ms, done, total);
}

gn_status gn_engine_nonfinite(const gn_model *model)
{
    const char *name = gn_weights_find_nonfinite(model->source);
    if (name != NULL) {
        return gn_base_fail(GN_E_FORMAT, "%s: tensor \"%s\" holds a NaN or an infinity",
                            gn_source_path(model->source), name);
    }
    return gn_base_fail(GN_E_FORMAT, "%s: the weights lead to values beyond the range of floats",
                        gn_source_path(model->source));
}

void gn_release(void *memory)
{
    gn_free(memory);
}
