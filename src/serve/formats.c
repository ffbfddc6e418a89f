/* A list of at most MOST entries, the last used first. Compiling is done without the lock: two threads that ask for
 * the same at the same time compile it twice, and the second one's is kept. */
#include "serve/formats.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

#define MOST           64
#define MOST_KEY_BYTES (256u << 10) /* longer texts are compiled each time */

typedef struct entry {
    struct entry *next;
    gn_chat_format format;
    bool ordered;
    char *text;
    size_t len;
    gn_grammar *grammar;
} entry;

struct gn_formats {
    pthread_mutex_t lock;
    entry *first;
    size_t n;
};

gn_status gn_formats_create(gn_formats **out)
{
    gn_formats *formats = gn_calloc(1, sizeof *formats);
    if (formats == NULL) {
        return gn_alloc_failed();
    }
    (void)pthread_mutex_init(&formats->lock, NULL);
    *out = formats;
    return GN_OK;
}

static void free_entry(entry *e)
{
    gn_grammar_release(e->grammar);
    gn_free(e->text);
    gn_free(e);
}

void gn_formats_destroy(gn_formats *formats)
{
    if (formats == NULL) {
        return;
    }
    while (formats->first != NULL) {
        entry *e = formats->first;
        formats->first = e->next;
        free_entry(e);
    }
    (void)pthread_mutex_destroy(&formats->lock);
    gn_free(formats);
}

static gn_grammar *find(gn_formats *formats, gn_chat_format format, const char *text, size_t len,
                        bool ordered)
{
    gn_grammar *found = NULL;
    (void)pthread_mutex_lock(&formats->lock);
    for (entry **at = &formats->first; *at != NULL; at = &(*at)->next) {
        entry *e = *at;
        if (e->format == format && e->ordered == ordered && e->len == len &&
            memcmp(e->text, text, len) == 0) {
            *at = e->next;
            e->next = formats->first;
            formats->first = e;
            found = gn_grammar_ref(e->grammar);
            break;
        }
    }
    (void)pthread_mutex_unlock(&formats->lock);
    return found;
}

/* Keep it; without memory for that it is compiled again the next time. */
static void keep(gn_formats *formats, gn_chat_format format, const char *text, size_t len,
                 bool ordered, gn_grammar *grammar)
{
    entry *e = len <= MOST_KEY_BYTES ? gn_calloc(1, sizeof *e) : NULL;
    char *copy = e != NULL ? gn_alloc(len + 1) : NULL;
    if (copy == NULL) {
        gn_free(e);
        return;
    }
    memcpy(copy, text, len);
    *e = (entry){.format = format, .ordered = ordered, .text = copy, .len = len};
    e->grammar = gn_grammar_ref(grammar);
    entry *last = NULL;
    (void)pthread_mutex_lock(&formats->lock);
    e->next = formats->first;
    formats->first = e;
    if (++formats->n > MOST) {
        entry **at = &formats->first;
        while ((*at)->next != NULL) {
            at = &(*at)->next;
        }
        last = *at;
        *at = NULL;
        formats->n--;
    }
    (void)pthread_mutex_unlock(&formats->lock);
    if (last != NULL) {
        free_entry(last);
    }
}

/* --- choices: a GBNF of one rule --- */

static gn_status put_literal(gn_buf *out, const char *s, size_t len)
{
    GN_TRY(gn_buf_putc(out, '"'));
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\') {
            GN_TRY(gn_buf_putc(out, '\\'));
        }
        if (c < ' ') {
            GN_TRY(gn_buf_printf(out, "\\x%02X", c));
        } else {
            GN_TRY(gn_buf_putc(out, (char)c));
        }
    }
    return gn_buf_putc(out, '"');
}

static gn_status put_choices(gn_buf *out, const char *text, size_t len)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *json = NULL;
    gn_status status = gn_base_json_parse(&arena, text, len, &json, NULL);
    if (status == GN_OK && (json->type != GN_JSON_ARRAY || json->len == 0)) {
        status = gn_base_fail(GN_E_ARG, "expected an array of at least one string");
    }
    if (status == GN_OK) {
        status = gn_buf_puts(out, "root ::= ");
    }
    for (const gn_json *c = status == GN_OK ? json->first : NULL; c != NULL && status == GN_OK;
         c = c->next) {
        status = c->type == GN_JSON_STRING && c->len > 0
                     ? put_literal(out, c->text, c->len)
                     : gn_base_fail(GN_E_ARG, "expected strings that are not empty");
        if (status == GN_OK && c->next != NULL) {
            status = gn_buf_puts(out, " | ");
        }
    }
    gn_arena_fini(&arena);
    return status;
}

static gn_status compile_choices(const char *text, size_t len, gn_grammar **out)
{
    gn_buf gbnf = {0};
    gn_status status = put_choices(&gbnf, text, len);
    if (status == GN_OK) {
        status = gn_grammar_from_gbnf(gbnf.data, gbnf.len, out);
    }
    gn_buf_fini(&gbnf);
    return status;
}

gn_status gn_formats_get(gn_formats *formats, gn_chat_format format, const char *text, size_t len,
                         bool ordered, gn_grammar **out, char **pointer)
{
    static const char object[] = "{\"type\":\"object\"}";
    *pointer = NULL;
    if (format == GN_FORMAT_JSON) {
        text = object;
        len = sizeof object - 1;
        format = GN_FORMAT_SCHEMA;
    }
    *out = find(formats, format, text, len, ordered);
    if (*out != NULL) {
        return GN_OK;
    }
    gn_schema_options options = {.ordered = ordered};
    gn_status status = GN_E_ARG;
    switch (format) {
    case GN_FORMAT_SCHEMA:
        status = gn_grammar_from_schema(text, len, &options, out, pointer);
        break;
    case GN_FORMAT_REGEX: status = gn_grammar_from_regex(text, len, out); break;
    case GN_FORMAT_GBNF: status = gn_grammar_from_gbnf(text, len, out); break;
    case GN_FORMAT_CHOICE: status = compile_choices(text, len, out); break;
    case GN_FORMAT_TEXT:
    case GN_FORMAT_JSON: break;
    }
    if (status == GN_OK) {
        keep(formats, format, text, len, ordered, *out);
    }
    return status;
}

/* GN_FORMAT_TEXT has no grammar of its own, so these are told apart from all others. */
gn_grammar *gn_formats_find(gn_formats *formats, const char *text, size_t len)
{
    return find(formats, GN_FORMAT_TEXT, text, len, false);
}

void gn_formats_keep(gn_formats *formats, const char *text, size_t len, gn_grammar *grammar)
{
    keep(formats, GN_FORMAT_TEXT, text, len, false, grammar);
}
