#include "cli/grammar_arg.h"

#include "cli/out.h"
#include "ganglion/model.h"

#include <string.h>

gn_status gn_cli_grammar_check(const gn_cli_grammar_args *args)
{
    int n = (args->schema != NULL) + (args->regex != NULL) + (args->gbnf != NULL);
    GN_REQUIRE(n <= 1, GN_E_ARG, "found %d of --schema, --regex and --gbnf, expected one at most",
               n);
    return GN_OK;
}

static gn_status load_schema(const char *path, const gn_buf *text, gn_grammar **out)
{
    char *pointer = NULL;
    gn_status status = gn_grammar_from_schema(text->data != NULL ? text->data : "", text->len, NULL,
                                              out, &pointer);
    if (status != GN_OK) {
        bool placed = pointer != NULL && pointer[0] != '\0';
        status = gn_base_fail_prefix(status, "%s: %s%s", gn_cli_input_name(path),
                                     placed ? pointer : "", placed ? ": " : "");
    }
    gn_release(pointer);
    return status;
}

static gn_status load_gbnf(const char *path, const gn_buf *text, gn_grammar **out)
{
    gn_status status = gn_grammar_from_gbnf(text->data != NULL ? text->data : "", text->len, out);
    return status != GN_OK ? gn_base_fail_prefix(status, "%s: ", gn_cli_input_name(path)) : GN_OK;
}

gn_status gn_cli_grammar_load(const gn_cli_grammar_args *args, gn_grammar **out)
{
    *out = NULL;
    if (args->regex != NULL) {
        gn_status status = gn_grammar_from_regex(args->regex, strlen(args->regex), out);
        return status != GN_OK ? gn_base_fail_prefix(status, "--regex: ") : GN_OK;
    }
    const char *path = args->schema != NULL ? args->schema : args->gbnf;
    if (path == NULL) {
        return GN_OK;
    }
    gn_buf text = {0};
    gn_status status = gn_cli_read(path, 0, &text);
    if (status == GN_OK) {
        status = args->schema != NULL ? load_schema(path, &text, out) : load_gbnf(path, &text, out);
    }
    gn_buf_fini(&text);
    return status;
}
