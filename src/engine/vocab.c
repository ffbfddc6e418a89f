#include "engine/vocab.h"

#include "base/alloc.h"
#include "grammar/spell.h"

#include <pthread.h>

struct gn_engine_vocab {
    const gn_tokenizer *tokenizer;
    size_t n_rows;
    pthread_mutex_t lock;  /* of what follows */
    gn_vocab_index *index; /* NULL: not built yet */
    bool bytewise;
};

gn_status gn_engine_vocab_create(const gn_tokenizer *tokenizer, size_t n_rows,
                                 gn_engine_vocab **out)
{
    gn_engine_vocab *v = gn_calloc(1, sizeof *v);
    if (v == NULL) {
        return gn_alloc_failed();
    }
    v->tokenizer = tokenizer;
    v->n_rows = n_rows;
    (void)pthread_mutex_init(&v->lock, NULL);
    *out = v;
    return GN_OK;
}

void gn_engine_vocab_destroy(gn_engine_vocab *v)
{
    if (v != NULL) {
        gn_grammar_vocab_destroy(v->index);
        (void)pthread_mutex_destroy(&v->lock);
        gn_free(v);
    }
}

gn_status gn_engine_vocab_index(gn_engine_vocab *v, gn_vocab_index **index, bool *bytewise)
{
    gn_status status = GN_OK;
    (void)pthread_mutex_lock(&v->lock);
    if (v->index == NULL) {
        status = gn_grammar_vocab_from_tokenizer(v->tokenizer, v->n_rows, &v->index);
        v->bytewise = status == GN_OK && gn_grammar_spells_bytes(v->index);
    }
    *index = v->index;
    *bytewise = v->bytewise;
    (void)pthread_mutex_unlock(&v->lock);
    return status;
}
