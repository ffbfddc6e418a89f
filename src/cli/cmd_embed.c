/* `ganglion embed`: each line of standard input → one line with its embedding. Lines are answered as they
 * come, so the command can sit in a pipe. */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    gn_cli_model_args model;
    bool json;
} options;

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Changes nothing: the output is JSON always."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

static gn_status embed_lines(gn_model *model)
{
    size_t n_embd = (size_t)gn_model_get_info(model).n_embd;
    float *vector = gn_alloc_array(n_embd, sizeof *vector);
    if (vector == NULL) {
        return gn_alloc_failed();
    }
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_status status = GN_OK;
    char *line = NULL;
    size_t cap = 0;
    uint64_t number = 0;
    errno = 0;
    for (ssize_t len; status == GN_OK && (len = getline(&line, &cap, stdin)) >= 0;) {
        number++;
        len -= len > 0 && line[len - 1] == '\n';
        status = gn_model_embed(model, line, (size_t)len, vector);
        if (status != GN_OK) {
            status = gn_base_fail_prefix(status,
                                         "standard input: line %llu: ", (unsigned long long)number);
            break;
        }
        gn_cli_json_floats(&json, NULL, vector, n_embd);
        status = gn_cli_flush();
    }
    if (status == GN_OK && !feof(stdin)) {
        status = errno == ENOMEM
                     ? gn_alloc_failed()
                     : gn_base_fail(GN_E_IO, "standard input: cannot read: %s", strerror(errno));
    }
    free(line);
    gn_free(vector);
    return status;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    gn_model *model = NULL;
    GN_TRY(gn_cli_model_open(&o->model, &model));
    gn_status status = embed_lines(model);
    gn_cli_model_close(model);
    return status;
}

const gn_cli_command gn_cli_cmd_embed = {
    .name = "embed",
    .summary = "lines on standard input → embeddings",
    .usage = "-m MODEL [options] < LINES",
    .details = "Prints one JSON array of floats for each line, in order, as the lines come.",
    .example = "printf 'a cat\\na dog\\n' | ganglion embed -m all-minilm-l6-v2",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .run = run,
};
