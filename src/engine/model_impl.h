/* What the files of engine/ know of a gn_model. */
#ifndef GN_ENGINE_MODEL_IMPL_H
#define GN_ENGINE_MODEL_IMPL_H

#include "engine/panels.h"
#include "engine/tuner.h"
#include "engine/vocab.h"
#include "ganglion/model.h"
#include "kv/pages.h"
#include "model/encoder.h"
#include "model/net.h"
#include "text/template.h"
#include "text/tokenizer.h"

#include <pthread.h>
#include <stdatomic.h>

struct gn_model {
    gn_source *source;
    gn_tokenizer *tokenizer; /* NULL: a checkpoint without one; only ids can be used */
    gn_engine_vocab *vocab;  /* of the tokenizer, NULL where it is */
    gn_template *chat;       /* NULL: none, or it could not be parsed (chat_error) */
    char *chat_error;
    gn_os_pool *pool;
    gn_net *net;              /* a decoder, or */
    gn_engine_panels *panels; /* of net; NULL: not wanted */
    gn_encoder *encoder;      /* an encoder */
    gn_kv_pool *kv;           /* decoders; under lock */
    gn_row *rows;             /* decoders: [GN_NET_MAX_ROWS] of the pass that runs; under lock */
    gn_model_info info;       /* but for threads: n_threads_one */
    atomic_int n_threads_one; /* of passes of one row */
    int n_threads_few;        /* of those of a few more */
    int n_threads_many;
    gn_engine_tuner tuner; /* of n_threads_one; under lock */
    char *name;
    char arch[64];
    uint64_t net_bytes;   /* heap of the forward pass */
    uint64_t text_bytes;  /* heap of all else: tables of the file, tokenizer, chat template */
    pthread_mutex_t lock; /* computing, and the KV pool */
};

/* GN_E_FORMAT that says which weight is not finite, for logits that are not. */
gn_status gn_engine_nonfinite(const gn_model *model);

#endif
