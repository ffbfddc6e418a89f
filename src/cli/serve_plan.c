#include "cli/serve_plan.h"

#include "base/alloc.h"
#include "cli/out.h"
#include "os/memory.h"

#include <string.h>

typedef struct line {
    const char *name;
    gn_model_info info;
    uint64_t mapped, heap, kv;
} line;

/* The KV memory of each model: as the server shares it out. */
static uint64_t kv_share(const gn_server_options *o, uint64_t free)
{
    uint64_t n = o->max_loaded != 0 && o->max_loaded < o->n_models ? o->max_loaded : o->n_models;
    return o->model.kv_bytes != 0 ? o->model.kv_bytes : free / 2 / n;
}

static gn_status plan_one(const gn_server_options *o, size_t i, uint64_t kv, line *out)
{
    gn_model *model = NULL;
    gn_plan plan;
    gn_model_options options = o->model;
    options.kv_bytes = kv;
    options.cache = options.cache == GN_CACHE_AUTO ? GN_CACHE_READ : options.cache;
    GN_TRY(gn_model_open(o->models[i].path, &options, &model));
    out->name = o->models[i].name;
    out->info = gn_model_get_info(model);
    gn_status status = gn_model_plan(model, 0, 1, &plan);
    if (status == GN_OK) {
        out->mapped = plan.weight_bytes + plan.cache_bytes + plan.header_bytes;
        out->heap = plan.scratch_bytes + plan.text_bytes;
        out->kv = out->info.is_encoder ? 0 : kv;
    }
    out->info.architecture = NULL; /* belongs to the model */
    gn_model_close(model);
    return status;
}

static void print_lines(const line *lines, size_t n, uint64_t total, uint64_t free)
{
    char a[GN_CLI_HUMAN];
    char b[GN_CLI_HUMAN];
    char c[GN_CLI_HUMAN];
    (void)printf("%-24s %12s %12s %12s %10s\n", "model", "mapped", "heap", "KV at most", "context");
    for (size_t i = 0; i < n; i++) {
        (void)printf("%-24s %12s %12s %12s %10d\n", lines[i].name,
                     gn_cli_human_bytes(lines[i].mapped, a), gn_cli_human_bytes(lines[i].heap, b),
                     gn_cli_human_bytes(lines[i].kv, c), lines[i].info.n_ctx_train);
    }
    (void)printf(
        "at most %s of its own (heap and KV of the largest that are open together); %s free: %s\n",
        gn_cli_human_bytes(total, a), gn_cli_human_bytes(free, b),
        total <= free ? "fits" : "does not fit");
}

static void put_lines(const line *lines, size_t n, uint64_t total, uint64_t free)
{
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_array(&json, "models");
    for (size_t i = 0; i < n; i++) {
        gn_cli_json_object(&json, NULL);
        gn_cli_json_str(&json, "name", lines[i].name);
        gn_cli_json_uint(&json, "mapped_bytes", lines[i].mapped);
        gn_cli_json_uint(&json, "heap_bytes", lines[i].heap);
        gn_cli_json_uint(&json, "kv_bytes", lines[i].kv);
        gn_cli_json_int(&json, "n_ctx", lines[i].info.n_ctx_train);
        gn_cli_json_end(&json);
    }
    gn_cli_json_end(&json);
    gn_cli_json_uint(&json, "total_bytes", total);
    gn_cli_json_uint(&json, "free_bytes", free);
    gn_cli_json_bool(&json, "fits", total <= free);
    gn_cli_json_end(&json);
}

/* Heap and KV of the `most` largest. */
static uint64_t largest(const line *lines, size_t n, size_t most)
{
    uint64_t total = 0;
    uint64_t below = UINT64_MAX;
    for (size_t taken = 0; taken < most;) {
        uint64_t top = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t own = lines[i].heap + lines[i].kv;
            top = own < below && own > top ? own : top;
        }
        for (size_t i = 0; i < n && taken < most; i++) {
            if (lines[i].heap + lines[i].kv == top) {
                total += top;
                taken++;
            }
        }
        below = top;
    }
    return total;
}

gn_status gn_cli_serve_plan(const gn_server_options *o, bool json)
{
    uint64_t free = gn_os_free_memory();
    line *lines = gn_calloc(o->n_models, sizeof *lines);
    gn_status status = lines != NULL ? GN_OK : gn_alloc_failed();
    for (size_t i = 0; i < o->n_models && status == GN_OK; i++) {
        status = plan_one(o, i, kv_share(o, free), &lines[i]);
    }
    bool fits = true;
    if (status == GN_OK) {
        size_t most =
            o->max_loaded != 0 && o->max_loaded < o->n_models ? o->max_loaded : o->n_models;
        uint64_t total = largest(lines, o->n_models, most);
        fits = total <= free;
        if (json) {
            put_lines(lines, o->n_models, total, free);
        } else {
            print_lines(lines, o->n_models, total, free);
        }
        status = gn_cli_flush();
    }
    gn_free(lines);
    if (status == GN_OK && !fits) {
        gn_base_fail_clear();
        return GN_E_REFUSED;
    }
    return status;
}
