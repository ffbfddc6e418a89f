/* Which file `-m` means, the folder of pulled models, and the options that every command with a model
 * has. One thread. */
#ifndef GN_CLI_MODEL_PATH_H
#define GN_CLI_MODEL_PATH_H

#include "cli/args.h"
#include "file/source.h"
#include "ganglion/model.h"
#include "text/tokenizer.h"

/* Rows of every command that opens a model; `T` is its options struct, which has a gn_cli_model_args
 * named `model`. */
typedef struct gn_cli_model_args {
    const char *path; /* as given to -m */
    int64_t threads;
    int64_t prefill_threads; /* 0: as threads */
    int activations;         /* gn_activations */
    uint64_t kv_bytes;
    int kv;               /* gn_kv_format */
    int cache;            /* of GN_CLI_CACHE_CHOICES */
    uint64_t cache_bytes; /* limit of all cache files; 0: a quarter of the file system */
} gn_cli_model_args;

#define GN_CLI_CACHE_CHOICES "auto|read|off"
enum { GN_CLI_CACHE_AUTO, GN_CLI_CACHE_READ, GN_CLI_CACHE_OFF }; /* in that order */
#define GN_CLI_KV_CHOICES "f16|q8|fp8|q4"

#define GN_CLI_MODEL_OPTION(T)                                                                     \
    {                                                                                              \
        .letter = 'm', .name = "model", .kind = GN_CLI_TEXT, .offset = offsetof(T, model.path),    \
        .value = "MODEL",                                                                          \
        .help = "A .gguf file, a Hugging Face folder, or the name of a pulled model."              \
    }
#define GN_CLI_COMPUTE_OPTIONS(T)                                                                  \
    {.letter = 't',                                                                                \
     .name = "threads",                                                                            \
     .kind = GN_CLI_INT,                                                                           \
     .offset = offsetof(T, model.threads),                                                         \
     .value = "T",                                                                                 \
     .help = "Threads that compute; default: the cores this process may use, or fewer for decode " \
             "where they are as fast.",                                                            \
     .min = 1,                                                                                     \
     .max = 1024},                                                                                 \
        {.name = "threads-prefill",                                                                \
         .kind = GN_CLI_INT,                                                                       \
         .offset = offsetof(T, model.prefill_threads),                                             \
         .value = "T",                                                                             \
         .help = "Threads that read the prompt; default: as --threads.",                           \
         .min = 1,                                                                                 \
         .max = 1024},                                                                             \
        {.name = "activations",                                                                    \
         .kind = GN_CLI_CHOICE,                                                                    \
         .offset = offsetof(T, model.activations),                                                 \
         .choices = "int8|f32",                                                                    \
         .help = "int8: activations of quantized layers in 8 bits (default); f32: exact, slow."},  \
        {.name = "kv",                                                                             \
         .kind = GN_CLI_CHOICE,                                                                    \
         .offset = offsetof(T, model.kv),                                                          \
         .choices = GN_CLI_KV_CHOICES,                                                             \
         .help = "Type of the KV cache: f16 (default), q8, fp8 or q4; smaller is faster in long "  \
                 "contexts and less exact."},                                                      \
        {.name = "cache",                                                                          \
         .kind = GN_CLI_CHOICE,                                                                    \
         .offset = offsetof(T, model.cache),                                                       \
         .choices = GN_CLI_CACHE_CHOICES,                                                          \
         .help = "Packed weights in a file for faster starts: auto: use it, write it the first "   \
                 "time (default); read: never write; off."},                                       \
        {.name = "cache-limit",                                                                    \
         .kind = GN_CLI_SIZE,                                                                      \
         .offset = offsetof(T, model.cache_bytes),                                                 \
         .value = "BYTES",                                                                         \
         .help = "Most that all files of packed weights may take when one is written, such as "    \
                 "20G; default: a quarter of the disk."},                                          \
    {                                                                                              \
        .name = "kv-memory", .kind = GN_CLI_SIZE, .offset = offsetof(T, model.kv_bytes),           \
        .value = "BYTES",                                                                          \
        .help = "Most memory for the KV cache, such as 2G; default: half of what is free."         \
    }

/* The names in GN_CLI_KV_CHOICES, by gn_kv_format. */
extern const char *const gn_cli_kv_choices[];

/* The name of the format that keys and values have with these options: one of those, or f32 with exact
 * activations where no smaller one is chosen. */
const char *gn_cli_kv_name(const gn_cli_model_args *args);

/* What they mean to gn_model_open(). --cache is narrowed by $GANGLION_CACHE as below. */
gn_model_options gn_cli_model_options(const gn_cli_model_args *args);

/* Open the model that `-m` names. GN_E_ARG without -m; else the codes of gn_model_open(). --cache is
 * narrowed by $GANGLION_CACHE (read or off), for all commands at once. */
GN_MUST_USE gn_status gn_cli_model_open(const gn_cli_model_args *args, gn_model **out);

/* Close a model. Where its packed weights are being written, they are finished first, with a line of
 * progress on a terminal; Ctrl-C leaves them for another time. NULL is fine. */
void gn_cli_model_close(gn_model *model);

/* Only the model's files, or only its tokenizer: works for models that can't be run. Codes as above. */
GN_MUST_USE gn_status gn_cli_source_open(const char *name, gn_source **out);
GN_MUST_USE gn_status gn_cli_tokenizer_open(const char *name, gn_tokenizer **out);

/* The path of the model called `name`: `name` itself where such a file or folder exists, else NAME (a
 * folder; of a split set, its first part) or NAME.gguf in the models folder where that exists, else `name`
 * itself. Appends to `out`. */
GN_MUST_USE gn_status gn_cli_model_resolve(const char *name, gn_buf *out);

/* Append the models folder: $GANGLION_MODELS, else $XDG_CACHE_HOME/ganglion/models, else
 * ~/.cache/ganglion/models. No slash at the end. GN_E_NOT_FOUND without a home folder. */
GN_MUST_USE gn_status gn_cli_models_folder(gn_buf *out);

/* Can `name` be a file name in the models folder? Letters, digits and . _ - + @, not starting with a dot
 * or dash, 1 to 200 bytes: no path separator, nothing a shell or terminal could trip over. */
bool gn_cli_model_name_ok(const char *name);

#endif
