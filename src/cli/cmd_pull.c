/* `ganglion pull`: fetch models into the models folder, list and remove them. Plans are made in
 * pull_hub.c, files are fetched in pull_fetch.c, the folder is kept in pull_store.c. */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "cli/pull.h"
#include "cli/pull_cache.h"
#include "cli/pull_http.h"
#include "cli/pull_store.h"
#include "file/digest.h"
#include "os/folder.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEFAULT_HUB "https://huggingface.co"

typedef struct options {
    const char *hub;
    const char *as;
    const char *sha256;
    int64_t connections;
    int64_t retries;
    int64_t timeout_s;
    bool cache;
    bool json;
} pull_args;

static const pull_args defaults = {.connections = 4, .retries = 5, .timeout_s = 30};

static const gn_cli_option rows[] = {
    {.name = "as",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(pull_args, as),
     .value = "NAME",
     .help = "Name of the model here; default: the catalogue's name, or that of the file."},
    {.name = "sha256",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(pull_args, sha256),
     .value = "HEX",
     .help = "The digest that the file must have, where neither catalogue nor hub gives it."},
    {.name = "hub",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(pull_args, hub),
     .value = "URL",
     .help = "The hub's address; default: $GANGLION_HUB, else " DEFAULT_HUB "."},
    {.letter = 'j',
     .name = "connections",
     .kind = GN_CLI_INT,
     .offset = offsetof(pull_args, connections),
     .value = "N",
     .help = "Ranges fetched at once; default: 4.",
     .min = 1,
     .max = 16},
    {.name = "retries",
     .kind = GN_CLI_INT,
     .offset = offsetof(pull_args, retries),
     .value = "N",
     .help = "Failures in a row, without progress between them, before giving up; default: 5.",
     .min = 0,
     .max = 100},
    {.name = "timeout",
     .kind = GN_CLI_INT,
     .offset = offsetof(pull_args, timeout_s),
     .value = "SECONDS",
     .help = "For connecting, and for a transfer that stands still; default: 30.",
     .min = 1,
     .max = 3600},
    {.name = "cache",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(pull_args, cache),
     .help = "The files of packed weights instead: list them, or rm MODEL..., rm all."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(pull_args, json),
     .help = "Print the result as JSON."},
};

/* The hub's address without a slash at its end. */
static gn_status hub_address(const pull_args *o, gn_buf *out)
{
    const char *env = getenv("GANGLION_HUB");
    const char *hub = o->hub != NULL ? o->hub : env != NULL && env[0] != '\0' ? env : DEFAULT_HUB;
    GN_REQUIRE(strncasecmp(hub, "https://", 8) == 0 || strncasecmp(hub, "http://", 7) == 0,
               GN_E_ARG, "hub: found \"%s\", expected https://HOST", hub);
    GN_TRY(gn_buf_puts(out, hub));
    while (out->len > 0 && out->data[out->len - 1] == '/') {
        out->data[--out->len] = '\0';
    }
    return GN_OK;
}

static gn_status apply_sha256(const pull_args *o, gn_cli_pull_plan *plan)
{
    unsigned char digest[GN_DIGEST_BYTES];
    GN_REQUIRE(gn_digest_from_hex(o->sha256, digest), GN_E_ARG,
               "--sha256: found \"%s\", expected 64 hexadecimal digits", o->sha256);
    GN_REQUIRE(plan->n_files == 1, GN_E_ARG, "--sha256: found %zu files to fetch, expected one",
               plan->n_files);
    gn_digest_to_hex(digest, plan->files[0].sha256);
    return GN_OK;
}

static void print_file(gn_cli_json *json, const char *path, const gn_cli_pull_result *r)
{
    if (json != NULL) {
        gn_cli_json_object(json, NULL);
        gn_cli_json_str(json, "path", path);
        gn_cli_json_uint(json, "bytes", r->bytes);
        gn_cli_json_str(json, "sha256", r->sha256);
        gn_cli_json_bool(json, "already_there", r->already_there);
        gn_cli_json_uint(json, "resumed_bytes", r->resumed_bytes);
        gn_cli_json_end(json);
        return;
    }
    char size[GN_CLI_HUMAN];
    (void)printf("%s  %s  sha256:%s%s\n", path, gn_cli_human_bytes(r->bytes, size), r->sha256,
                 r->already_there ? "  (already there)" : "");
}

static gn_status fetch_file(const gn_cli_pull_file *file, const char *folder,
                            const gn_cli_pull_options *options, gn_cli_json *json)
{
    gn_buf path = {0};
    gn_status status = gn_buf_printf(&path, "%s/%s", folder, file->local);
    if (status == GN_OK) {
        gn_cli_pull_result result;
        status = gn_cli_pull_fetch(file, path.data, options, &result);
        if (status == GN_OK) {
            print_file(json, path.data, &result);
        }
    }
    gn_buf_fini(&path);
    return status;
}

static gn_status fetch_plan(const gn_cli_pull_plan *plan, const gn_cli_pull_options *options,
                            bool as_json)
{
    gn_buf folder = {0};
    gn_cli_json json;
    gn_status status = gn_cli_models_folder(&folder);
    if (status == GN_OK) {
        status = gn_buf_printf(&folder, "/%s", plan->name);
    }
    if (status == GN_OK) {
        status = gn_os_make_folder(folder.data);
    }
    if (status == GN_OK) {
        gn_cli_json_init(&json, stdout);
        if (as_json) {
            gn_cli_json_object(&json, NULL);
            gn_cli_json_str(&json, "name", plan->name);
            gn_cli_json_array(&json, "files");
        }
        for (size_t i = 0; status == GN_OK && i < plan->n_files; i++) {
            status = fetch_file(&plan->files[i], folder.data, options, as_json ? &json : NULL);
        }
        /* A folder that got nothing goes; one with files stays, since rmdir refuses it. */
        (void)rmdir(folder.data);
        if (as_json) {
            gn_cli_json_end(&json);
            gn_cli_json_end(&json);
        }
    }
    gn_buf_fini(&folder);
    return status;
}

static gn_status pull(const pull_args *o, const char *what)
{
    gn_buf hub = {0};
    gn_cli_pull_plan plan = {0};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return gn_base_fail(GN_E_UNAVAILABLE, "the download library cannot start");
    }
    gn_cli_http_guard(true);
    gn_status status = hub_address(o, &hub);
    gn_cli_pull_options options = {.hub = hub.data,
                                   .connections = o->connections,
                                   .retries = o->retries,
                                   .timeout_s = o->timeout_s};
    if (status == GN_OK) {
        status = gn_cli_pull_plan_make(what, o->as, &options, &plan);
    }
    if (status == GN_OK && o->sha256 != NULL) {
        status = apply_sha256(o, &plan);
    }
    if (status == GN_OK) {
        status = fetch_plan(&plan, &options, o->json);
    }
    gn_cli_http_guard(false);
    gn_cli_pull_plan_fini(&plan);
    gn_buf_fini(&hub);
    curl_global_cleanup();
    return status;
}

static gn_status remove_models(const pull_args *o, const gn_cli_list *args)
{
    GN_REQUIRE(args->n > 1, GN_E_ARG, "rm: found no name, expected: pull rm NAME");
    for (size_t i = 1; i < args->n; i++) {
        uint64_t bytes = 0;
        GN_TRY(gn_cli_store_remove(args->v[i], &bytes));
        char size[GN_CLI_HUMAN];
        if (o->json) {
            gn_cli_json json;
            gn_cli_json_init(&json, stdout);
            gn_cli_json_object(&json, NULL);
            gn_cli_json_str(&json, "removed", args->v[i]);
            gn_cli_json_uint(&json, "bytes", bytes);
            gn_cli_json_end(&json);
        } else {
            (void)printf("removed %s, %s\n", args->v[i], gn_cli_human_bytes(bytes, size));
        }
    }
    return GN_OK;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    const pull_args *o = options_;
    if (o->cache) {
        return gn_cli_cache_command(args, o->json);
    }
    GN_REQUIRE(args->n >= 1, GN_E_ARG,
               "found no name, expected one of the catalogue, hf:..., a URL, "
               "list or rm");
    if (strcmp(args->v[0], "rm") == 0) {
        return remove_models(o, args);
    }
    GN_REQUIRE(args->n == 1, GN_E_ARG, "unexpected argument \"%s\"", args->v[1]);
    return strcmp(args->v[0], "list") == 0 ? gn_cli_store_list(o->json) : pull(o, args->v[0]);
}

const gn_cli_command gn_cli_cmd_pull = {
    .name = "pull",
    .summary = "fetch models by name, from a hub or from a URL; list and remove them",
    .usage = "NAME | hf:ORG/REPO[:FILE] | URL | list | rm NAME... | --cache [rm MODEL...]",
    .details =
        "NAME is one of the catalogue (`pull list` shows it), whose digests are known. Of "
        "hf:ORG/REPO\n"
        "FILE may be part of a file's name, such as Q4_K_M. A cut download is resumed by the same\n"
        "command. Models lie in $GANGLION_MODELS, by default ~/.cache/ganglion/models; -m NAME in\n"
        "other commands finds them there.\n"
        "Packed weights of the models used lie in $GANGLION_CACHE_DIR, by default\n"
        "~/.cache/ganglion/panels; together they take at most a quarter of the disk, the least\n"
        "recently used going first.",
    .example = "ganglion pull smollm2-135m\n"
               "ganglion pull hf:Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:q4_k_m --as coder\n"
               "ganglion pull rm coder\n"
               "ganglion pull --cache rm all",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(pull_args),
    .defaults = &defaults,
    .min_args = 0,
    .max_args = 256,
    .run = run,
};
