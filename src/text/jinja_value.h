/* Values of the Jinja interpreter, and the state of one rendering that they live in. A value is 16 bytes
 * and passed by copy; what it points to lies in the rendering's arena and is freed with it. Strings are
 * valid UTF-8 and never change; lists and dicts change only while they are built (the sandbox has no
 * method that alters one). One thread at a time.
 *
 * Functions that can fail record one line, "line L: …", by gn_jinja_fail(). */
#ifndef GN_TEXT_JINJA_VALUE_H
#define GN_TEXT_JINJA_VALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef enum gn_jtype {
    GN_J_UNDEFINED,
    GN_J_NONE,
    GN_J_BOOL,
    GN_J_INT,
    GN_J_FLOAT,
    GN_J_STRING,
    GN_J_LIST,
    GN_J_TUPLE,
    GN_J_DICT,
    GN_J_VIEW,      /* keys(), values() or items() of a dict */
    GN_J_NAMESPACE, /* a dict whose entries are attributes and may be set */
    GN_J_RANGE,
    GN_J_ITER,  /* what Python gives as a generator: true, without length, read once */
    GN_J_MACRO, /* a macro or the `caller` of a call block */
    GN_J_FUNC,  /* a global function */
    GN_J_METHOD,
    GN_J_LOOP,
    GN_J_CYCLER,
    GN_J_JOINER,
} gn_jtype;

/* Why a value is undefined: what the error says when it is used. */
typedef enum gn_jundef {
    GN_J_UNDEF_NAME,   /* name: the variable */
    GN_J_UNDEF_ATTR,   /* name: the attribute that an object of type `of` lacks */
    GN_J_UNDEF_ELEM,   /* an element that an object of type `of` lacks */
    GN_J_UNDEF_HINT,   /* name: the sentence */
    GN_J_UNDEF_UNSAFE, /* name: an attribute that the sandbox keeps away */
} gn_jundef;

typedef enum gn_jview { GN_J_KEYS, GN_J_VALUES, GN_J_ITEMS } gn_jview;

/* Bytes that several strings may share: appending to the string that ends at `used` writes behind it. */
typedef struct gn_jgrow {
    char *data;
    size_t used;
    size_t cap;
} gn_jgrow;

typedef struct gn_jstr {
    const char *data;
    size_t len;  /* bytes */
    size_t n_cp; /* code points */
    gn_jgrow *grow;
} gn_jstr;

typedef struct gn_jlist gn_jlist;
typedef struct gn_jdict gn_jdict;
typedef struct gn_jrange gn_jrange;
typedef struct gn_jiterable gn_jiterable;
typedef struct gn_jmacro gn_jmacro;
typedef struct gn_jfunc gn_jfunc;
typedef struct gn_jmethod gn_jmethod;
typedef struct gn_jloop gn_jloop;
typedef struct gn_jcycler gn_jcycler;

typedef struct gn_jval {
    uint8_t type; /* gn_jtype */
    uint8_t sub;  /* string: 1 is markup; undefined: gn_jundef; view: gn_jview; joiner, see there */
    uint8_t of;   /* undefined: the type of the object */
    union {
        bool b;
        int64_t i;
        double f;
        const gn_jstr *s;
        gn_jlist *list;
        gn_jdict *dict;
        const gn_jrange *range;
        gn_jiterable *iter;
        const gn_jmacro *macro;
        const gn_jfunc *func;
        const gn_jmethod *method;
        gn_jloop *loop;
        gn_jcycler *cycler;
    } u;
} gn_jval;

struct gn_jlist {
    gn_jval *items;
    size_t n;
    size_t cap;
};

typedef struct gn_jentry {
    gn_jval key;
    gn_jval value;
    uint64_t hash;
} gn_jentry;

struct gn_jdict { /* keeps the order of insertion */
    gn_jentry *entries;
    size_t n;
    size_t cap;
    uint32_t *index; /* [index_cap] entry + 1, or 0; absent while the dict is small */
    size_t index_cap;
};

struct gn_jrange {
    int64_t start;
    int64_t stop;
    int64_t step;
    int64_t n;
};

struct gn_jiterable {
    gn_jlist *list;
    size_t pos;
};

struct gn_jcycler { /* cycler() and joiner(): what they hold and where they stand */
    gn_jlist *items;
    size_t pos;
};

typedef struct gn_jkw {
    const gn_jstr *name;
    gn_jval value;
} gn_jkw;

typedef struct gn_jargs {
    gn_jval *pos;
    size_t n_pos;
    gn_jkw *kw;
    size_t n_kw;
} gn_jargs;

typedef struct gn_jframe gn_jframe;
typedef struct gn_jprogram gn_jprogram;

typedef struct gn_jrun {
    gn_arena arena;
    gn_status alloc_status; /* why the last allocation failed */
    gn_buf *out;            /* the output; a capture grows at its end and is cut off again */
    size_t out_base;        /* out->len when the rendering began */
    size_t max_output;
    uint64_t steps_left;
    unsigned depth; /* nested evaluations now running */
    uint32_t line;  /* of the node under evaluation */
    time_t now;
    const gn_jprogram *program;
    const gn_jval *globals; /* [program->n_names] value of each name outside all frames */
    gn_jframe *frame;       /* innermost */
    int flow;               /* break or continue on its way to the loop */
} gn_jrun;

struct gn_jfunc {
    const char *name;
    gn_status (*call)(gn_jrun *run, const gn_jargs *args, gn_jval *out);
};

struct gn_jmethod {
    gn_jval self;
    const char *name;
    gn_status (*call)(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out);
};

/* ---- the rendering: errors, steps, depth, memory ---- */

/* Evaluation nests no deeper than this; measured to stay below 2 MiB of stack with ASan. */
#define GN_JINJA_MAX_DEPTH 600u

gn_status gn_jinja_fail(gn_jrun *run, const char *fmt, ...) GN_PRINTF(2, 3) GN_COLD;
/* The same with GN_E_LIMIT. */
gn_status gn_jinja_fail_limit(gn_jrun *run, const char *fmt, ...) GN_PRINTF(2, 3) GN_COLD;
/* Using an undefined value: says why it is undefined. */
gn_status gn_jinja_fail_undefined(gn_jrun *run, gn_jval value) GN_COLD;

/* Count n steps; GN_E_LIMIT where the budget is spent. */
GN_MUST_USE gn_status gn_jinja_step(gn_jrun *run, uint64_t n);
/* Count the steps of work on `bytes` bytes. */
GN_MUST_USE gn_status gn_jinja_step_bytes(gn_jrun *run, size_t bytes);
/* Count one level of nesting; on success give it back by gn_jinja_leave(). */
GN_MUST_USE gn_status gn_jinja_enter(gn_jrun *run);
void gn_jinja_leave(gn_jrun *run);

/* Memory of the rendering, or NULL: return gn_jinja_alloc_failed() then. */
void *gn_jinja_alloc(gn_jrun *run, size_t n, size_t bytes);
gn_status gn_jinja_alloc_failed(gn_jrun *run) GN_COLD;

/* ---- making values ---- */

GN_INLINE gn_jval gn_jnone(void)
{
    return (gn_jval){.type = GN_J_NONE};
}

GN_INLINE gn_jval gn_jbool(bool b)
{
    return (gn_jval){.type = GN_J_BOOL, .u.b = b};
}

GN_INLINE gn_jval gn_jint(int64_t i)
{
    return (gn_jval){.type = GN_J_INT, .u.i = i};
}

GN_INLINE gn_jval gn_jfloat(double f)
{
    return (gn_jval){.type = GN_J_FLOAT, .u.f = f};
}

GN_INLINE gn_jval gn_jstring(const gn_jstr *s)
{
    return (gn_jval){.type = GN_J_STRING, .u.s = s};
}

GN_INLINE bool gn_jis_markup(gn_jval v)
{
    return v.type == GN_J_STRING && v.sub != 0;
}

GN_INLINE bool gn_jis_str(gn_jval v, const char *s, size_t len)
{
    return v.type == GN_J_STRING && v.u.s->len == len && __builtin_memcmp(v.u.s->data, s, len) == 0;
}

/* An undefined value whose use reports `hint`, static text. */
GN_MUST_USE gn_status gn_jinja_undefined_hint(gn_jrun *run, const char *hint, gn_jval *out);

size_t gn_jinja_count_cp(const char *s, size_t len);
/* A string in any arena; NULL on out of memory. */
const gn_jstr *gn_jinja_str_in(gn_arena *arena, const char *s, size_t len);
/* Copies s[0 .. len). */
GN_MUST_USE gn_status gn_jinja_str(gn_jrun *run, const char *s, size_t len, gn_jval *out);
/* Borrows s[0 .. len), which must outlive the rendering. */
GN_MUST_USE gn_status gn_jinja_str_view(gn_jrun *run, const char *s, size_t len, gn_jval *out);
/* Takes what stands in run->out from `mark` on and cuts it off there. */
GN_MUST_USE gn_status gn_jinja_str_captured(gn_jrun *run, size_t mark, gn_jval *out);
/* a followed by b; amortised O(len of b) where a is the string last appended to. */
GN_MUST_USE gn_status gn_jinja_concat(gn_jrun *run, const gn_jstr *a, const gn_jstr *b,
                                      gn_jval *out);

GN_MUST_USE gn_status gn_jinja_list_new(gn_jrun *run, gn_jtype type, size_t cap, gn_jval *out);
GN_MUST_USE gn_status gn_jinja_list_push(gn_jrun *run, gn_jlist *list, gn_jval v);
GN_MUST_USE gn_status gn_jinja_iter_new(gn_jrun *run, gn_jlist *list, gn_jval *out);
GN_MUST_USE gn_status gn_jinja_pair(gn_jrun *run, gn_jval a, gn_jval b, gn_jval *out);

/* type: GN_J_DICT or GN_J_NAMESPACE. */
GN_MUST_USE gn_status gn_jinja_dict_new(gn_jrun *run, gn_jtype type, size_t cap, gn_jval *out);
/* An unhashable key is an error. An existing key keeps its place. */
GN_MUST_USE gn_status gn_jinja_dict_set(gn_jrun *run, gn_jdict *dict, gn_jval key, gn_jval v);
/* *found stays NULL where the key is absent or cannot be a key. The pointer is good until the next set. */
GN_MUST_USE gn_status gn_jinja_dict_get(gn_jrun *run, const gn_jdict *dict, gn_jval key,
                                        const gn_jval **found);
const gn_jval *gn_jinja_dict_get_str(const gn_jdict *dict, const char *key, size_t len);
bool gn_jinja_hashable(gn_jval v);

/* ---- asking values ---- */

/* Python's name of the type: "str", "int" … */
const char *gn_jinja_type_name(gn_jtype type);
bool gn_jinja_truth(gn_jval v);
bool gn_jinja_is_number(gn_jval v); /* bool, int or float */
double gn_jinja_number(gn_jval v);
/* int or bool as an integer; false for anything else */
bool gn_jinja_as_int(gn_jval v, int64_t *out);
GN_MUST_USE gn_status gn_jinja_equal(gn_jrun *run, gn_jval a, gn_jval b, bool *out);
/* *out < 0, 0, > 0; an error where Python cannot order the two. A NaN gives 2, which is "none of these". */
GN_MUST_USE gn_status gn_jinja_compare(gn_jrun *run, gn_jval a, gn_jval b, const char *op,
                                       int *out);
/* len(v); an error where v has no length. */
GN_MUST_USE gn_status gn_jinja_length(gn_jrun *run, gn_jval v, size_t *out);
bool gn_jinja_has_length(gn_jval v);
bool gn_jinja_is_iterable(gn_jval v);
bool gn_jinja_is_callable(gn_jval v);

/* Walk over anything iterable, in Python's order. Steps are counted. */
typedef struct gn_jcursor {
    gn_jval over;
    size_t pos; /* item, or byte of a string */
} gn_jcursor;

GN_MUST_USE gn_status gn_jinja_iterate(gn_jrun *run, gn_jval v, gn_jcursor *out);
/* *more false: at the end. */
GN_MUST_USE gn_status gn_jinja_next(gn_jrun *run, gn_jcursor *cursor, gn_jval *out, bool *more);
/* A new list of what iterating over `in` gives. */
GN_MUST_USE gn_status gn_jinja_list_copy(gn_jrun *run, gn_jval in, gn_jval *out);
/* All items as a list; a list or tuple is given as it is, not copied. */
GN_MUST_USE gn_status gn_jinja_items(gn_jrun *run, gn_jval v, gn_jlist **out);

/* Item k (0 .. n-1) of a range. */
int64_t gn_jinja_range_item(const gn_jrange *range, int64_t k);
GN_MUST_USE gn_status gn_jinja_range_new(gn_jrun *run, int64_t start, int64_t stop, int64_t step,
                                         gn_jval *out);

/* Stable sort of items[0 .. n) by keys[0 .. n), which are permuted along, as Python's sorted(). */
GN_MUST_USE gn_status gn_jinja_sort(gn_jrun *run, gn_jval *keys, gn_jval *items, size_t n,
                                    bool reverse);

/* ---- arguments ---- */

/* Lay arguments out by parameter: out[k] gets the argument for names[k] and keeps its default where
 * there is none. The first n_required must be given. names NULL: positional only. */
GN_MUST_USE gn_status gn_jinja_bind(gn_jrun *run, const char *func, const gn_jargs *args,
                                    const char *const *names, size_t n, size_t n_required,
                                    gn_jval *out);

#endif
