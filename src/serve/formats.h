/* What an answer is held to, compiled: a model's few most recent grammars, so that agents which send the same schema
 * with every request pay for it once. Any thread. */
#ifndef GN_SERVE_FORMATS_H
#define GN_SERVE_FORMATS_H

#include "serve/chat.h"

typedef struct gn_formats gn_formats;

GN_MUST_USE gn_status gn_formats_create(gn_formats **out);
void gn_formats_destroy(gn_formats *formats); /* NULL is fine */

/* The grammar of a format other than GN_FORMAT_TEXT; *out: gn_grammar_release(). *pointer (gn_release()) as in
 * ganglion/grammar.h. Codes as there; GN_E_ARG: choices that are no array of strings. */
GN_MUST_USE gn_status gn_formats_get(gn_formats *formats, gn_chat_format format, const char *text,
                                     size_t len, bool ordered, gn_grammar **out, char **pointer);

/* Grammars that others compile, under a text that says what they are: a reference to one that is kept, or NULL; and
 * keep one more. */
gn_grammar *gn_formats_find(gn_formats *formats, const char *text, size_t len);
void gn_formats_keep(gn_formats *formats, const char *text, size_t len, gn_grammar *grammar);

#endif
