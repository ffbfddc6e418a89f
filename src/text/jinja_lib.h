/* What templates can call: filters, tests, global functions, and methods and attributes of values. The
 * names and their meaning are those of Jinja 3.1, Python's str, list, tuple and dict, and the functions that
 * transformers adds. */
#ifndef GN_TEXT_JINJA_LIB_H
#define GN_TEXT_JINJA_LIB_H

#include "text/jinja_value.h"

typedef struct gn_jfilter {
    const char *name;
    gn_status (*apply)(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out);
} gn_jfilter;

typedef struct gn_jtest {
    const char *name;
    gn_status (*apply)(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out);
} gn_jtest;

/* NULL where there is none of that name. */
const gn_jfilter *gn_jinja_find_filter(const char *name, size_t len);
const gn_jtest *gn_jinja_find_test(const char *name, size_t len);
const gn_jfunc *gn_jinja_find_global(const char *name, size_t len);

/* Filters that work on sequences, and those that work on text and numbers: a table each, which ends with a
 * row without a name. */
extern const gn_jfilter GN_JINJA_SEQ_FILTERS[];
extern const gn_jfilter GN_JINJA_TEXT_FILTERS[];

/* obj.name and obj[key], as the sandbox gives them: a missing one is undefined, a look into an undefined
 * value is an error. */
GN_MUST_USE gn_status gn_jinja_getattr(gn_jrun *run, gn_jval obj, const gn_jstr *name,
                                       gn_jval *out);
GN_MUST_USE gn_status gn_jinja_getitem(gn_jrun *run, gn_jval obj, gn_jval key, gn_jval *out);
/* obj[start:stop:step]; an absent part is none. */
GN_MUST_USE gn_status gn_jinja_slice(gn_jrun *run, gn_jval obj, const gn_jval part[3],
                                     gn_jval *out);

/* Python attributes of obj only (methods, loop.index …), no items. *found false: it has none. */
GN_MUST_USE gn_status gn_jinja_attribute(gn_jrun *run, gn_jval obj, const gn_jstr *name,
                                         gn_jval *out, bool *found);
/* Methods of str by name, bound to self. */
GN_MUST_USE gn_status gn_jinja_str_attribute(gn_jrun *run, gn_jval self, const gn_jstr *name,
                                             gn_jval *out, bool *found);
/* Those of them that ask: isalpha() and its kin. */
GN_MUST_USE gn_status gn_jinja_str_question(gn_jrun *run, gn_jval self, const gn_jstr *name,
                                            gn_jval *out, bool *found);
GN_MUST_USE gn_status gn_jinja_bind_method(gn_jrun *run, gn_jval self, const char *name,
                                           gn_status (*call)(gn_jrun *, gn_jval, const gn_jargs *,
                                                             gn_jval *),
                                           gn_jval *out);
/* Attributes of the loop variable. */
GN_MUST_USE gn_status gn_jinja_loop_attribute(gn_jrun *run, gn_jloop *loop, const gn_jstr *name,
                                              gn_jval *out, bool *found);

/* a OP b for + - * / // % **; op is Python's sign, which errors show. */
GN_MUST_USE gn_status gn_jinja_binary(gn_jrun *run, const char *op, gn_jval a, gn_jval b,
                                      gn_jval *out);
GN_MUST_USE gn_status gn_jinja_negate(gn_jrun *run, gn_jval a, gn_jval *out);
/* `needle in haystack` */
GN_MUST_USE gn_status gn_jinja_contains(gn_jrun *run, gn_jval haystack, gn_jval needle, bool *out);

/* Call anything callable: macros, functions, methods, a recursive loop. */
GN_MUST_USE gn_status gn_jinja_call(gn_jrun *run, gn_jval callee, const gn_jargs *args,
                                    gn_jval *out);

/* ---- text of values ---- */

/* Append str(v) or repr(v) to run->out. */
GN_MUST_USE gn_status gn_jinja_write(gn_jrun *run, gn_jval v);
GN_MUST_USE gn_status gn_jinja_write_repr(gn_jrun *run, gn_jval v);
GN_MUST_USE gn_status gn_jinja_write_bytes(gn_jrun *run, const char *s, size_t len);
/* str(v) as a plain string value. */
GN_MUST_USE gn_status gn_jinja_to_str(gn_jrun *run, gn_jval v, const gn_jstr **out);
/* The same, but markup stays markup. */
GN_MUST_USE gn_status gn_jinja_soft_str(gn_jrun *run, gn_jval v, gn_jval *out);
/* Python's repr of a float, at most 32 bytes; returns its length. */
size_t gn_jinja_float_repr(double f, char out[32]);
/* HTML escapes of s, as markup. */
GN_MUST_USE gn_status gn_jinja_escape(gn_jrun *run, gn_jval v, gn_jval *out);

/* json.dumps() to run->out. */
typedef struct gn_jdump {
    bool ascii;
    bool sort_keys;
    const gn_jstr *indent; /* NULL: one line */
    const gn_jstr *item_separator;
    const gn_jstr *key_separator;
} gn_jdump;
GN_MUST_USE gn_status gn_jinja_dump(gn_jrun *run, gn_jval v, const gn_jdump *how, unsigned level);
extern const gn_jfilter GN_JINJA_JSON_FILTERS[];

/* `format % args`, format.format(args). */
GN_MUST_USE gn_status gn_jinja_percent(gn_jrun *run, gn_jval format, gn_jval args, gn_jval *out);
GN_MUST_USE gn_status gn_jinja_str_format(gn_jrun *run, gn_jval format, const gn_jargs *args,
                                          gn_jval *out);

/* ---- pieces that filters and methods share ---- */

typedef enum gn_jcase { GN_J_LOWER, GN_J_UPPER, GN_J_TITLE, GN_J_FOLD } gn_jcase;
/* Append the full case mapping of cp to run->out. */
GN_MUST_USE gn_status gn_jinja_write_case(gn_jrun *run, uint32_t cp, gn_jcase how);
/* s.lower() or s.upper(), to run->out. */
GN_MUST_USE gn_status gn_jinja_write_cased(gn_jrun *run, const char *s, size_t len, gn_jcase how);
bool gn_jinja_is_lower(uint32_t cp);
bool gn_jinja_is_upper(uint32_t cp);
bool gn_jinja_is_titlecase(uint32_t cp);
bool gn_jinja_is_printable(uint32_t cp);

/* Strip the characters of `chars` (NULL: whitespace) from the ends that sides names (1 left, 2 right). */
void gn_jinja_strip(const char **s, size_t *len, const gn_jstr *chars, int sides);
/* s with the first max (negative: all) occurrences of `from` replaced. */
GN_MUST_USE gn_status gn_jinja_replace(gn_jrun *run, const gn_jstr *s, const gn_jstr *from,
                                       const gn_jstr *to, int64_t max, gn_jval *out);
/* s.splitlines(): how long the line at s[0 .. len) is and how long its end behind it is. */
void gn_jinja_line(const char *s, size_t len, size_t *line, size_t *end);
/* Byte offset of code point k (≤ n_cp). */
size_t gn_jinja_cp_offset(const gn_jstr *s, size_t k);
/* str(text) to an integer or float by Python's int(text, base) and float(text); false: malformed. */
bool gn_jinja_parse_int(const gn_jstr *s, int base, int64_t *out, bool *overflow);
bool gn_jinja_parse_float(const gn_jstr *s, double *out);

/* The JSON text as a value. */
struct json_t;
GN_MUST_USE gn_status gn_jinja_from_json(gn_jrun *run, const struct json_t *json, gn_jval *out);

#endif
