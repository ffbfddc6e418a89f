/* Names of models → paths. A name is looked up in the models folder only where it is a plain file name,
 * so that nothing outside the folder can be reached by it. */
#include "cli/model_path.h"

#include "cli/catalogue.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "os/folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NAME 200

bool gn_cli_model_name_ok(const char *name)
{
    static const char extra[] = "._-+@";
    size_t len = strlen(name);
    if (len == 0 || len > MAX_NAME || name[0] == '.' || name[0] == '-') {
        return false;
    }
    for (const char *s = name; *s != '\0'; s++) {
        bool plain =
            (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
        if (!plain && strchr(extra, *s) == NULL) {
            return false;
        }
    }
    return true;
}

gn_status gn_cli_models_folder(gn_buf *out)
{
    return gn_os_cache_folder("GANGLION_MODELS", "models", out);
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Where the folder at `path` holds a split set, append the name of its first part. */
static gn_status append_split(gn_buf *path)
{
    DIR *folder = opendir(path->data);
    gn_status status = GN_OK;
    const struct dirent *entry;
    while (folder != NULL && status == GN_OK && (entry = readdir(folder)) != NULL) {
        const char *tail = strstr(entry->d_name, "-00001-of-");
        if (entry->d_name[0] != '.' && tail != NULL &&
            strlen(tail) == strlen("-00001-of-00002.gguf") &&
            strcmp(tail + strlen("-00001-of-00002"), ".gguf") == 0) {
            status = gn_buf_printf(path, "/%s", entry->d_name);
            break;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return status;
}

/* A pulled model of that name; *found says whether `path` has it. */
static gn_status find_pulled(const char *name, gn_buf *path, bool *found)
{
    static const char *const suffixes[] = {"", ".gguf"};
    *found = false;
    for (size_t i = 0; !*found && i < GN_COUNTOF(suffixes); i++) {
        gn_buf_clear(path);
        gn_status status = gn_cli_models_folder(path);
        if (status == GN_E_NOT_FOUND) {
            return GN_OK;
        }
        GN_TRY(status);
        GN_TRY(gn_buf_printf(path, "/%s%s", name, suffixes[i]));
        *found = exists(path->data);
    }
    return *found ? append_split(path) : GN_OK;
}

gn_status gn_cli_model_resolve(const char *name, gn_buf *out)
{
    if (exists(name) || !gn_cli_model_name_ok(name)) {
        return gn_buf_puts(out, name);
    }
    gn_buf path = {0};
    bool found = false;
    gn_status status = find_pulled(name, &path, &found);
    if (status == GN_OK) {
        status = gn_buf_puts(out, found ? path.data : name);
    }
    gn_buf_fini(&path);
    return status;
}

/* The resolved path of what was given to -m. */
static gn_status required_path(const char *name, gn_buf *out)
{
    GN_REQUIRE(name != NULL, GN_E_ARG, "found no model, expected -m MODEL");
    GN_REQUIRE(name[0] != '\0', GN_E_ARG, "-m: found an empty text, expected a model");
    size_t before = out->len;
    GN_TRY(gn_cli_model_resolve(name, out));
    const char *path = out->data + before;
    GN_REQUIRE(exists(path) || gn_cli_catalogue_find(name) == NULL, GN_E_NOT_FOUND,
               "%s: this model is not here yet; fetch it with: ganglion pull %s", name, name);
    return GN_OK;
}

/* --cache, narrowed by the environment. */
static gn_cache_mode cache_mode(const gn_cli_model_args *args)
{
    static const gn_cache_mode modes[] = {GN_CACHE_AUTO, GN_CACHE_READ, GN_CACHE_OFF};
    gn_cache_mode mode = modes[args->cache];
    const char *limit = getenv("GANGLION_CACHE");
    if (limit != NULL && strcmp(limit, "off") == 0) {
        return GN_CACHE_OFF;
    }
    bool read_only = limit != NULL && strcmp(limit, "read") == 0;
    return read_only && mode == GN_CACHE_AUTO ? GN_CACHE_READ : mode;
}

void gn_cli_model_close(gn_model *model)
{
    uint64_t done = 0;
    uint64_t total = 0;
    if (model != NULL && !gn_model_cache_wait(model, 0, &done, &total) &&
        gn_cli_interrupt_catch() == GN_OK) {
        (void)fflush(stdout);
        gn_cli_progress progress;
        gn_cli_progress_start(&progress, "packing weights for the next start", "B", total, done);
        while (!gn_cli_interrupt_pending() && !gn_model_cache_wait(model, 100, &done, NULL)) {
            gn_cli_progress_at(&progress, done);
        }
        gn_cli_progress_end(&progress);
    }
    gn_model_close(model);
}

const char *const gn_cli_kv_choices[] = {"f16", "q8", "fp8", "q4"};

const char *gn_cli_kv_name(const gn_cli_model_args *args)
{
    bool exact = args->activations == GN_ACTIVATIONS_F32 && args->kv == GN_KV_FORMAT_F16;
    return exact ? "f32" : gn_cli_kv_choices[args->kv];
}

gn_model_options gn_cli_model_options(const gn_cli_model_args *args)
{
    return (gn_model_options){.threads = (int32_t)args->threads,
                              .prefill_threads = (int32_t)args->prefill_threads,
                              .activations = (gn_activations)args->activations,
                              .kv_format = (gn_kv_format)args->kv,
                              .kv_bytes = args->kv_bytes,
                              .cache = cache_mode(args),
                              .cache_bytes = args->cache_bytes};
}

gn_status gn_cli_model_open(const gn_cli_model_args *args, gn_model **out)
{
    gn_buf path = {0};
    gn_status status = required_path(args->path, &path);
    if (status == GN_OK) {
        gn_model_options options = gn_cli_model_options(args);
        status = gn_model_open(path.data, &options, out);
    }
    gn_buf_fini(&path);
    return status;
}

gn_status gn_cli_source_open(const char *name, gn_source **out)
{
    gn_buf path = {0};
    gn_status status = required_path(name, &path);
    if (status == GN_OK) {
        status = gn_source_open(path.data, out);
    }
    gn_buf_fini(&path);
    return status;
}

gn_status gn_cli_tokenizer_open(const char *name, gn_tokenizer **out)
{
    gn_source *source = NULL;
    GN_TRY(gn_cli_source_open(name, &source));
    gn_status status = gn_tokenizer_create(source, out);
    gn_source_close(source);
    /* A code for the command line's own arguments must not come from a file. */
    return status == GN_OK ? GN_OK : gn_base_fail_prefix(status, "%s: ", name);
}
