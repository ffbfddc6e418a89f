/* `ganglion plan`: what a model, a context and a number of users take of memory, whether that fits, and the
 * speed that memory allows. Opens the model, which reads its header, and computes nothing. */
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "ganglion/model.h"
#include "os/memory.h"
#include "os/process.h"
#include "tensor/bandwidth.h"

#include <inttypes.h>

typedef struct options {
    gn_cli_model_args model;
    int64_t n_ctx;
    int64_t n_users;
    uint64_t memory;
    double bandwidth;
    bool json;
} options;

static const options defaults = {.n_users = 1};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "ctx",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, n_ctx),
     .value = "N",
     .help = "Tokens of context for each user; default: the model's own.",
     .min = 1,
     .max = 2147483647},
    {.name = "users",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, n_users),
     .value = "N",
     .help = "Sequences at a time; default: 1.",
     .min = 1,
     .max = 65536},
    {.name = "memory",
     .kind = GN_CLI_SIZE,
     .offset = offsetof(options, memory),
     .value = "BYTES",
     .help = "Memory that there is, such as 8G; default: what is free, within the cgroup's limit."},
    {.name = "bandwidth",
     .kind = GN_CLI_REAL,
     .offset = offsetof(options, bandwidth),
     .value = "GB/S",
     .help = "Memory read bandwidth; default: measured now.",
     .min = 0.001,
     .max = 1e6},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print one object with the same facts."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

typedef struct facts {
    gn_model_info info;
    gn_plan plan;
    uint64_t program; /* resident before the model was opened */
    uint64_t total;
    uint64_t free;
    double bandwidth; /* bytes a second; 0: of no use, for an encoder */
    double one, all;  /* tokens a second of one user alone, and of all together */
} facts;

static gn_status add_up(const options *o, facts *f)
{
    const gn_plan *p = &f->plan;
    f->total = p->weight_bytes + p->cache_bytes + p->header_bytes + p->kv_bytes + p->scratch_bytes +
               p->text_bytes + f->program;
    f->free = o->memory != 0 ? o->memory : gn_os_free_memory();
    if (p->read_bytes_per_tok == 0) {
        return GN_OK;
    }
    f->bandwidth = o->bandwidth * 1e9;
    if (f->bandwidth <= 0.0) {
        GN_TRY(gn_tensor_read_bandwidth(f->info.threads, &f->bandwidth));
    }
    double weights = (double)p->read_bytes_per_tok;
    double kv = (double)p->kv_read_bytes_per_tok;
    double users = (double)p->n_users;
    f->one = f->bandwidth / (weights + kv);
    f->all = users * f->bandwidth / (weights + users * kv);
    return GN_OK;
}

static void print_json(const options *o, const facts *f)
{
    const gn_plan *p = &f->plan;
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_str(&json, "model", o->model.path);
    gn_cli_json_str(&json, "architecture", f->info.architecture);
    gn_cli_json_int(&json, "ctx", p->n_ctx);
    gn_cli_json_int(&json, "users", p->n_users);
    gn_cli_json_int(&json, "threads", f->info.threads);
    gn_cli_json_str(&json, "kv", gn_cli_kv_name(&o->model));
    gn_cli_json_object(&json, "memory");
    gn_cli_json_uint(&json, "weights", p->weight_bytes);
    gn_cli_json_uint(&json, "cache_file", p->cache_bytes);
    gn_cli_json_uint(&json, "header", p->header_bytes);
    gn_cli_json_uint(&json, "kv", p->kv_bytes);
    gn_cli_json_uint(&json, "scratch", p->scratch_bytes);
    gn_cli_json_uint(&json, "text", p->text_bytes);
    gn_cli_json_uint(&json, "program", f->program);
    gn_cli_json_uint(&json, "total", f->total);
    gn_cli_json_end(&json);
    gn_cli_json_uint(&json, "free", f->free);
    gn_cli_json_bool(&json, "fits", f->total <= f->free);
    gn_cli_json_uint(&json, "read_bytes_per_tok", p->read_bytes_per_tok);
    gn_cli_json_uint(&json, "kv_read_bytes_per_tok", p->kv_read_bytes_per_tok);
    gn_cli_json_real(&json, "read_bytes_s", f->bandwidth, 0);
    gn_cli_json_real(&json, "tok_s", f->one, 2);
    gn_cli_json_real(&json, "tok_s_users", f->all, 2);
    gn_cli_json_end(&json);
}

static void print_row(const char *name, uint64_t bytes, const char *what)
{
    char text[GN_CLI_HUMAN];
    (void)printf("  %-10s %10s  %s\n", name, gn_cli_human_bytes(bytes, text), what);
}

static void print_table(const options *o, const facts *f)
{
    const gn_plan *p = &f->plan;
    char a[GN_CLI_HUMAN];
    char b[GN_CLI_HUMAN];
    (void)printf("%s: %d users with %d tokens of context each, %d threads\n\nMemory\n",
                 o->model.path, p->n_users, p->n_ctx, f->info.threads);
    print_row("weights", p->weight_bytes, "mapped from the file, shared between processes");
    print_row("cache file", p->cache_bytes, "mapped likewise: repacked weights");
    print_row("header", p->header_bytes, "mapped likewise: names, vocabulary");
    char kv[64];
    (void)snprintf(kv, sizeof kv, "keys and values in %s, all contexts full",
                   gn_cli_kv_name(&o->model));
    print_row("KV", p->kv_bytes, kv);
    print_row("scratch", p->scratch_bytes, "forward pass, sessions, logits");
    print_row("text", p->text_bytes, "tokenizer, chat template, tables of the file");
    print_row("program", f->program, "the program and its libraries");
    print_row("total", f->total, f->total <= f->free ? "fits" : "DOES NOT FIT");
    print_row("free", f->free,
              o->memory != 0 ? "as given" : "of this machine, within the cgroup's limit");
    if (p->read_bytes_per_tok == 0) {
        return;
    }
    (void)printf("\nSpeed of decode that memory allows, at %s/s (%s)\n"
                 "  %s of weights a token, once for all users; %s of keys and values a token and "
                 "user at full context\n"
                 "  one user %8.1f tok/s\n",
                 gn_cli_human_bytes((uint64_t)f->bandwidth, a),
                 o->bandwidth > 0.0 ? "as given" : "measured",
                 gn_cli_human_bytes(p->read_bytes_per_tok, b),
                 gn_cli_human_bytes(p->kv_read_bytes_per_tok, (char[GN_CLI_HUMAN]){0}), f->one);
    if (p->n_users > 1) {
        (void)printf("  %d users %*.1f tok/s together, %.1f each\n", p->n_users,
                     p->n_users < 10 ? 9 : 8, f->all, f->all / (double)p->n_users);
    }
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    const options *o = options_;
    facts f = {0};
    (void)args;
    gn_os_usage usage = gn_os_memory_usage();
    f.program = usage.private_bytes + usage.shared_bytes;
    gn_model *model = NULL;
    gn_cli_model_args model_args = o->model;
    if (model_args.cache == GN_CLI_CACHE_AUTO) {
        model_args.cache = GN_CLI_CACHE_READ; /* nothing is computed: none is written */
    }
    GN_TRY(gn_cli_model_open(&model_args, &model));
    f.info = gn_model_get_info(model);
    gn_status status = gn_model_plan(model, (int32_t)o->n_ctx, (int32_t)o->n_users, &f.plan);
    gn_model_close(model);
    GN_TRY(status);
    GN_TRY(add_up(o, &f));
    if (o->json) {
        print_json(o, &f);
    } else {
        print_table(o, &f);
    }
    /* The table says it; the exit code is 1, and there is no further message. */
    return f.total <= f.free ? GN_OK : GN_E_REFUSED;
}

const gn_cli_command gn_cli_cmd_plan = {
    .name = "plan",
    .summary = "memory a model takes, whether it fits, and the speed that memory allows",
    .usage = "-m MODEL [--ctx N] [--users N] [options]",
    .details =
        "Reads the model's header alone. Exit 1 where it does not fit. The speed is bytes read\n"
        "for a token divided by the bandwidth: an upper limit for decode.",
    .example = "ganglion plan -m qwen2.5-coder-1.5b --ctx 8192 --users 4",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
