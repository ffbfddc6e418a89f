/* `ganglion eval`: measurements of a model's quality. The work is in eval_*.c. */
#include "cli/commands.h"
#include "cli/eval.h"

#include <string.h>

static const gn_cli_eval_options defaults = {.ctx = 512};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(gn_cli_eval_options),
    {.name = "base",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(gn_cli_eval_options, base),
     .value = "MODEL|FILE",
     .help = "kld: what is compared with: a model, or a file of its logits."},
    {.name = "base-activations",
     .kind = GN_CLI_CHOICE,
     .offset = offsetof(gn_cli_eval_options, base_activations),
     .choices = "int8|f32",
     .help =
         "kld: activations of the base model; default: int8. With f32 a model is measured against "
         "its own exact form."},
    {.name = "save-base",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(gn_cli_eval_options, save_base),
     .value = "FILE",
     .help = "kld: write the logits of -m over the text to FILE, for --base later."},
    {.letter = 'c',
     .name = "ctx",
     .kind = GN_CLI_INT,
     .offset = offsetof(gn_cli_eval_options, ctx),
     .value = "N",
     .help = "ppl, kld: tokens a window; the second half of each counts; default: 512.",
     .min = 8,
     .max = 1048576},
    {.name = "limit",
     .kind = GN_CLI_INT,
     .offset = offsetof(gn_cli_eval_options, limit),
     .value = "N",
     .help = "Windows or tasks at most; default: all.",
     .min = 1,
     .max = 1e9},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(gn_cli_eval_options, json),
     .help = "Print the result as JSON."},
    GN_CLI_COMPUTE_OPTIONS(gn_cli_eval_options),
};

static gn_status run(const void *options, const gn_cli_list *args)
{
    static const struct {
        const char *name;
        gn_status (*run)(const gn_cli_eval_options *options, const char *path);
        bool text_required;
    } measures[] = {{"ppl", gn_cli_eval_ppl, true},
                    {"kld", gn_cli_eval_kld, false},
                    {"hellaswag", gn_cli_eval_hellaswag, true}};
    const char *path = args->n > 1 ? args->v[1] : NULL;
    for (size_t i = 0; i < GN_COUNTOF(measures); i++) {
        if (strcmp(args->v[0], measures[i].name) == 0) {
            GN_REQUIRE(path != NULL || !measures[i].text_required, GN_E_ARG,
                       "%s: found no FILE, expected: eval %s -m MODEL FILE", args->v[0],
                       args->v[0]);
            return measures[i].run(options, path);
        }
    }
    return gn_base_fail(GN_E_ARG, "found \"%s\", expected ppl, kld or hellaswag", args->v[0]);
}

const gn_cli_command gn_cli_cmd_eval = {
    .name = "eval",
    .summary = "perplexity, KL divergence and multiple choice",
    .usage = "ppl|kld|hellaswag -m MODEL [--base MODEL|FILE] [options] FILE",
    .details = "ppl        perplexity of a text, windows as llama.cpp's perplexity tool cuts them\n"
               "kld        KL divergence from a base model, with that tool's definitions\n"
               "hellaswag  a JSON object a line: ctx, endings, label; acc is by the sum of\n"
               "           log-probabilities, acc_norm by that sum per character of the ending\n"
               "FILE may be - for standard input; a saved base brings its own text.",
    .example = "ganglion eval ppl -m smollm2-135m text.txt\n"
               "ganglion eval kld -m small.gguf --base large.gguf --json text.txt",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(gn_cli_eval_options),
    .defaults = &defaults,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
