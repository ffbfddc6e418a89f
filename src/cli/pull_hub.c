/* Plans: a catalogue name, a hub reference or a URL → the files to fetch. The hub's tree answer gives
 * sizes and, for files it keeps as large objects, SHA-256 digests. Names that come from outside become
 * file names only after a check. */
#include "base/alloc.h"
#include "cli/catalogue.h"
#include "cli/model_path.h"
#include "cli/pull.h"

#include <curl/curl.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#define TREE_LIMIT ((size_t)64 << 20)

gn_status gn_cli_pull_plan_add(gn_cli_pull_plan *plan, const char *url, const char *local,
                               uint64_t bytes, const char *sha256)
{
    gn_cli_pull_file *grown = gn_realloc_array(plan->files, plan->n_files + 1, sizeof *plan->files);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    plan->files = grown;
    gn_cli_pull_file *file = &plan->files[plan->n_files];
    *file = (gn_cli_pull_file){.url = gn_strdup(url), .local = gn_strdup(local), .bytes = bytes};
    plan->n_files++;
    if (file->url == NULL || file->local == NULL) {
        return gn_alloc_failed();
    }
    if (sha256 != NULL && strlen(sha256) == GN_CLI_SHA256_HEX - 1) {
        for (size_t i = 0; i < GN_CLI_SHA256_HEX - 1; i++) {
            char c = sha256[i];
            file->sha256[i] = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
        }
    }
    return GN_OK;
}

void gn_cli_pull_plan_fini(gn_cli_pull_plan *plan)
{
    for (size_t i = 0; i < plan->n_files; i++) {
        gn_free(plan->files[i].url);
        gn_free(plan->files[i].local);
    }
    gn_free(plan->files);
    gn_free(plan->name);
    *plan = (gn_cli_pull_plan){0};
}

static gn_status set_name(gn_cli_pull_plan *plan, const char *name, size_t len)
{
    gn_free(plan->name);
    plan->name = gn_strndup(name, len);
    return plan->name != NULL ? GN_OK : gn_alloc_failed();
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s);
    size_t m = strlen(suffix);
    return n >= m && strcasecmp(s + n - m, suffix) == 0;
}

/* A file name without ".gguf" or ".safetensors". */
static size_t stem_length(const char *name)
{
    static const char *const suffixes[] = {".gguf", ".safetensors"};
    for (size_t i = 0; i < GN_COUNTOF(suffixes); i++) {
        if (has_suffix(name, suffixes[i])) {
            return strlen(name) - strlen(suffixes[i]);
        }
    }
    return strlen(name);
}

/* Length of NAME in "NAME-00001-of-00003.gguf"; 0 where `name` is no part of a split set. */
static size_t split_stem(const char *name)
{
    static const char form[] = "-00000-of-00000.gguf";
    size_t len = strlen(name);
    size_t n = sizeof form - 1;
    if (len <= n) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        char c = name[len - n + i];
        bool same = form[i] == '0' ? c >= '0' && c <= '9' : c == form[i];
        if (!same) {
            return 0;
        }
    }
    return len - n;
}

/* HUB/ORG/REPO/resolve/main/PATH with PATH's names escaped. */
static gn_status resolve_url(const char *hub, const char *repository, const char *path, gn_buf *out)
{
    GN_TRY(gn_buf_printf(out, "%s/%s/resolve/main", hub, repository));
    for (const char *s = path;;) {
        size_t len = strcspn(s, "/");
        char *escaped = curl_easy_escape(NULL, s, (int)len);
        if (escaped == NULL) {
            return gn_alloc_failed();
        }
        gn_status status = gn_buf_printf(out, "/%s", escaped);
        curl_free(escaped);
        GN_TRY(status);
        if (s[len] == '\0') {
            return GN_OK;
        }
        s += len + 1;
    }
}

static gn_status add_hub_file(gn_cli_pull_plan *plan, const char *hub, const char *repository,
                              const char *remote, const char *local, uint64_t bytes,
                              const char *sha256)
{
    GN_REQUIRE(gn_cli_model_name_ok(local), GN_E_UNSUPPORTED,
               "%s: found the file name \"%s\", expected letters, digits and . _ - + @ only",
               repository, local);
    gn_buf url = {0};
    gn_status status = resolve_url(hub, repository, remote, &url);
    if (status == GN_OK) {
        status = gn_cli_pull_plan_add(plan, url.data, local, bytes, sha256);
    }
    gn_buf_fini(&url);
    return status;
}

/* "ORG/REPO": two plain names. */
static bool repository_ok(const char *s)
{
    const char *slash = strchr(s, '/');
    if (slash == NULL || slash == s || strchr(slash + 1, '/') != NULL || slash - s > 100) {
        return false;
    }
    char org[101];
    memcpy(org, s, (size_t)(slash - s));
    org[slash - s] = '\0';
    return gn_cli_model_name_ok(org) && gn_cli_model_name_ok(slash + 1);
}

static const char *entry_path(const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const char *path = json_string_value(json_object_get(entry, "path"));
    return type != NULL && path != NULL && strcmp(type, "file") == 0 ? path : NULL;
}

static gn_status add_entry(gn_cli_pull_plan *plan, const char *hub, const char *repository,
                           const json_t *entry)
{
    const json_t *lfs = json_object_get(entry, "lfs");
    json_int_t size =
        json_integer_value(json_object_get(json_is_object(lfs) ? lfs : entry, "size"));
    const char *path = entry_path(entry);
    return add_hub_file(plan, hub, repository, path, base_name(path), size > 0 ? (uint64_t)size : 0,
                        json_string_value(json_object_get(lfs, "oid")));
}

/* Does `path` contain `part`, upper and lower case alike? */
static bool contains(const char *path, const char *part)
{
    size_t n = strlen(part);
    for (; *path != '\0'; path++) {
        if (strncasecmp(path, part, n) == 0) {
            return true;
        }
    }
    return false;
}

/* The GGUF that `wanted` (NULL: any) means: the exact path, or the only one that contains it. Parts of a
 * split set count as their first. *n_found says how many there are. */
static const json_t *choose_gguf(const json_t *tree, const char *wanted, size_t *n_found)
{
    const json_t *found = NULL;
    *n_found = 0;
    for (size_t i = 0; i < json_array_size(tree); i++) {
        const json_t *entry = json_array_get(tree, i);
        const char *path = entry_path(entry);
        if (path == NULL || !has_suffix(path, ".gguf")) {
            continue;
        }
        if (wanted != NULL && strcmp(path, wanted) == 0) {
            *n_found = 1;
            return entry;
        }
        size_t stem = split_stem(path);
        if (stem > 0 && strncmp(path + stem, "-00001-", 7) != 0) {
            continue;
        }
        if (wanted == NULL || contains(path, wanted)) {
            found = entry;
            (*n_found)++;
        }
    }
    return found;
}

/* Message: the GGUF files there are, as far as a line holds them. */
static gn_status fail_choice(const char *repository, const json_t *tree, const char *wanted)
{
    gn_buf list = {0};
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < json_array_size(tree) && list.len < 700; i++) {
        const char *path = entry_path(json_array_get(tree, i));
        if (path != NULL && has_suffix(path, ".gguf")) {
            status = gn_buf_printf(&list, "%s%s", list.len > 0 ? ", " : "", path);
        }
    }
    if (status == GN_OK) {
        status = gn_base_fail(GN_E_NOT_FOUND, "hf:%s: %s \"%s\", expected one file of: %s",
                              repository, wanted != NULL ? "found no single match for" : "found",
                              wanted != NULL ? wanted : "several files",
                              list.len > 0 ? list.data : "(none)");
    }
    gn_buf_fini(&list);
    return status;
}

/* All parts of the set that `path` belongs to, the first last: until it is there, there is no model. */
static gn_status add_split(gn_cli_pull_plan *plan, const char *hub, const char *repository,
                           const json_t *tree, const char *path)
{
    size_t stem = split_stem(path);
    for (int first = 0; first < 2; first++) {
        for (size_t i = 0; i < json_array_size(tree); i++) {
            const json_t *entry = json_array_get(tree, i);
            const char *other = entry_path(entry);
            bool of_set =
                other != NULL && split_stem(other) == stem && strncmp(other, path, stem) == 0;
            bool is_first = of_set && strncmp(other + stem, "-00001-", 7) == 0;
            if (of_set && is_first == (first == 1)) {
                GN_TRY(add_entry(plan, hub, repository, entry));
            }
        }
    }
    return GN_OK;
}

/* "model.safetensors" or a shard of it; other weights in a repository are the same in another form. */
static bool is_weights(const char *path)
{
    return strncmp(path, "model", 5) == 0 && has_suffix(path, ".safetensors") &&
           strchr(path, '/') == NULL;
}

/* Files of a Hugging Face folder: weights first, config.json last. */
static gn_status add_folder(gn_cli_pull_plan *plan, const char *hub, const char *repository,
                            const json_t *tree)
{
    static const char *const wanted[] = {NULL, /* weights */
                                         "model.safetensors.index.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "generation_config.json",
                                         "chat_template.jinja",
                                         "config.json"};
    for (size_t w = 0; w < GN_COUNTOF(wanted); w++) {
        for (size_t i = 0; i < json_array_size(tree); i++) {
            const json_t *entry = json_array_get(tree, i);
            const char *path = entry_path(entry);
            if (path != NULL &&
                (wanted[w] == NULL ? is_weights(path) : strcmp(path, wanted[w]) == 0)) {
                GN_TRY(add_entry(plan, hub, repository, entry));
            }
        }
    }
    return set_name(plan, base_name(repository), strlen(base_name(repository)));
}

static bool is_folder(const json_t *tree)
{
    bool weights = false;
    bool config = false;
    for (size_t i = 0; i < json_array_size(tree); i++) {
        const char *path = entry_path(json_array_get(tree, i));
        weights = weights || (path != NULL && is_weights(path));
        config = config || (path != NULL && strcmp(path, "config.json") == 0);
    }
    return weights && config;
}

static gn_status plan_tree(const char *repository, const char *wanted, const char *hub,
                           const json_t *tree, gn_cli_pull_plan *plan)
{
    GN_REQUIRE(json_is_array(tree), GN_E_UNAVAILABLE,
               "hf:%s: found another answer of the hub, expected an array of files", repository);
    size_t n_found;
    const json_t *entry = choose_gguf(tree, wanted, &n_found);
    if (n_found > 1 && wanted == NULL) {
        entry = choose_gguf(tree, "Q4_K_M", &n_found);
    }
    if (n_found == 0 && wanted == NULL && is_folder(tree)) {
        return add_folder(plan, hub, repository, tree);
    }
    if (n_found != 1) {
        return fail_choice(repository, tree, wanted);
    }
    const char *path = entry_path(entry);
    const char *name = base_name(path);
    if (split_stem(path) > 0) {
        GN_TRY(set_name(plan, name, split_stem(name)));
        return add_split(plan, hub, repository, tree, path);
    }
    GN_TRY(set_name(plan, name, stem_length(name)));
    return add_entry(plan, hub, repository, entry);
}

gn_status gn_cli_pull_hub_plan(const char *reference, const gn_cli_pull_options *options,
                               gn_cli_pull_plan *plan)
{
    size_t len = strcspn(reference, ":");
    const char *wanted = reference[len] == ':' ? reference + len + 1 : NULL;
    gn_buf text = {0};
    gn_buf url = {0};
    json_t *tree = NULL;
    char *repository = gn_strndup(reference, len);
    gn_status status = repository == NULL ? gn_alloc_failed() : GN_OK;
    if (status == GN_OK && (!repository_ok(repository) || (wanted != NULL && wanted[0] == '\0'))) {
        status = gn_base_fail(GN_E_ARG, "found \"hf:%s\", expected hf:ORG/REPO or hf:ORG/REPO:FILE",
                              reference);
    }
    if (status == GN_OK) {
        status = gn_buf_printf(&url, "%s/api/models/%s/tree/main?recursive=true", options->hub,
                               repository);
    }
    if (status == GN_OK) {
        status = gn_cli_pull_text(url.data, options, TREE_LIMIT, &text);
    }
    if (status == GN_OK) {
        json_error_t error;
        tree = json_loadb(text.data != NULL ? text.data : "", text.len, 0, &error);
        status = tree == NULL ? gn_base_fail(GN_E_UNAVAILABLE, "%s: line %d, column %d: %s",
                                             url.data, error.line, error.column, error.text)
                              : plan_tree(repository, wanted, options->hub, tree, plan);
    }
    json_decref(tree);
    gn_free(repository);
    gn_buf_fini(&url);
    gn_buf_fini(&text);
    return status;
}

static gn_status plan_url(const char *url, gn_cli_pull_plan *plan)
{
    size_t len = strcspn(url, "?#");
    char *path = gn_strndup(url, len);
    if (path == NULL) {
        return gn_alloc_failed();
    }
    const char *host = strstr(path, "://") + 3;
    const char *name = strchr(host, '/') != NULL ? base_name(host) : "";
    gn_status status = GN_OK;
    if (!gn_cli_model_name_ok(name)) {
        status =
            gn_base_fail(GN_E_ARG,
                         "%s: found the file name \"%s\", expected letters, digits and . _ - + @ "
                         "only",
                         url, name);
    }
    if (status == GN_OK) {
        status = set_name(plan, name, stem_length(name));
    }
    if (status == GN_OK) {
        status = gn_cli_pull_plan_add(plan, url, name, 0, NULL);
    }
    gn_free(path);
    return status;
}

static gn_status plan_catalogue(const char *name, const gn_cli_pull_options *options,
                                gn_cli_pull_plan *plan)
{
    const gn_cli_catalogue_entry *entry = gn_cli_catalogue_find(name);
    if (entry == NULL) {
        return gn_base_fail(GN_E_ARG,
                            "%s: no such name in the catalogue (`ganglion pull list` shows it), "
                            "expected a name in it, hf:ORG/REPO[:FILE] or a URL",
                            name);
    }
    GN_TRY(set_name(plan, name, strlen(name)));
    for (size_t i = 0; i < entry->n_files; i++) {
        const gn_cli_catalogue_file *f = &entry->files[i];
        GN_TRY(add_hub_file(plan, options->hub, entry->repository, f->remote, f->local, f->bytes,
                            f->sha256));
    }
    return GN_OK;
}

gn_status gn_cli_pull_plan_make(const char *what, const char *as,
                                const gn_cli_pull_options *options, gn_cli_pull_plan *out)
{
    gn_cli_pull_plan plan = {0};
    gn_status status;
    if (strncmp(what, "hf:", 3) == 0) {
        status = gn_cli_pull_hub_plan(what + 3, options, &plan);
    } else if (strncasecmp(what, "http://", 7) == 0 || strncasecmp(what, "https://", 8) == 0) {
        status = plan_url(what, &plan);
    } else {
        status = plan_catalogue(what, options, &plan);
    }
    if (status == GN_OK && as != NULL) {
        status = set_name(&plan, as, strlen(as));
    }
    if (status == GN_OK && !gn_cli_model_name_ok(plan.name)) {
        status = gn_base_fail(GN_E_ARG,
                              "found the name \"%s\", expected letters, digits and . _ - + @ only",
                              plan.name);
    }
    if (status != GN_OK) {
        gn_cli_pull_plan_fini(&plan);
        return status;
    }
    *out = plan;
    return GN_OK;
}
