/* `ganglion tokenize`: standard input → ids or pieces. It needs only the tokenizer, so files without
 * weights and architectures that are not supported work too. */
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "text/tokenizer.h"

typedef struct options {
    gn_cli_model_args model;
    bool ids;
    bool no_special;
    bool bos;
    bool json;
} options;

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "ids",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, ids),
     .help = "Print ids instead of pieces."},
    {.name = "no-special",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, no_special),
     .help = "Take the text of special tokens, such as <|im_start|>, as plain text."},
    {.name = "bos",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, bos),
     .help = "Add what the model adds around a text; default: nothing is added."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print one object with both ids and pieces."},
};

static void put_ids(gn_cli_json *json, const char *key, const gn_token_list *list)
{
    gn_cli_json_array(json, key);
    for (size_t i = 0; i < list->n; i++) {
        gn_cli_json_int(json, NULL, list->ids[i]);
    }
    gn_cli_json_end(json);
}

static gn_status put_pieces(gn_cli_json *json, const char *key, const gn_tokenizer *tokenizer,
                            const gn_token_list *list)
{
    gn_buf piece = {0};
    gn_status status = GN_OK;
    gn_cli_json_array(json, key);
    for (size_t i = 0; i < list->n && status == GN_OK; i++) {
        gn_buf_clear(&piece);
        status = gn_tokenizer_piece(tokenizer, list->ids[i], true, &piece);
        if (status == GN_OK) {
            gn_cli_json_strn(json, NULL, piece.data != NULL ? piece.data : "", piece.len);
        }
    }
    gn_cli_json_end(json);
    gn_buf_fini(&piece);
    return status;
}

static gn_status print(const options *o, const gn_tokenizer *tokenizer, const gn_token_list *list)
{
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_status status = GN_OK;
    if (o->json) {
        gn_cli_json_object(&json, NULL);
        put_ids(&json, "ids", list);
        status = put_pieces(&json, "pieces", tokenizer, list);
        gn_cli_json_end(&json);
    } else if (o->ids) {
        put_ids(&json, NULL, list);
    } else {
        status = put_pieces(&json, NULL, tokenizer, list);
    }
    return status;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    gn_tokenizer *tokenizer = NULL;
    GN_TRY(gn_cli_tokenizer_open(o->model.path, &tokenizer));
    gn_buf text = {0};
    gn_token_list list = {0};
    gn_status status = gn_cli_read("-", 0, &text);
    if (status == GN_OK) {
        unsigned flags = (o->no_special ? 0 : GN_ENCODE_SPECIAL) | (o->bos ? GN_ENCODE_BOS : 0);
        status = gn_tokenizer_encode(tokenizer, text.data != NULL ? text.data : "", text.len, flags,
                                     &list);
        if (status == GN_E_LIMIT || status == GN_E_FORMAT) {
            status = gn_base_fail_prefix(status, "%s: ", o->model.path);
        }
    }
    if (status == GN_OK) {
        status = print(o, tokenizer, &list);
    }
    gn_token_list_fini(&list);
    gn_buf_fini(&text);
    gn_tokenizer_destroy(tokenizer);
    return status;
}

const gn_cli_command gn_cli_cmd_tokenize = {
    .name = "tokenize",
    .summary = "text on standard input → token ids or pieces",
    .usage = "-m MODEL [options] < TEXT",
    .details =
        "Prints one JSON array. Standard input is taken byte for byte, the last newline included.",
    .example = "printf 'Hello world' | ganglion tokenize -m smollm2-135m --ids",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .run = run,
};
