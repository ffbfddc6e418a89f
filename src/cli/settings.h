/* How answers are generated: the options of `run`, the names of /set, and the "settings" of a saved chat
 * are one table. One thread. */
#ifndef GN_CLI_SETTINGS_H
#define GN_CLI_SETTINGS_H

#include "cli/args.h"
#include "ganglion/sample.h"

#include <jansson.h>

typedef struct gn_cli_settings {
    int64_t max_tokens; /* -1: until the end of the answer or of the context */
    double temperature;
    int64_t seed; /* -1: a new one for each answer */
    int64_t top_k;
    double top_p;
    double min_p;
    double typical_p;
    double top_n_sigma;
    double xtc_probability;
    double xtc_threshold;
    double repetition_penalty;
    double presence_penalty;
    double frequency_penalty;
    int64_t penalty_last_n;
    double dry_multiplier;
    double dry_base;
    int64_t dry_allowed_length;
    int64_t dry_last_n;
    double mirostat_tau;
    double mirostat_eta;
    int64_t min_tokens;
    bool ignore_eos;
} gn_cli_settings;

#define GN_CLI_SETTINGS_DEFAULTS                                                                   \
    {                                                                                              \
        .max_tokens = -1, .temperature = 0.8, .seed = -1, .top_k = 40, .top_p = 0.95,              \
        .min_p = 0.05, .typical_p = 1, .xtc_threshold = 0.1, .repetition_penalty = 1,              \
        .penalty_last_n = 64, .dry_base = 1.75, .dry_allowed_length = 2, .dry_last_n = -1,         \
        .mirostat_eta = 0.1                                                                        \
    }

/* Rows of an option table; `T` is the options struct, which has a gn_cli_settings named `settings`. The
 * exact ranges are gn_sampler_create()'s: the rows only keep values inside their types. */
#define GN_CLI_SETTING_REAL_(T, member, option, rare, text)                                        \
    {                                                                                              \
        .name = (option), .kind = GN_CLI_REAL, .offset = offsetof(T, settings.member),             \
        .value = "X", .help = (text), .min = -1e30, .max = 1e30, .more = (rare)                    \
    }
#define GN_CLI_SETTING_INT_(T, ch, member, option, low, high, rare, text)                          \
    {                                                                                              \
        .letter = (ch), .name = (option), .kind = GN_CLI_INT,                                      \
        .offset = offsetof(T, settings.member), .value = "N", .help = (text), .min = (low),        \
        .max = (high), .more = (rare)                                                              \
    }

/* What most people need, then the rest, which --help leaves to the man page. */
#define GN_CLI_SETTINGS_BASIC(T)                                                                   \
    GN_CLI_SETTING_INT_(T, 'n', max_tokens, "max-tokens", -1, 2147483647, false,                   \
                        "Most tokens to generate; default: -1, until the answer ends."),           \
        GN_CLI_SETTING_REAL_(T, temperature, "temp", false,                                        \
                             "Temperature; 0 takes the most probable token; default: 0.8."),       \
        GN_CLI_SETTING_INT_(T, 0, seed, "seed", -1, 9007199254740992.0, false,                     \
                            "The same seed gives the same text; default: -1, a new one."),         \
        GN_CLI_SETTING_INT_(T, 0, top_k, "top-k", 0, 2147483647, false,                            \
                            "Keep the K most probable tokens; 0: off; default: 40."),              \
        GN_CLI_SETTING_REAL_(T, top_p, "top-p", false,                                             \
                             "Keep the most probable tokens up to this mass; default: 0.95."),     \
        GN_CLI_SETTING_REAL_(                                                                      \
            T, min_p, "min-p", false,                                                              \
            "Keep tokens at least this probable against the best; default: 0.05."),                \
        GN_CLI_SETTING_REAL_(T, repetition_penalty, "repeat-penalty", false,                       \
                             "Divide the logits of recent tokens; 1: off; default: 1.")

#define GN_CLI_SETTINGS_MORE(T)                                                                    \
    GN_CLI_SETTING_REAL_(T, presence_penalty, "presence-penalty", true,                            \
                         "Take this from the logit of each recent token; default: 0."),            \
        GN_CLI_SETTING_REAL_(T, frequency_penalty, "frequency-penalty", true,                      \
                             "Take this for each time a token is recent; default: 0."),            \
        GN_CLI_SETTING_INT_(T, 0, penalty_last_n, "repeat-last-n", -1, 2147483647, true,           \
                            "Tokens that count as recent; -1: all; default: 64."),                 \
        GN_CLI_SETTING_REAL_(T, typical_p, "typical-p", true,                                      \
                             "Keep the most typical tokens up to this mass; 1: off (default)."),   \
        GN_CLI_SETTING_REAL_(                                                                      \
            T, top_n_sigma, "top-n-sigma", true,                                                   \
            "Keep logits within this many standard deviations of the best; 0: off (default)."),    \
        GN_CLI_SETTING_REAL_(T, xtc_probability, "xtc-probability", true,                          \
                             "How often XTC removes all top choices but one; default: 0."),        \
        GN_CLI_SETTING_REAL_(T, xtc_threshold, "xtc-threshold", true,                              \
                             "Probability that makes a top choice for XTC; default: 0.1."),        \
        GN_CLI_SETTING_REAL_(T, dry_multiplier, "dry-multiplier", true,                            \
                             "DRY: size of the penalty on repeated sequences; 0: off (default)."), \
        GN_CLI_SETTING_REAL_(T, dry_base, "dry-base", true,                                        \
                             "DRY: growth of the penalty per token repeated; default: 1.75."),     \
        GN_CLI_SETTING_INT_(T, 0, dry_allowed_length, "dry-allowed-length", 1, 2147483647, true,   \
                            "DRY: longest repetition without a penalty; default: 2."),             \
        GN_CLI_SETTING_INT_(T, 0, dry_last_n, "dry-last-n", -1, 2147483647, true,                  \
                            "DRY: tokens looked back at; -1: all (default)."),                     \
        GN_CLI_SETTING_REAL_(T, mirostat_tau, "mirostat-tau", true,                                \
                             "Mirostat 2: target surprise in bits; replaces the filters above; "   \
                             "0: off (default)."),                                                 \
        GN_CLI_SETTING_REAL_(T, mirostat_eta, "mirostat-eta", true,                                \
                             "Mirostat 2: learning rate; default: 0.1."),                          \
        GN_CLI_SETTING_INT_(T, 0, min_tokens, "min-tokens", 0, 2147483647, true,                   \
                            "Tokens before the answer may end; default: 0."),                      \
    {                                                                                              \
        .name = "ignore-eos", .kind = GN_CLI_FLAG, .more = true,                                   \
        .offset = offsetof(T, settings.ignore_eos), .help = "Never let the answer end by itself."  \
    }

/* Sampling parameters without ids (bias, end tokens, breakers) and without a seed. */
gn_sample_params gn_cli_settings_params(const gn_cli_settings *settings);

/* GN_E_ARG where gn_sampler_create() refuses them. */
GN_MUST_USE gn_status gn_cli_settings_check(const gn_cli_settings *settings);

/* Set one by its option name ("temp", "ignore-eos" with true or false). The settings are changed only
 * where all of them are valid afterwards. GN_E_ARG. */
GN_MUST_USE gn_status gn_cli_settings_set(gn_cli_settings *settings, const char *name,
                                          const char *value);

/* One "name value" line each. */
GN_MUST_USE gn_status gn_cli_settings_list(const gn_cli_settings *settings, gn_buf *out);

/* As a JSON object, and back: names that are absent keep their value, unknown ones are GN_E_FORMAT. */
GN_MUST_USE gn_status gn_cli_settings_to_json(const gn_cli_settings *settings, json_t **out);
GN_MUST_USE gn_status gn_cli_settings_from_json(gn_cli_settings *settings, const json_t *object);

#endif
