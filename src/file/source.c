/* Decides from the path what kind of model it is, opens it, and gives both kinds one list of tensors.
 *
 *   FILE.gguf                       GGUF
 *   FILE.safetensors                Hugging Face: this file (of a sharded model: all shards), and its folder
 *   FOLDER with config.json         Hugging Face: model.safetensors, else model.safetensors.index.json
 *   FOLDER with one .gguf           GGUF; a split set counts as one, by its first part
 *   any other file                  GGUF (the magic decides)
 *
 * A Hugging Face folder may lack weights (tokenizing needs none); it then has no tensors. */
#include "file/source.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "file/hf.h"
#include "file/safetensors.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct gn_source {
    gn_source_kind kind;
    char *path;
    gn_gguf *gguf;
    const char **names; /* GGUF only: [n_tensors], in `strings` */
    gn_arena strings;
    gn_safetensors *safetensors; /* NULL where the folder has no weights */
    json_t *config;
    json_t *tokenizer;
    json_t *tokenizer_config;
    json_t *generation;
    char *chat_template;
};

/* ---- GGUF ---- */

static gn_status open_gguf(gn_source *source, const char *path)
{
    source->kind = GN_SOURCE_GGUF;
    GN_TRY(gn_gguf_open(path, &source->gguf));
    size_t n = gn_gguf_n_tensors(source->gguf);
    source->names = gn_alloc_array(n, sizeof *source->names);
    if (source->names == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < n; i++) {
        gn_gguf_str name = gn_gguf_tensor_at(source->gguf, i)->name;
        source->names[i] = gn_arena_strndup(&source->strings, name.s, name.len);
        if (source->names[i] == NULL) {
            return gn_alloc_failed();
        }
    }
    return GN_OK;
}

/* ---- Hugging Face ---- */

static gn_status join(gn_buf *out, const char *folder, const char *name)
{
    gn_buf_clear(out);
    GN_TRY(gn_buf_puts(out, folder));
    size_t n = strlen(folder);
    if (n > 0 && folder[n - 1] != '/') {
        GN_TRY(gn_buf_putc(out, '/'));
    }
    return gn_buf_puts(out, name);
}

static gn_status optional(gn_status status)
{
    return status == GN_E_NOT_FOUND ? GN_OK : status;
}

static gn_status load_side_files(gn_source *source, const char *folder, gn_buf *path)
{
    GN_TRY(join(path, folder, "config.json"));
    GN_TRY(gn_hf_load_object(path->data, &source->config));
    GN_TRY(join(path, folder, "tokenizer.json"));
    GN_TRY(optional(gn_hf_load_object(path->data, &source->tokenizer)));
    GN_TRY(join(path, folder, "tokenizer_config.json"));
    GN_TRY(optional(gn_hf_load_object(path->data, &source->tokenizer_config)));
    GN_TRY(join(path, folder, "generation_config.json"));
    GN_TRY(optional(gn_hf_load_object(path->data, &source->generation)));
    GN_TRY(join(path, folder, "chat_template.jinja"));
    return optional(gn_hf_load_text(path->data, &source->chat_template));
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* `weights` is a file's path, or NULL for the folder's own. */
static gn_status open_weights(gn_source *source, const char *folder, const char *weights,
                              gn_buf *path)
{
    if (weights != NULL) {
        return gn_safetensors_open(weights, &source->safetensors);
    }
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        GN_TRY(join(path, folder, names[i]));
        if (exists(path->data)) {
            return gn_safetensors_open(path->data, &source->safetensors);
        }
    }
    return GN_OK;
}

static gn_status open_hf(gn_source *source, const char *folder, const char *weights)
{
    source->kind = GN_SOURCE_HF;
    gn_buf path = {0};
    gn_status status = load_side_files(source, folder, &path);
    if (status == GN_OK) {
        status = open_weights(source, folder, weights, &path);
    }
    gn_buf_fini(&path);
    return status;
}

/* ---- what lies at a path ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* The number of "-00002-of-00003" before `suffix` at the end of a file name; 0 where there is none. */
static int part_number(const char *name, const char *suffix)
{
    static const char pattern[] = "-#####-of-#####";
    size_t tail = sizeof pattern - 1 + strlen(suffix);
    size_t n = strlen(name);
    if (n < tail || !ends_with(name, suffix)) {
        return 0;
    }
    const char *p = name + n - tail;
    for (size_t i = 0; i < sizeof pattern - 1; i++) {
        bool fits = pattern[i] == '#' ? isdigit((unsigned char)p[i]) != 0 : p[i] == pattern[i];
        if (!fits) {
            return 0;
        }
    }
    int number = 0;
    for (int i = 1; i <= 5; i++) {
        number = number * 10 + (p[i] - '0');
    }
    return number;
}

/* The one .gguf file of a folder. */
static gn_status find_gguf(const char *folder, gn_buf *out)
{
    DIR *dir = opendir(folder);
    GN_REQUIRE(dir != NULL, GN_E_IO, "%s: cannot list: %s", folder, strerror(errno));
    gn_status status = GN_OK;
    size_t found = 0;
    for (const struct dirent *entry; status == GN_OK && (entry = readdir(dir)) != NULL;) {
        if (ends_with(entry->d_name, ".gguf") && part_number(entry->d_name, ".gguf") <= 1) {
            found++;
            status = join(out, folder, entry->d_name);
        }
    }
    (void)closedir(dir);
    if (status == GN_OK && found != 1) {
        status =
            gn_base_fail(GN_E_NOT_FOUND,
                         "%s: found no config.json and %zu .gguf files, expected a config.json "
                         "or one .gguf file",
                         folder, found);
    }
    return status;
}

static gn_status open_folder(gn_source *source, const char *folder)
{
    gn_buf path = {0};
    gn_status status = join(&path, folder, "config.json");
    if (status == GN_OK) {
        if (exists(path.data)) {
            status = open_hf(source, folder, NULL);
        } else {
            status = find_gguf(folder, &path);
            if (status == GN_OK) {
                status = open_gguf(source, path.data);
            }
        }
    }
    gn_buf_fini(&path);
    return status;
}

/* A shard stands for its whole set, which the folder's index describes. */
static gn_status open_safetensors(gn_source *source, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? gn_strndup(path, (size_t)(slash - path) + 1) : gn_strdup("./");
    if (folder == NULL) {
        return gn_alloc_failed();
    }
    const char *weights = part_number(path, ".safetensors") != 0 ? NULL : path;
    gn_status status = open_hf(source, folder, weights);
    gn_free(folder);
    return status;
}

static gn_status open_path(gn_source *source, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return gn_base_fail(errno == ENOENT || errno == ENOTDIR ? GN_E_NOT_FOUND : GN_E_IO,
                            "%s: cannot open: %s", path, strerror(errno));
    }
    source->path = gn_strdup(path);
    if (source->path == NULL) {
        return gn_alloc_failed();
    }
    if (S_ISDIR(st.st_mode)) {
        return open_folder(source, path);
    }
    if (ends_with(path, ".safetensors")) {
        return open_safetensors(source, path);
    }
    return open_gguf(source, path);
}

gn_status gn_source_open(const char *path, gn_source **out)
{
    gn_source *source = gn_calloc(1, sizeof *source);
    if (source == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = open_path(source, path);
    if (status != GN_OK) {
        gn_source_close(source);
        return status;
    }
    *out = source;
    return GN_OK;
}

void gn_source_close(gn_source *source)
{
    if (source == NULL) {
        return;
    }
    gn_gguf_close(source->gguf);
    gn_safetensors_close(source->safetensors);
    json_decref(source->config);
    json_decref(source->tokenizer);
    json_decref(source->tokenizer_config);
    json_decref(source->generation);
    gn_free(source->chat_template);
    gn_free(source->names);
    gn_arena_fini(&source->strings);
    gn_free(source->path);
    gn_free(source);
}

/* ---- what was read ---- */

gn_source_kind gn_source_get_kind(const gn_source *source)
{
    return source->kind;
}

const char *gn_source_path(const gn_source *source)
{
    return source->path;
}

const gn_gguf *gn_source_gguf(const gn_source *source)
{
    return source->gguf;
}

const json_t *gn_source_config(const gn_source *source)
{
    return source->config;
}

const json_t *gn_source_tokenizer(const gn_source *source)
{
    return source->tokenizer;
}

const json_t *gn_source_tokenizer_config(const gn_source *source)
{
    return source->tokenizer_config;
}

const json_t *gn_source_generation(const gn_source *source)
{
    return source->generation;
}

const char *gn_source_chat_template(const gn_source *source)
{
    return source->chat_template;
}

size_t gn_source_n_tensors(const gn_source *source)
{
    if (source->gguf != NULL) {
        return gn_gguf_n_tensors(source->gguf);
    }
    return source->safetensors != NULL ? gn_safetensors_n_tensors(source->safetensors) : 0;
}

const gn_view *gn_source_tensor_at(const gn_source *source, size_t i, const char **name)
{
    if (source->gguf != NULL) {
        *name = source->names[i];
        return &gn_gguf_tensor_at(source->gguf, i)->view;
    }
    const gn_safetensors_tensor *tensor = gn_safetensors_tensor_at(source->safetensors, i);
    *name = tensor->name;
    return &tensor->view;
}

const gn_view *gn_source_find(const gn_source *source, const char *name)
{
    if (source->gguf != NULL) {
        return gn_gguf_find_tensor(source->gguf, name);
    }
    return source->safetensors != NULL ? gn_safetensors_find(source->safetensors, name) : NULL;
}

size_t gn_source_n_maps(const gn_source *source)
{
    if (source->gguf != NULL) {
        return gn_gguf_n_maps(source->gguf);
    }
    return source->safetensors != NULL ? gn_safetensors_n_maps(source->safetensors) : 0;
}

const gn_os_map *gn_source_map_at(const gn_source *source, size_t i)
{
    return source->gguf != NULL ? gn_gguf_map_at(source->gguf, i)
                                : gn_safetensors_map_at(source->safetensors, i);
}

size_t gn_source_bytes(const gn_source *source)
{
    if (source->gguf != NULL) {
        return gn_gguf_bytes(source->gguf);
    }
    return source->safetensors != NULL ? gn_safetensors_bytes(source->safetensors) : 0;
}
