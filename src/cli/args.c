/* The option parser: walks argv once, finds each option's row, converts and checks its value, and
 * writes it at the row's offset. Values stay in argv; only the arrays of lists are allocated. */
#include "cli/args.h"

#include "cli/config.h"

#include "base/alloc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_BYTES 64

/* How the option is called in messages: "--temp" or "-p". */
static const char *label(const gn_cli_option *option, char out[LABEL_BYTES])
{
    out[0] = '-';
    if (option->name != NULL) {
        size_t len = strnlen(option->name, LABEL_BYTES - 3);
        out[1] = '-';
        memcpy(out + 2, option->name, len);
        out[2 + len] = '\0';
    } else {
        out[1] = option->letter;
        out[2] = '\0';
    }
    return out;
}

static gn_status fail_value(const gn_cli_option *option, const char *found, const char *what)
{
    char text[LABEL_BYTES];
    if (option->kind == GN_CLI_INT || option->kind == GN_CLI_INTS || option->kind == GN_CLI_REAL) {
        return gn_base_fail(GN_E_ARG, "%s: found \"%s\", expected %s from %.16g to %.16g",
                            label(option, text), found, what, option->min, option->max);
    }
    return gn_base_fail(GN_E_ARG, "%s: found \"%s\", expected %s", label(option, text), found,
                        what);
}

static bool read_int(const gn_cli_option *option, const char *s, char **end, int64_t *out)
{
    errno = 0;
    long long v = strtoll(s, end, 10);
    if (*end == s || errno != 0 || (double)v < option->min || (double)v > option->max) {
        return false;
    }
    *out = v;
    return true;
}

static gn_status set_int(const gn_cli_option *option, const char *value, int64_t *out)
{
    char *end;
    int64_t v;
    if (!read_int(option, value, &end, &v) || *end != '\0') {
        return fail_value(option, value, "an integer");
    }
    *out = v;
    return GN_OK;
}

static gn_status set_ints(const gn_cli_option *option, const char *value, gn_cli_ints *out)
{
    gn_cli_ints list = {0};
    const char *s = value;
    for (;;) {
        char *end;
        int64_t v;
        if (list.n == GN_CLI_MAX_INTS || !read_int(option, s, &end, &v) ||
            (*end != '\0' && *end != ',')) {
            return fail_value(option, value, "integers separated by commas, each");
        }
        list.v[list.n++] = v;
        if (*end == '\0') {
            break;
        }
        s = end + 1;
    }
    *out = list;
    return GN_OK;
}

static gn_status set_real(const gn_cli_option *option, const char *value, double *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(v) || v < option->min || v > option->max) {
        return fail_value(option, value, "a number");
    }
    *out = v;
    return GN_OK;
}

static gn_status set_size(const gn_cli_option *option, const char *value, uint64_t *out)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(value, &end, 10);
    bool ok = end != value && errno == 0 && strchr(value, '-') == NULL;
    unsigned shift = 0;
    if (ok && *end != '\0') {
        const char *unit = strchr(units, *end & ~0x20);
        ok = unit != NULL && *unit != '\0' && end[1] == '\0';
        shift = ok ? 10 * (unsigned)(unit - units + 1) : 0;
    }
    if (!ok || v > UINT64_MAX >> shift) {
        return fail_value(option, value, "a number of bytes such as 512M or 2G");
    }
    *out = (uint64_t)v << shift;
    return GN_OK;
}

static gn_status set_choice(const gn_cli_option *option, const char *value, int *out)
{
    size_t len = strlen(value);
    int index = 0;
    for (const char *s = option->choices; *s != '\0'; index++) {
        size_t n = strcspn(s, "|");
        if (n == len && memcmp(s, value, n) == 0) {
            *out = index;
            return GN_OK;
        }
        s += n + (s[n] == '|');
    }
    return fail_value(option, value, option->choices);
}

static gn_status list_add(gn_cli_list *list, const char *value)
{
    const char **grown = gn_realloc_array(list->v, list->n + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    list->v = grown;
    list->v[list->n++] = value;
    return GN_OK;
}

static gn_status set_value(const gn_cli_option *option, const char *value, void *options)
{
    void *at = (char *)options + option->offset;
    switch (option->kind) {
    case GN_CLI_FLAG: *(bool *)at = true; return GN_OK;
    case GN_CLI_INT: return set_int(option, value, at);
    case GN_CLI_REAL: return set_real(option, value, at);
    case GN_CLI_SIZE: return set_size(option, value, at);
    case GN_CLI_TEXT: *(const char **)at = value; return GN_OK;
    case GN_CLI_CHOICE: return set_choice(option, value, at);
    case GN_CLI_INTS: return set_ints(option, value, at);
    case GN_CLI_LIST: return list_add(at, value);
    }
    return GN_OK;
}

static const gn_cli_option *find_long(const gn_cli_command *command, const char *name, size_t len)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const gn_cli_option *o = &command->options[i];
        if (o->name != NULL && strlen(o->name) == len && memcmp(o->name, name, len) == 0) {
            return o;
        }
    }
    return NULL;
}

static const gn_cli_option *find_letter(const gn_cli_command *command, char letter)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].letter == letter) {
            return &command->options[i];
        }
    }
    return NULL;
}

static gn_status fail_unknown(const gn_cli_command *command, const char *found)
{
    const char **names = gn_alloc_array(command->n_options + 1, sizeof *names);
    if (names == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].name != NULL) {
            names[n++] = command->options[i].name;
        }
    }
    const char *near =
        found[0] == '-' && found[1] == '-' ? gn_cli_args_nearest(found + 2, names, n) : NULL;
    gn_free(names);
    if (near != NULL) {
        return gn_base_fail(GN_E_ARG, "unknown option %s, did you mean --%s? (--help lists them)",
                            found, near);
    }
    return gn_base_fail(GN_E_ARG, "unknown option %s (--help lists those there are)", found);
}

/* One option at argv[*i]; moves *i past a value taken from the next argument. */
static gn_status parse_option(const gn_cli_command *command, int argc, char **argv, int *i,
                              void *options)
{
    const char *arg = argv[*i];
    const gn_cli_option *option;
    const char *value = NULL;
    if (arg[1] == '-') {
        size_t len = strcspn(arg + 2, "=");
        option = find_long(command, arg + 2, len);
        value = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
    } else {
        option = find_letter(command, arg[1]);
        value = arg[2] != '\0' ? arg + 2 : NULL;
    }
    if (option == NULL) {
        return fail_unknown(command, arg);
    }
    char text[LABEL_BYTES];
    if (option->kind == GN_CLI_FLAG) {
        GN_REQUIRE(value == NULL, GN_E_ARG, "%s: found the value \"%s\", expected none",
                   label(option, text), value);
    } else if (value == NULL) {
        GN_REQUIRE(*i + 1 < argc, GN_E_ARG, "%s: found no value, expected %s", label(option, text),
                   option->value);
        value = argv[++*i];
    }
    return set_value(option, value, options);
}

gn_status gn_cli_args_set(const gn_cli_command *command, const char *name, const char *value,
                          void *options)
{
    const gn_cli_option *option = find_long(command, name, strlen(name));
    if (option == NULL) {
        return fail_unknown(command, name);
    }
    if (option->kind != GN_CLI_FLAG) {
        return set_value(option, value, options);
    }
    bool *at = (bool *)((char *)options + option->offset);
    *at = strcmp(value, "true") == 0;
    return *at || strcmp(value, "false") == 0 ? GN_OK : fail_value(option, value, "true or false");
}

/* The file of --config, wherever it stands among the options, before any of them. */
static gn_status read_config(const gn_cli_command *command, int argc, char **argv, void *options)
{
    static const char name[] = "--config";
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], name) == 0 && i + 1 < argc) {
            return gn_cli_config_read(command, argv[i + 1], options);
        }
        if (strncmp(argv[i], name, sizeof name - 1) == 0 && argv[i][sizeof name - 1] == '=') {
            return gn_cli_config_read(command, argv[i] + sizeof name, options);
        }
    }
    return GN_OK;
}

gn_status gn_cli_args_parse(const gn_cli_command *command, int argc, char **argv, void *options,
                            gn_cli_list *args, bool *help)
{
    *args = (gn_cli_list){0};
    *help = false;
    if (command->defaults != NULL) {
        memcpy(options, command->defaults, command->options_bytes);
    } else {
        memset(options, 0, command->options_bytes);
    }
    if (command->has_config) {
        GN_TRY(read_config(command, argc, argv, options));
    }
    bool literal = false;
    for (int i = 0; i < argc; i++) {
        if (literal || argv[i][0] != '-' || argv[i][1] == '\0') {
            GN_TRY(list_add(args, argv[i]));
        } else if (strcmp(argv[i], "--") == 0) {
            literal = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *help = true;
            return GN_OK;
        } else {
            GN_TRY(parse_option(command, argc, argv, &i, options));
        }
    }
    GN_REQUIRE(args->n >= command->min_args, GN_E_ARG,
               "found %zu arguments, expected: ganglion %s %s", args->n, command->name,
               command->usage);
    GN_REQUIRE(args->n <= command->max_args, GN_E_ARG,
               "unexpected argument \"%s\", expected: ganglion %s %s", args->v[command->max_args],
               command->name, command->usage);
    return GN_OK;
}

void gn_cli_args_fini(const gn_cli_command *command, void *options, gn_cli_list *args)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].kind == GN_CLI_LIST) {
            gn_cli_list *list = (gn_cli_list *)((char *)options + command->options[i].offset);
            gn_free(list->v);
            *list = (gn_cli_list){0};
        }
    }
    gn_free(args->v);
    *args = (gn_cli_list){0};
    gn_cli_config_release();
}

#define HELP_COLUMN 26
#define HELP_WIDTH  98

/* Append `text` wrapped at HELP_WIDTH; the cursor stands at HELP_COLUMN already. */
static gn_status put_wrapped(gn_buf *out, const char *text)
{
    size_t column = HELP_COLUMN;
    for (const char *s = text; *s != '\0';) {
        size_t len = strcspn(s, " ");
        if (column + len > HELP_WIDTH && column > HELP_COLUMN) {
            GN_TRY(gn_buf_printf(out, "\n%*s", HELP_COLUMN, ""));
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            GN_TRY(gn_buf_putc(out, ' '));
            column++;
        }
        GN_TRY(gn_buf_append(out, s, len));
        column += len;
        s += len + (s[len] == ' ');
    }
    return gn_buf_putc(out, '\n');
}

static gn_status help_option(const gn_cli_option *o, gn_buf *out)
{
    size_t start = out->len;
    if (o->letter != 0) {
        GN_TRY(gn_buf_printf(out, "  -%c%s", o->letter, o->name != NULL ? ", " : ""));
    } else {
        GN_TRY(gn_buf_puts(out, "      "));
    }
    if (o->name != NULL) {
        GN_TRY(gn_buf_printf(out, "--%s", o->name));
    }
    if (o->kind != GN_CLI_FLAG) {
        GN_TRY(gn_buf_printf(out, " %s", o->kind == GN_CLI_CHOICE ? o->choices : o->value));
    }
    size_t used = out->len - start;
    if (used + 2 > HELP_COLUMN) {
        GN_TRY(gn_buf_putc(out, '\n'));
        used = 0;
    }
    GN_TRY(gn_buf_printf(out, "%*s", HELP_COLUMN - (int)used, ""));
    return put_wrapped(out, o->help);
}

gn_status gn_cli_args_help(const gn_cli_command *command, gn_buf *out)
{
    GN_TRY(gn_buf_printf(out, "ganglion %s: %s\n\nUsage: ganglion %s %s\n", command->name,
                         command->summary, command->name, command->usage));
    if (command->details != NULL) {
        GN_TRY(gn_buf_printf(out, "\n%s\n", command->details));
    }
    GN_TRY(gn_buf_puts(out, "\nOptions:\n"));
    size_t n_more = 0;
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].more) {
            n_more++;
        } else {
            GN_TRY(help_option(&command->options[i], out));
        }
    }
    static const gn_cli_option help = {
        .letter = 'h', .name = "help", .kind = GN_CLI_FLAG, .help = "Show this text."};
    GN_TRY(help_option(&help, out));
    if (n_more != 0) {
        GN_TRY(gn_buf_printf(
            out, "\n%zu more options are in the manual: ganglion generate man %s | man -l -\n",
            n_more, command->name));
    }
    GN_TRY(gn_buf_puts(out, "\nExample:\n"));
    for (const char *s = command->example; *s != '\0';) {
        size_t len = strcspn(s, "\n");
        GN_TRY(gn_buf_puts(out, "  "));
        GN_TRY(gn_buf_append(out, s, len));
        GN_TRY(gn_buf_putc(out, '\n'));
        s += len + (s[len] == '\n');
    }
    return GN_OK;
}

#define MAX_NAME 48

/* Edits (insert, remove, replace) that make `a` of `b`: Wagner and Fischer 1974, one row kept. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n >= MAX_NAME || m >= MAX_NAME) {
        return MAX_NAME;
    }
    size_t row[MAX_NAME + 1];
    for (size_t j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[m];
}

const char *gn_cli_args_nearest(const char *found, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t limit = strlen(found) / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(found, names[i]);
        if (d <= limit && d < strlen(names[i])) {
            best = names[i];
            limit = d == 0 ? 0 : d - 1;
        }
    }
    return best;
}
