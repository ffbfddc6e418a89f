/* The program `ganglion`: finds the command, lets the table-driven parser read its options, runs it, and
 * turns the status into one line and an exit code. */
#include "base/alloc.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "ganglion/model.h"
#include "os/map.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const gn_cli_command *const gn_cli_commands[] = {
    &gn_cli_cmd_run,      &gn_cli_cmd_serve, &gn_cli_cmd_pull,     &gn_cli_cmd_inspect,
    &gn_cli_cmd_tokenize, &gn_cli_cmd_embed, &gn_cli_cmd_template, &gn_cli_cmd_logits,
    &gn_cli_cmd_eval,     &gn_cli_cmd_bench, &gn_cli_cmd_grammar,  &gn_cli_cmd_plan,
};
const size_t gn_cli_n_commands = GN_COUNTOF(gn_cli_commands);

static gn_status put_overview(gn_buf *out)
{
    GN_TRY(gn_buf_puts(out, "ganglion: run language models on the hardware you own\n\n"
                            "Usage: ganglion COMMAND [options]\n\nCommands:\n"));
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        GN_TRY(gn_buf_printf(out, "  %-10s %s\n", gn_cli_commands[i]->name,
                             gn_cli_commands[i]->summary));
    }
    return gn_buf_puts(out,
                       "\n`ganglion COMMAND --help` shows a command's options with an example.\n"
                       "`ganglion --version` shows version and commit.\n"
                       "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input file,\n"
                       "            4 out of memory, 5 unavailable.\n");
}

static int print(const char *command, gn_status status, gn_buf *text, FILE *to)
{
    if (status == GN_OK) {
        (void)fwrite(text->data, 1, text->len, to);
        status = gn_cli_flush();
    }
    gn_buf_fini(text);
    return gn_cli_report(command, status);
}

static int print_overview(FILE *to)
{
    gn_buf text = {0};
    gn_status status = put_overview(&text);
    return print("help", status, &text, to);
}

static int print_help(const gn_cli_command *command)
{
    gn_buf text = {0};
    gn_status status = gn_cli_args_help(command, &text);
    return print(command->name, status, &text, stdout);
}

static const gn_cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        if (strcmp(gn_cli_commands[i]->name, name) == 0) {
            return gn_cli_commands[i];
        }
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[GN_COUNTOF(gn_cli_commands)];
    for (size_t i = 0; i < gn_cli_n_commands; i++) {
        names[i] = gn_cli_commands[i]->name;
    }
    const char *near = gn_cli_args_nearest(name, names, gn_cli_n_commands);
    gn_status status = near != NULL
                           ? gn_base_fail(GN_E_ARG, "unknown command, did you mean `%s`?", near)
                           : gn_base_fail(GN_E_ARG, "unknown command, `ganglion --help` lists "
                                                    "those there are");
    /* The name goes through a message too, so that its control characters are escaped. */
    (void)gn_base_fail_prefix(status, "%s: ", name);
    (void)fprintf(stderr, "ganglion: %s\n", gn_error_message());
    return gn_cli_exit_code(status);
}

static int run_command(const gn_cli_command *command, int argc, char **argv)
{
    void *options = gn_calloc(1, command->options_bytes);
    if (options == NULL) {
        return gn_cli_report(command->name, gn_alloc_failed());
    }
    gn_cli_list args;
    bool help;
    int code;
    gn_status status = gn_cli_args_parse(command, argc, argv, options, &args, &help);
    if (status == GN_OK && help) {
        code = print_help(command);
    } else {
        if (status == GN_OK) {
            status = command->run(options, &args);
            gn_status flushed = status == GN_OK ? gn_cli_flush() : GN_OK;
            status = status == GN_OK ? flushed : status;
        }
        /* What was printed before a failure stays in front of its line. */
        (void)fflush(stdout);
        code = gn_cli_report(command->name, status);
    }
    gn_cli_args_fini(command, options, &args);
    gn_free(options);
    return code;
}

/* `ganglion generate man [COMMAND] | completion SHELL`: used by the build, not shown in the overview. */
static int generate(int argc, char **argv)
{
    gn_buf text = {0};
    gn_status status;
    if (argc >= 1 && strcmp(argv[0], "man") == 0) {
        const gn_cli_command *command = argc >= 2 ? find_command(argv[1]) : NULL;
        status = argc >= 2 && command == NULL
                     ? gn_base_fail(GN_E_ARG, "man: unknown command %s", argv[1])
                     : gn_cli_generate_man(command, &text);
    } else if (argc >= 2 && strcmp(argv[0], "completion") == 0) {
        status = gn_cli_generate_completion(argv[1], &text);
    } else {
        status = gn_base_fail(GN_E_ARG, "expected: man [COMMAND], or completion bash|zsh|fish");
    }
    return print("generate", status, &text, stdout);
}

/* A closed standard stream would hand its number to the next file opened, a download for one. */
static bool open_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0) {
        return false;
    }
    (void)close(fd);
    return true;
}

/* What the library has to say, one line each. */
static void print_log(void *ctx, const char *line)
{
    (void)ctx;
    (void)fprintf(stderr, "ganglion: %s\n", line);
}

int main(int argc, char **argv)
{
    if (!open_standard_streams()) {
        return gn_cli_exit_code(GN_E_UNAVAILABLE);
    }
    gn_set_log(print_log, NULL);
    /* A file past the size limit of this process is a failed write like any other. */
    (void)signal(SIGXFSZ, SIG_IGN);
    /* SIGPIPE keeps its default: a closed reader ends the program as it ends any filter. */
    gn_os_guard_maps("ganglion", 3);
    if (argc < 2) {
        (void)print_overview(stderr);
        return gn_cli_exit_code(GN_E_ARG);
    }
    const char *name = argv[1];
    bool is_help =
        strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (is_help && argc == 2) {
        return print_overview(stdout);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        (void)printf("ganglion %s (%s)\n", gn_version(), gn_version_commit());
        return gn_cli_report("--version", gn_cli_flush());
    }
    if (strcmp(name, "generate") == 0) {
        return generate(argc - 2, argv + 2);
    }
    const char *wanted = is_help ? argv[2] : name;
    const gn_cli_command *command = find_command(wanted);
    if (command == NULL) {
        return unknown_command(wanted);
    }
    return is_help ? print_help(command) : run_command(command, argc - 2, argv + 2);
}
