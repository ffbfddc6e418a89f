/* From template text to tokens, by the rules of Jinja 3.1's lexer with trim_blocks and lstrip_blocks on:
 * whitespace control, raw blocks, comments and newlines are settled here, so the parser sees only
 * text to print, tag borders, and the tokens inside tags. */
#ifndef GN_TEXT_JINJA_LEX_H
#define GN_TEXT_JINJA_LEX_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum gn_jtok {
    GN_JT_EOF,
    GN_JT_DATA,      /* text: as it is printed */
    GN_JT_VAR_BEGIN, /* {{ */
    GN_JT_VAR_END,
    GN_JT_BLOCK_BEGIN, /* {% */
    GN_JT_BLOCK_END,
    GN_JT_NAME,
    GN_JT_STRING, /* text: unescaped */
    GN_JT_INT,
    GN_JT_FLOAT,
    GN_JT_ADD,
    GN_JT_SUB,
    GN_JT_MUL,
    GN_JT_DIV,
    GN_JT_FLOORDIV,
    GN_JT_MOD,
    GN_JT_POW,
    GN_JT_TILDE,
    GN_JT_EQ,
    GN_JT_NE,
    GN_JT_LT,
    GN_JT_LE,
    GN_JT_GT,
    GN_JT_GE,
    GN_JT_ASSIGN,
    GN_JT_DOT,
    GN_JT_COMMA,
    GN_JT_COLON,
    GN_JT_SEMICOLON,
    GN_JT_PIPE,
    GN_JT_LPAREN,
    GN_JT_RPAREN,
    GN_JT_LBRACKET,
    GN_JT_RBRACKET,
    GN_JT_LBRACE,
    GN_JT_RBRACE,
} gn_jtok;

typedef struct gn_jtoken {
    gn_jtok type;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, in bytes */
    const char *text;
    size_t len;
    int64_t i;
    double f;
} gn_jtoken;

/* Tokens of source[0 .. len), which must be valid UTF-8: a heap array (gn_free), its texts in `arena`;
 * the last one is GN_JT_EOF. GN_E_FORMAT: "line L, column C: …". */
GN_MUST_USE gn_status gn_jinja_lex(gn_arena *arena, const char *source, size_t len,
                                   gn_jtoken **tokens, size_t *n_tokens);

/* What a token looks like in an error. */
const char *gn_jinja_token_name(gn_jtok type);

/* Is cp whitespace to Python's str.isspace()? */
bool gn_jinja_is_space(uint32_t cp);

/* Digits of a float, "12.5e3", to the nearest double, whatever the locale. */
double gn_jinja_parse_double(const char *s, size_t len);

#endif
