/* A model: weights mapped in place, its tokenizer, its chat template.
 *
 * A gn_model is immutable after gn_model_open(); any thread may call the functions below on it, and calls
 * that compute (gn_model_embed() and those of session.h) wait for each other, since they share one pool of
 * worker threads. Memory that a function hands out is given back with gn_release(). */
#ifndef GANGLION_MODEL_H
#define GANGLION_MODEL_H

#include "ganglion/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_model gn_model;

typedef enum gn_activations {
    GN_ACTIVATIONS_INT8 = 0, /* 8 bits a value with a scale per 32 where weights are quantized */
    GN_ACTIVATIONS_F32 = 1   /* exact and slow: weights are de-quantized, the KV cache is f32 */
} gn_activations;

/* How keys and values are kept. Smaller types read less memory per token and lose a little. */
typedef enum gn_kv_format {
    GN_KV_FORMAT_F16 = 0, /* 2 bytes an element; 4 (f32) with GN_ACTIVATIONS_F32 */
    GN_KV_FORMAT_Q8 = 1,  /* 8-bit integers, a scale per token and head */
    GN_KV_FORMAT_FP8 = 2, /* 8-bit floats E4M3, a scale per token and head */
    GN_KV_FORMAT_Q4 = 3   /* keys as in Q8, values in 4-bit integers with a scale per 32 */
} gn_kv_format;

/* The file of repacked weights beside the user's other caches (ganglion pull --cache lists them). */
typedef enum gn_cache_mode {
    GN_CACHE_READ = 0, /* use it where it is there, never write */
    GN_CACHE_AUTO = 1, /* use it; where there is none, write one in the background */
    GN_CACHE_OFF = 2   /* weights from the model's own file alone */
} gn_cache_mode;

typedef struct gn_model_options {
    int32_t threads; /* of decoding, 1 to 1024; 0: the cores this process may use; of more than 2, a
                      * pass of one token uses as few as the first such passes prove enough */
    gn_activations activations;
    uint64_t
        kv_bytes; /* upper limit of the KV pool shared by all sessions; 0: 1/2 of free memory */
    int32_t prefill_threads; /* of passes with more than 16 rows; 0: as many as decode */
    gn_kv_format kv_format;
    gn_cache_mode cache;
    const char *cache_folder; /* NULL: $GANGLION_CACHE_DIR, else the user's cache folder */
    uint64_t cache_bytes;     /* limit of all cache files; 0: a quarter of the file system */
} gn_model_options;

/* `path`: a .gguf file (the first of a split set), a Hugging Face folder, or a .safetensors file in one.
 * options may be NULL. Codes: GN_E_NOT_FOUND, GN_E_IO, GN_E_FORMAT (malformed: file, place, found,
 * expected), GN_E_UNSUPPORTED (architecture, tensor type or tokenizer: named, with those that are),
 * GN_E_NOMEM, GN_E_ARG. Blocks for the time it takes to read the file's header. */
GN_MUST_USE GN_API gn_status gn_model_open(const char *path, const gn_model_options *options,
                                           gn_model **out);
/* NULL is fine. All sessions of the model must be gone. */
GN_API void gn_model_close(gn_model *model);

/* Packed weights are written to their cache file by a thread of its own that yields to all others, and that
 * gn_model_close() stops. Wait for it up to `ms` milliseconds (≥ 0), at normal priority; true: there is
 * nothing to wait for (any more). done, total (may be NULL): bytes. */
GN_API bool gn_model_cache_wait(gn_model *model, int32_t ms, uint64_t *done, uint64_t *total);

typedef struct gn_model_info {
    const char *architecture; /* "llama" … ; borrowed from the model, as all strings here */
    const char *name;         /* general.name, or "" */
    const char *cpu_level; /* level of the kernels in use: "ref", "avx2", "vnni", "amx", "neon" … */
    int32_t threads;       /* that a pass of one token uses now */
    int32_t n_vocab;       /* rows of the logits */
    int32_t n_embd;
    int32_t n_layer;
    int32_t n_ctx_train;         /* longest context the model was made for, in tokens */
    uint64_t n_params;           /* elements of all weights */
    uint64_t weight_bytes;       /* mapped bytes of all weights */
    uint64_t read_bytes_per_tok; /* of the weights, for one token of one sequence */
    uint64_t kv_bytes_per_tok; /* KV cache for one token of one sequence; what layers with a window
                                  * hold of it is given back when the window has passed */
    uint64_t cache_bytes;      /* of the cache file in use; 0: weights are read in place */
    bool is_encoder;           /* makes embeddings, can't generate */
    bool has_chat_template;
    int32_t bos; /* -1: none */
    int32_t eos; /* -1: none */
} gn_model_info;

GN_API gn_model_info gn_model_get_info(const gn_model *model);

#define GN_TOKENIZE_SPECIAL 1u /* parse special tokens in the text */
#define GN_TOKENIZE_BOS     2u /* add what the model adds around a text (BOS; [CLS] and [SEP]) */

/* What it takes to run a model: bytes of memory, and bytes read for a token. */
typedef struct gn_plan {
    int32_t n_ctx;         /* tokens of each user */
    int32_t n_users;       /* sessions at a time */
    uint64_t weight_bytes; /* mapped: what passes touch of the weights in the model's own files */
    uint64_t cache_bytes;  /* mapped: the cache file of repacked weights, where the model uses it */
    uint64_t header_bytes; /* mapped: the files but the weights */
    uint64_t kv_bytes;     /* KV pages, all contexts full */
    uint64_t scratch_bytes;      /* heap: forward pass, sessions, a row of logits for each user */
    uint64_t text_bytes;         /* heap: tables of the files, tokenizer, chat template */
    uint64_t read_bytes_per_tok; /* of the weights, once for all users of a pass; 0: an encoder */
    uint64_t kv_read_bytes_per_tok; /* of one user's keys and values, with n_ctx tokens before it */
} gn_plan;

/* The plan of an open model for n_ctx tokens (0: the model's own context length) of each of n_users
 * sessions. Touches the norms and a few pages of the embedding, to see in what pieces the system maps them;
 * computes nothing, and the model may be larger than the machine. Exact where no other thread used the
 * library while the model was opened. GN_E_ARG. */
GN_MUST_USE GN_API gn_status gn_model_plan(const gn_model *model, int32_t n_ctx, int32_t n_users,
                                           gn_plan *out);

/* Ids of text[0 .. len); *ids (gn_release) has *n of them and is never NULL on GN_OK. */
GN_MUST_USE GN_API gn_status gn_model_tokenize(const gn_model *model, const char *text, size_t len,
                                               unsigned flags, int32_t **ids, size_t *n);
/* Text of ids[0 .. n), NUL-terminated (gn_release); may hold bytes that are no UTF-8 where the ids do. */
GN_MUST_USE GN_API gn_status gn_model_detokenize(const gn_model *model, const int32_t *ids,
                                                 size_t n, bool special, char **text, size_t *len);
/* Bytes of one token as it stands in the middle of a text. */
GN_MUST_USE GN_API gn_status gn_model_piece(const gn_model *model, int32_t id, bool special,
                                            char **text, size_t *len);
/* Does this id end a generation? */
GN_API bool gn_model_is_end(const gn_model *model, int32_t id);

/* Render the model's chat template. `context_json` is a JSON object (not NUL-terminated): "messages",
 * and where wanted "tools", "add_generation_prompt", "enable_thinking" …; bos_token and eos_token are
 * added from the model where absent. GN_E_NOT_FOUND: the model has no template. GN_E_REFUSED: the template
 * refused the conversation (message: its words). */
GN_MUST_USE GN_API gn_status gn_model_render_chat(const gn_model *model, const char *context_json,
                                                  size_t len, char **text, size_t *text_len);

/* The source of that template, NUL-terminated, borrowed from the model; NULL: it has none. */
GN_API const char *gn_model_chat_template(const gn_model *model);

/* Embedding of a text, pooled and normalised as the model says (BERT: mean of the last hidden states,
 * length 1): out [n_embd]. A text longer than the context is GN_E_LIMIT. Decoders: the mean too. */
GN_MUST_USE GN_API gn_status gn_model_embed(gn_model *model, const char *text, size_t len,
                                            float *out);

/* The same of ids[0 .. n), n ≥ 1, as they are: nothing is added around them. GN_E_ARG: an id out of range. */
GN_MUST_USE GN_API gn_status gn_model_embed_ids(gn_model *model, const int32_t *ids, size_t n,
                                                float *out);

/* Give back memory that the library handed out. NULL is fine. */
GN_API void gn_release(void *memory);

/* "0.1.0", and the commit the library was built from ("unknown" outside a checkout). */
GN_API const char *gn_version(void);
GN_API const char *gn_version_commit(void);

#ifdef __cplusplus
}
#endif
#endif
