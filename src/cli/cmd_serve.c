/* `ganglion serve`: the HTTP server in the foreground. SIGTERM and SIGINT let what runs end (a second one does not
 * wait), SIGHUP reads the keys again. */
#include "base/alloc.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "cli/serve_plan.h"
#include "ganglion/server.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

typedef struct options {
    gn_cli_list models;
    gn_cli_model_args model;
    const char *host;
    int64_t port;
    const char *key_file;
    const char *new_key;
    const char *tls_cert, *tls_key;
    gn_cli_list origins, hosts;
    int64_t max_loaded, max_waiting, max_running, max_connections;
    uint64_t max_body;
    int64_t idle_ms, upload_ms, drain_s;
    bool no_prefix_cache;
    const char *config;
    bool dry_run;
    bool quiet;
    bool log_prompts;
    bool json;
} options;

static const options defaults = {.port = 8080, .drain_s = 30};

static const gn_cli_option rows[] = {
    {.letter = 'm',
     .name = "model",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, models),
     .value = "[NAME=]MODEL",
     .help =
         "A .gguf file, a Hugging Face folder, or the name of a pulled model, and what requests "
         "call it; may be given more than once."},
    {.name = "config",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, config),
     .value = "FILE",
     .help = "YAML file with options under their long names; those given here come before it, and "
             "lists are joined."},
    {.name = "dry-run",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, dry_run),
     .help = "Check everything, print what it would take of memory, and end; exit code 1 where it "
             "does not fit."},
    {.name = "host",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, host),
     .value = "ADDRESS",
     .help = "Address to listen on; others than loopback need an API key; default: 127.0.0.1."},
    {.name = "port",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, port),
     .value = "PORT",
     .help = "Port to listen on; 0: any free one; default: 8080.",
     .min = 0,
     .max = 65535},
    {.name = "keys",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, key_file),
     .value = "FILE",
     .help = "API keys, hashed, and their limits, one a line; $GANGLION_API_KEY is one more."},
    {.name = "new-key",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, new_key),
     .value = "NAME",
     .help = "Print a new API key and its line for the file of --keys, and end."},
    {.name = "tls-cert",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, tls_cert),
     .value = "FILE",
     .help = "Certificate chain in PEM; with --tls-key the server speaks HTTPS."},
    {.name = "tls-key",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, tls_key),
     .value = "FILE",
     .help = "Private key of the certificate in PEM."},
    {.name = "origin",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, origins),
     .value = "ORIGIN",
     .more = true,
     .help = "Web pages of this origin may call the server, such as https://app.example; may be "
             "given more than once."},
    {.name = "allow-host",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, hosts),
     .value = "NAME",
     .more = true,
     .help = "A further name that requests may call the server by; may be given more than once."},
    {.name = "max-loaded",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, max_loaded),
     .value = "N",
     .help = "Models open at a time; the least used is closed for another; default: all.",
     .min = 1,
     .max = 1024},
    {.name = "max-waiting",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, max_waiting),
     .value = "N",
     .more = true,
     .help = "Requests that may wait, of each model; default: 256.",
     .min = 1,
     .max = 100000},
    {.name = "max-running",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, max_running),
     .value = "N",
     .help = "Requests computed together, of each model; default: 64.",
     .min = 1,
     .max = 256},
    {.name = "max-connections",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, max_connections),
     .value = "N",
     .more = true,
     .help = "Connections open at a time; default: 256.",
     .min = 1,
     .max = 10000},
    {.name = "max-body",
     .kind = GN_CLI_SIZE,
     .offset = offsetof(options, max_body),
     .value = "BYTES",
     .more = true,
     .help = "Largest body of a request; default: 32M."},
    {.name = "idle-ms",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, idle_ms),
     .value = "MS",
     .more = true,
     .help = "Time that a connection has to send a request's headers; default: 75000.",
     .min = 100,
     .max = 3600000},
    {.name = "upload-ms",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, upload_ms),
     .value = "MS",
     .more = true,
     .help = "Time that a client has to send a request's body; default: 60000.",
     .min = 100,
     .max = 3600000},
    {.name = "drain",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, drain_s),
     .value = "SECONDS",
     .more = true,
     .help = "Time that what runs has to end after SIGTERM; default: 30.",
     .min = 0,
     .max = 86400},
    {.name = "no-prefix-cache",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, no_prefix_cache),
     .more = true,
     .help = "Compute every prompt anew."},
    {.name = "quiet",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, quiet),
     .help = "No log on standard error."},
    {.name = "log-prompts",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, log_prompts),
     .more = true,
     .help = "Put what clients ask into the log."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print the address as JSON."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

/* --- the log --- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_log(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    (void)pthread_mutex_lock(&log_lock);
    (void)fwrite(line, 1, len, stderr);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
    (void)pthread_mutex_unlock(&log_lock);
}

/* --- models: "name=path", or a path whose file name is the name --- */

static size_t default_name(const char *path, const char **name)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    size_t begin = len;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    *name = path + begin;
    len -= begin;
    static const char *const suffixes[] = {".gguf", ".safetensors"};
    for (size_t i = 0; i < GN_COUNTOF(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (len > n && memcmp(*name + len - n, suffixes[i], n) == 0) {
            return len - n;
        }
    }
    return len;
}

static gn_status fill_model(const char *text, gn_server_model *model)
{
    const char *equals = strchr(text, '=');
    const char *slash = strchr(text, '/');
    const char *path = text;
    const char *name = text;
    size_t len;
    if (equals != NULL && equals > text && (slash == NULL || equals < slash)) {
        path = equals + 1;
        len = (size_t)(equals - text);
    } else {
        len = default_name(path, &name);
    }
    gn_buf buf = {0};
    GN_TRY(gn_buf_append(&buf, name, len));
    model->name = gn_buf_take(&buf);
    gn_status status = gn_cli_model_resolve(path, &buf);
    model->path = gn_buf_take(&buf);
    return status;
}

static void free_models(gn_server_model *models, size_t n)
{
    for (size_t i = 0; models != NULL && i < n; i++) {
        gn_free((char *)(uintptr_t)models[i].name);
        gn_free((char *)(uintptr_t)models[i].path);
    }
    gn_free(models);
}

static gn_status fill_models(const options *o, gn_server_model **out)
{
    GN_REQUIRE(o->models.n > 0, GN_E_ARG, "no model: give -m MODEL");
    *out = gn_calloc(o->models.n, sizeof **out);
    if (*out == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < o->models.n; i++) {
        GN_TRY(fill_model(o->models.v[i], &(*out)[i]));
    }
    return GN_OK;
}

static gn_server_options server_options(const options *o, const gn_server_model *models)
{
    return (gn_server_options){
        .models = models,
        .n_models = o->models.n,
        .model = gn_cli_model_options(&o->model),
        .max_loaded = (uint32_t)o->max_loaded,
        .host = o->host,
        .port = (uint16_t)o->port,
        .key_file = o->key_file,
        .key = getenv("GANGLION_API_KEY"),
        .tls_cert = o->tls_cert,
        .tls_key = o->tls_key,
        .origins = o->origins.v,
        .n_origins = o->origins.n,
        .hosts = o->hosts.v,
        .n_hosts = o->hosts.n,
        .max_body_bytes = o->max_body,
        .max_connections = (uint32_t)o->max_connections,
        .idle_ms = (uint32_t)o->idle_ms,
        .upload_ms = (uint32_t)o->upload_ms,
        .max_waiting = (uint32_t)o->max_waiting,
        .max_running = (uint32_t)o->max_running,
        .no_prefix_cache = o->no_prefix_cache,
        .log_prompts = o->log_prompts,
        .log = o->quiet ? NULL : write_log,
    };
}

/* --- running --- */

static sigset_t caught(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    return set;
}

static int wait_signal(const sigset_t *set, int seconds)
{
    struct timespec time = {.tv_sec = seconds};
    return sigtimedwait(set, NULL, &time);
}

static gn_status announce(const options *o, const gn_server *server)
{
    if (o->json) {
        gn_cli_json json;
        gn_cli_json_init(&json, stdout);
        gn_cli_json_object(&json, NULL);
        gn_cli_json_str(&json, "url", gn_server_url(server));
        gn_cli_json_end(&json);
    } else {
        (void)printf("listening on %s\n", gn_server_url(server));
    }
    (void)sd_notify(0, "READY=1");
    return gn_cli_flush();
}

static void serve(gn_server *server)
{
    sigset_t set = caught();
    for (;;) {
        int sig = wait_signal(&set, 2);
        if (sig == SIGHUP) {
            (void)sd_notify(0, "RELOADING=1");
            if (gn_server_reload(server) != GN_OK) {
                (void)gn_cli_report("serve", GN_E_FORMAT);
            }
            (void)sd_notify(0, "READY=1");
        } else if (sig > 0) {
            return;
        } else if (gn_server_healthy(server)) {
            (void)sd_notify(0, "WATCHDOG=1");
        }
    }
}

/* Let what runs end, unless somebody asks again. */
static void drain(gn_server *server, int64_t seconds)
{
    (void)sd_notify(0, "STOPPING=1");
    sigset_t set = caught();
    for (int64_t i = 0; i < seconds * 5; i++) {
        if (gn_server_drain(server, 200)) {
            return;
        }
        int sig = wait_signal(&set, 0);
        if (sig == SIGTERM || sig == SIGINT) {
            return;
        }
    }
}

static gn_status run_server(const options *o, const gn_server_model *models)
{
    gn_server_options so = server_options(o, models);
    gn_server *server = NULL;
    GN_TRY(gn_server_create(&so, &server));
    gn_status status = gn_server_start(server);
    if (status == GN_OK) {
        status = announce(o, server);
    }
    if (status == GN_OK) {
        serve(server);
        drain(server, o->drain_s);
    }
    gn_server_destroy(server);
    return status;
}

/* What it would take, without listening. */
static gn_status dry_run(const options *o, const gn_server_model *models)
{
    gn_server_options so = server_options(o, models);
    gn_server *server = NULL;
    GN_TRY(gn_server_create(&so, &server));
    gn_server_destroy(server);
    return gn_cli_serve_plan(&so, o->json);
}

static gn_status print_key(const options *o)
{
    char key[GN_SERVER_KEY_BYTES];
    char line[GN_SERVER_LINE_BYTES];
    GN_TRY(gn_server_new_key(o->new_key, key, line));
    if (o->json) {
        gn_cli_json json;
        gn_cli_json_init(&json, stdout);
        gn_cli_json_object(&json, NULL);
        gn_cli_json_str(&json, "key", key);
        gn_cli_json_str(&json, "line", line);
        gn_cli_json_end(&json);
    } else {
        (void)printf("%s\n%s\n", key, line);
    }
    return gn_cli_flush();
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    if (o->new_key != NULL) {
        return print_key(o);
    }
    /* Blocked before any thread starts, so that only serve() and drain() take them. */
    sigset_t set = caught();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    gn_server_model *models = NULL;
    gn_status status = fill_models(o, &models);
    if (status == GN_OK) {
        status = o->dry_run ? dry_run(o, models) : run_server(o, models);
    }
    free_models(models, o->models.n);
    return status;
}

const gn_cli_command gn_cli_cmd_serve = {
    .name = "serve",
    .summary = "a server for OpenAI, Anthropic, Ollama and llama-server clients",
    .usage = "-m MODEL [options]",
    .details = "Listens on http://127.0.0.1:8080 until SIGTERM, which lets what runs end. SIGHUP "
               "reads the\n"
               "keys again. The log on standard error has one JSON object a line.",
    .example = "ganglion serve -m smollm2-135m --port 8080",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .has_config = true,
    .run = run,
};
