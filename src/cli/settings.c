/* Settings by name. A value is read by the option parser itself, as if it stood on the command line, so
 * that /set and saved chats accept and refuse just what the options do. */
#include "cli/settings.h"

#include "base/alloc.h"

#include <string.h>

typedef struct holder {
    gn_cli_settings settings;
} holder;

static const gn_cli_option rows[] = {
    GN_CLI_SETTINGS_BASIC(holder),
    GN_CLI_SETTINGS_MORE(holder),
};

gn_sample_params gn_cli_settings_params(const gn_cli_settings *s)
{
    gn_sample_params p = gn_sample_defaults();
    p.temperature = (float)s->temperature;
    p.top_k = (int32_t)s->top_k;
    p.top_p = (float)s->top_p;
    p.min_p = (float)s->min_p;
    p.typical_p = (float)s->typical_p;
    p.top_n_sigma = (float)s->top_n_sigma;
    p.xtc_probability = (float)s->xtc_probability;
    p.xtc_threshold = (float)s->xtc_threshold;
    p.repetition_penalty = (float)s->repetition_penalty;
    p.presence_penalty = (float)s->presence_penalty;
    p.frequency_penalty = (float)s->frequency_penalty;
    p.penalty_last_n = (int32_t)s->penalty_last_n;
    p.dry_multiplier = (float)s->dry_multiplier;
    p.dry_base = (float)s->dry_base;
    p.dry_allowed_length = (int32_t)s->dry_allowed_length;
    p.dry_last_n = (int32_t)s->dry_last_n;
    p.mirostat_tau = (float)s->mirostat_tau;
    p.mirostat_eta = (float)s->mirostat_eta;
    p.min_tokens = (int32_t)s->min_tokens;
    p.ignore_eos = s->ignore_eos;
    return p;
}

gn_status gn_cli_settings_check(const gn_cli_settings *settings)
{
    gn_sample_params params = gn_cli_settings_params(settings);
    gn_sampler *sampler = NULL;
    GN_TRY(gn_sampler_create(&params, 1, &sampler));
    gn_sampler_destroy(sampler);
    return GN_OK;
}

static const gn_cli_option *find(const char *name)
{
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static gn_status fail_unknown(const char *name)
{
    const char *names[GN_COUNTOF(rows)];
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        names[i] = rows[i].name;
    }
    const char *near = gn_cli_args_nearest(name, names, GN_COUNTOF(rows));
    if (near != NULL) {
        return gn_base_fail(GN_E_ARG, "unknown setting \"%s\", did you mean %s?", name, near);
    }
    return gn_base_fail(GN_E_ARG, "unknown setting \"%s\"", name);
}

/* Let the option parser read "--name value" into a copy of the settings. */
static gn_status parse(gn_cli_settings *settings, const char *name, const char *value)
{
    holder old = {.settings = *settings};
    const gn_cli_command command = {.name = "run",
                                    .usage = "",
                                    .options = rows,
                                    .n_options = GN_COUNTOF(rows),
                                    .options_bytes = sizeof old,
                                    .defaults = &old};
    gn_buf option = {0};
    gn_buf text = {0};
    gn_cli_list args = {0};
    holder parsed;
    bool help = false;
    gn_status status = gn_buf_printf(&option, "--%s", name);
    if (status == GN_OK) {
        status = gn_buf_puts(&text, value);
    }
    if (status == GN_OK) {
        char *argv[] = {option.data, text.data};
        status = gn_cli_args_parse(&command, 2, argv, &parsed, &args, &help);
        gn_cli_args_fini(&command, &parsed, &args);
    }
    if (status == GN_OK) {
        *settings = parsed.settings;
    }
    gn_buf_fini(&text);
    gn_buf_fini(&option);
    return status;
}

gn_status gn_cli_settings_set(gn_cli_settings *settings, const char *name, const char *value)
{
    const gn_cli_option *row = find(name);
    if (row == NULL) {
        return fail_unknown(name);
    }
    gn_cli_settings changed = *settings;
    if (row->kind == GN_CLI_FLAG) {
        bool on = strcmp(value, "true") == 0;
        GN_REQUIRE(on || strcmp(value, "false") == 0, GN_E_ARG,
                   "%s: found \"%s\", expected true or false", name, value);
        changed.ignore_eos = on;
    } else {
        GN_TRY(parse(&changed, name, value));
    }
    GN_TRY(gn_cli_settings_check(&changed));
    *settings = changed;
    return GN_OK;
}

static gn_status put_value(const gn_cli_settings *settings, const gn_cli_option *row, gn_buf *out)
{
    const holder at = {.settings = *settings};
    const char *value = (const char *)&at + row->offset;
    if (row->kind == GN_CLI_FLAG) {
        return gn_buf_puts(out, *(const bool *)value ? "true" : "false");
    }
    if (row->kind == GN_CLI_INT) {
        return gn_buf_printf(out, "%lld", (long long)*(const int64_t *)(const void *)value);
    }
    return gn_buf_printf(out, "%.15g", *(const double *)(const void *)value);
}

gn_status gn_cli_settings_list(const gn_cli_settings *settings, gn_buf *out)
{
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        GN_TRY(gn_buf_printf(out, "  %-20s ", rows[i].name));
        GN_TRY(put_value(settings, &rows[i], out));
        GN_TRY(gn_buf_putc(out, '\n'));
    }
    return GN_OK;
}

gn_status gn_cli_settings_to_json(const gn_cli_settings *settings, json_t **out)
{
    json_t *object = json_object();
    gn_buf text = {0};
    gn_status status = object != NULL ? GN_OK : gn_alloc_failed();
    for (size_t i = 0; status == GN_OK && i < GN_COUNTOF(rows); i++) {
        gn_buf_clear(&text);
        status = put_value(settings, &rows[i], &text);
        if (status == GN_OK) {
            json_t *value = json_loadb(text.data, text.len, JSON_DECODE_ANY, NULL);
            if (json_object_set_new(object, rows[i].name, value) != 0) {
                status = gn_alloc_failed();
            }
        }
    }
    gn_buf_fini(&text);
    if (status != GN_OK) {
        json_decref(object);
        return status;
    }
    *out = object;
    return GN_OK;
}

gn_status gn_cli_settings_from_json(gn_cli_settings *settings, const json_t *object)
{
    GN_REQUIRE(json_is_object(object), GN_E_FORMAT, "settings: expected an object");
    gn_cli_settings changed = *settings;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        GN_REQUIRE(json_is_number(value) || json_is_boolean(value), GN_E_FORMAT,
                   "settings: \"%s\": expected a number, true or false", name);
        char text[64];
        if (json_is_boolean(value)) {
            (void)snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
        } else if (json_is_integer(value)) {
            (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        } else {
            (void)snprintf(text, sizeof text, "%.17g", json_real_value(value));
        }
        gn_status status = gn_cli_settings_set(&changed, name, text);
        if (status != GN_OK) {
            return gn_base_fail_prefix(status == GN_E_ARG ? GN_E_FORMAT : status, "settings: ");
        }
    }
    *settings = changed;
    return GN_OK;
}
