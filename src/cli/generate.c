/* Man pages and shell completions out of the command tables: what --help says and what they say cannot
 * drift apart. */
#include "cli/commands.h"

#include "ganglion/model.h"

#include <string.h>

/* Text for roff: backslashes and dashes escaped, no line that looks like a request. `at_start`: the text
 * begins a line of its own. */
static gn_status put_roff(gn_buf *out, const char *text, bool at_start)
{
    for (const char *s = text; *s != '\0'; s++) {
        if (at_start && (*s == '.' || *s == '\'')) {
            GN_TRY(gn_buf_puts(out, "\\&"));
        }
        at_start = *s == '\n';
        if (*s == '\\') {
            GN_TRY(gn_buf_puts(out, "\\e"));
        } else if (*s == '-') {
            GN_TRY(gn_buf_puts(out, "\\-"));
        } else {
            GN_TRY(gn_buf_putc(out, *s));
        }
    }
    return GN_OK;
}

static gn_status put_title(gn_buf *out, const char *name, const char *summary)
{
    GN_TRY(gn_buf_printf(out, ".TH %s 1 \"\" \"ganglion %s\" \"Ganglion\"\n.SH NAME\n", name,
                         gn_version()));
    GN_TRY(put_roff(out, name, true));
    GN_TRY(gn_buf_puts(out, " \\- "));
    GN_TRY(put_roff(out, summary, false));
    return gn_buf_putc(out, '\n');
}

static gn_status put_option(gn_buf *out, const gn_cli_option *o)
{
    GN_TRY(gn_buf_puts(out, ".TP\n"));
    if (o->letter != 0) {
        GN_TRY(gn_buf_printf(out, "\\fB\\-%c\\fR%s", o->letter, o->name != NULL ? ", " : ""));
    }
    if (o->name != NULL) {
        GN_TRY(gn_buf_puts(out, "\\fB\\-\\-"));
        GN_TRY(put_roff(out, o->name, false));
        GN_TRY(gn_buf_puts(out, "\\fR"));
    }
    if (o->kind != GN_CLI_FLAG) {
        GN_TRY(gn_buf_puts(out, " \\fI"));
        GN_TRY(put_roff(out, o->kind == GN_CLI_CHOICE ? o->choices : o->value, false));
        GN_TRY(gn_buf_puts(out, "\\fR"));
    }
    GN_TRY(gn_buf_putc(out, '\n'));
    GN_TRY(put_roff(out, o->help, true));
    return gn_buf_putc(out, '\n');
}

static gn_status put_exit_status(gn_buf *out)
{
    static const char *const codes[] = {
        "Done.",           "The answer is no.", "Wrong use of the command line.",
        "Bad input file.", "Out of memory.",    "Unavailable."};
    GN_TRY(gn_buf_puts(out, ".SH EXIT STATUS\n"));
    for (size_t i = 0; i < GN_COUNTOF(codes); i++) {
        GN_TRY(gn_buf_printf(out, ".TP\n%zu\n%s\n", i, codes[i]));
    }
    return GN_OK;
}

static gn_status command_page(const gn_cli_command *command, gn_buf *out)
{
    gn_buf name = {0};
    gn_status status = gn_buf_printf(&name, "ganglion-%s", command->name);
    if (status == GN_OK) {
        status = put_title(out, name.data, command->summary);
    }
    gn_buf_fini(&name);
    GN_TRY(status);
    GN_TRY(gn_buf_printf(out, ".SH SYNOPSIS\n\\fBganglion %s\\fR ", command->name));
    GN_TRY(put_roff(out, command->usage, false));
    if (command->details != NULL) {
        GN_TRY(gn_buf_puts(out, "\n.SH DESCRIPTION\n.nf\n"));
        GN_TRY(put_roff(out, command->details, true));
        GN_TRY(gn_buf_puts(out, "\n.fi"));
    }
    GN_TRY(gn_buf_puts(out, "\n.SH OPTIONS\n"));
    for (size_t i = 0; i < command->n_options; i++) {
        GN_TRY(put_option(out, &command->options[i]));
    }
    GN_TRY(gn_buf_puts(out, ".SH EXAMPLE\n.nf\n"));
    GN_TRY(put_roff(out, command->example, true));
    GN_TRY(gn_buf_puts(out, "\n.fi\n"));
    GN_TRY(put_exit_status(out));
    return gn_buf_puts(out, ".SH SEE ALSO\n.BR ganglion (1)\n");
}

static gn_status program_page(gn_buf *out)
{
    static const char *const variables[][2] = {
        {"GANGLION_MODELS", "The folder of pulled models; default: ~/.cache/ganglion/models."},
        {"GANGLION_CACHE", "Narrows --cache of every command: read or off."},
        {"GANGLION_CACHE_DIR", "The folder of packed weights; default: ~/.cache/ganglion/panels."},
        {"GANGLION_HUB", "The hub that `ganglion pull` asks."},
        {"GANGLION_CPU", "Lowers the level of the kernels: ref, avx2, vnni, neon."}};
    GN_TRY(put_title(out, "ganglion", "run language models on the hardware you own"));
    GN_TRY(gn_buf_puts(out, ".SH SYNOPSIS\n.B ganglion\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"
                            "Runs quantized language models from GGUF files and Hugging Face "
                            "folders, in place and offline. Only \\fBganglion pull\\fR uses the "
                            "network.\n.SH COMMANDS\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        GN_TRY(gn_buf_printf(out, ".TP\n.BR ganglion\\-%s (1)\n", gn_cli_commands[i]->name));
        GN_TRY(put_roff(out, gn_cli_commands[i]->summary, true));
        GN_TRY(gn_buf_putc(out, '\n'));
    }
    GN_TRY(gn_buf_puts(out, ".SH ENVIRONMENT\n"));
    for (size_t i = 0; i < GN_COUNTOF(variables); i++) {
        GN_TRY(gn_buf_printf(out, ".TP\n.B %s\n", variables[i][0]));
        GN_TRY(put_roff(out, variables[i][1], true));
        GN_TRY(gn_buf_putc(out, '\n'));
    }
    return put_exit_status(out);
}

gn_status gn_cli_generate_man(const gn_cli_command *command, gn_buf *out)
{
    return command != NULL ? command_page(command, out) : program_page(out);
}

/* Append "-l --name" of each option, separated by spaces. */
static gn_status put_flags(gn_buf *out, const gn_cli_command *command)
{
    GN_TRY(gn_buf_puts(out, "-h --help"));
    for (size_t i = 0; i < command->n_options; i++) {
        const gn_cli_option *o = &command->options[i];
        if (o->letter != 0) {
            GN_TRY(gn_buf_printf(out, " -%c", o->letter));
        }
        if (o->name != NULL) {
            GN_TRY(gn_buf_printf(out, " --%s", o->name));
        }
    }
    return GN_OK;
}

static gn_status put_choices(gn_buf *out, const char *choices)
{
    for (const char *s = choices; *s != '\0'; s++) {
        GN_TRY(gn_buf_putc(out, *s == '|' ? ' ' : *s));
    }
    return GN_OK;
}

static gn_status bash_completion(gn_buf *out)
{
    GN_TRY(gn_buf_puts(out, "# bash completion for ganglion\n_ganglion() {\n"
                            "    local cur=${COMP_WORDS[COMP_CWORD]} "
                            "prev=${COMP_WORDS[COMP_CWORD-1]} flags=\n"
                            "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                            "        COMPREPLY=($(compgen -W \"help"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        GN_TRY(gn_buf_printf(out, " %s", gn_cli_commands[i]->name));
    }
    GN_TRY(gn_buf_puts(out, "\" -- \"$cur\"))\n        return\n    fi\n"
                            "    case ${COMP_WORDS[1]}:$prev in\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        const gn_cli_command *command = gn_cli_commands[i];
        for (size_t k = 0; k < command->n_options; k++) {
            const gn_cli_option *o = &command->options[k];
            if (o->kind == GN_CLI_CHOICE && o->name != NULL) {
                GN_TRY(gn_buf_printf(out, "    %s:--%s) COMPREPLY=($(compgen -W \"", command->name,
                                     o->name));
                GN_TRY(put_choices(out, o->choices));
                GN_TRY(gn_buf_puts(out, "\" -- \"$cur\")); return ;;\n"));
            }
        }
    }
    GN_TRY(gn_buf_puts(out, "    esac\n    case ${COMP_WORDS[1]} in\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        GN_TRY(gn_buf_printf(out, "    %s) flags=\"", gn_cli_commands[i]->name));
        GN_TRY(put_flags(out, gn_cli_commands[i]));
        GN_TRY(gn_buf_puts(out, "\" ;;\n"));
    }
    return gn_buf_puts(out, "    esac\n    case $cur in\n"
                            "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                            "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n    esac\n}\n"
                            "complete -o filenames -F _ganglion ganglion\n");
}

/* Text inside single quotes, with what zsh's _arguments gives a meaning taken out. */
static gn_status put_plain(gn_buf *out, const char *text)
{
    for (const char *s = text; *s != '\0'; s++) {
        bool special = strchr("'[]:\\", *s) != NULL;
        GN_TRY(gn_buf_putc(out, special ? ' ' : *s));
    }
    return GN_OK;
}

static gn_status zsh_spec(gn_buf *out, const gn_cli_option *o, const char *dashes, const char *name)
{
    GN_TRY(gn_buf_printf(out, " \\\n            '%s%s%s[", o->kind == GN_CLI_LIST ? "*" : "",
                         dashes, name));
    GN_TRY(put_plain(out, o->help));
    GN_TRY(gn_buf_putc(out, ']'));
    if (o->kind == GN_CLI_CHOICE) {
        GN_TRY(gn_buf_puts(out, ":value:("));
        GN_TRY(put_choices(out, o->choices));
        GN_TRY(gn_buf_putc(out, ')'));
    } else if (o->kind != GN_CLI_FLAG) {
        GN_TRY(gn_buf_puts(out, o->kind == GN_CLI_TEXT || o->kind == GN_CLI_LIST ? ":value:_files"
                                                                                 : ":value:"));
    }
    return gn_buf_putc(out, '\'');
}

static gn_status zsh_completion(gn_buf *out)
{
    GN_TRY(gn_buf_puts(out, "#compdef ganglion\n_ganglion() {\n    local -a commands=(\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        GN_TRY(gn_buf_printf(out, "        '%s:", gn_cli_commands[i]->name));
        GN_TRY(put_plain(out, gn_cli_commands[i]->summary));
        GN_TRY(gn_buf_puts(out, "'\n"));
    }
    GN_TRY(gn_buf_puts(out, "    )\n    if (( CURRENT == 2 )); then\n"
                            "        _describe command commands\n        return\n    fi\n"
                            "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                            "    case $command in\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        const gn_cli_command *command = gn_cli_commands[i];
        GN_TRY(gn_buf_printf(out, "    %s)\n        _arguments -s '*:file:_files'", command->name));
        for (size_t k = 0; k < command->n_options; k++) {
            const gn_cli_option *o = &command->options[k];
            const char letter[2] = {o->letter, '\0'};
            if (o->letter != 0) {
                GN_TRY(zsh_spec(out, o, "-", letter));
            }
            if (o->name != NULL) {
                GN_TRY(zsh_spec(out, o, "--", o->name));
            }
        }
        GN_TRY(gn_buf_puts(out, "\n        ;;\n"));
    }
    return gn_buf_puts(out, "    esac\n}\n_ganglion \"$@\"\n");
}

static gn_status fish_completion(gn_buf *out)
{
    GN_TRY(gn_buf_puts(out, "# fish completion for ganglion\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        const gn_cli_command *command = gn_cli_commands[i];
        GN_TRY(gn_buf_printf(out, "complete -c ganglion -n __fish_use_subcommand -f -a %s -d '",
                             command->name));
        GN_TRY(put_plain(out, command->summary));
        GN_TRY(gn_buf_puts(out, "'\n"));
        for (size_t k = 0; k < command->n_options; k++) {
            const gn_cli_option *o = &command->options[k];
            GN_TRY(gn_buf_printf(out, "complete -c ganglion -n '__fish_seen_subcommand_from %s'",
                                 command->name));
            if (o->letter != 0) {
                GN_TRY(gn_buf_printf(out, " -s %c", o->letter));
            }
            if (o->name != NULL) {
                GN_TRY(gn_buf_printf(out, " -l %s", o->name));
            }
            if (o->kind == GN_CLI_CHOICE) {
                GN_TRY(gn_buf_puts(out, " -x -a '"));
                GN_TRY(put_choices(out, o->choices));
                GN_TRY(gn_buf_putc(out, '\''));
            } else if (o->kind != GN_CLI_FLAG) {
                GN_TRY(gn_buf_puts(out, " -r"));
            }
            GN_TRY(gn_buf_puts(out, " -d '"));
            GN_TRY(put_plain(out, o->help));
            GN_TRY(gn_buf_puts(out, "'\n"));
        }
    }
    return GN_OK;
}

gn_status gn_cli_generate_completion(const char *shell, gn_buf *out)
{
    if (strcmp(shell, "bash") == 0) {
        return bash_completion(out);
    }
    if (strcmp(shell, "zsh") == 0) {
        return zsh_completion(out);
    }
    if (strcmp(shell, "fish") == 0) {
        return fish_completion(out);
    }
    return gn_base_fail(GN_E_ARG, "found the shell \"%s\", expected bash, zsh or fish", shell);
}
