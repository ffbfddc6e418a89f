/* The complement of a form: each demand in turn is broken, all others dropped; the alternatives together are
 * all values that break at least one. Demands on keys without a name can't be broken in an alternative (it
 * would have to say "some such key stands"), and are refused. */
#include "grammar/schema_impl.h"

#include "base/alloc.h"

#include <string.h>

typedef struct breaker {
    gn_schema *s;
    const gn_json *at;
    gn_form *out; /* union so far */
} breaker;

static gn_status add_object(breaker *b, gn_object_form *o)
{
    gn_form one;
    gn_form before = *b->out;
    gn_form_none(&one);
    one.objects = &o;
    one.n_objects = 1;
    return gn_form_or(b->s, &before, &one, b->out);
}

static gn_status add_array(breaker *b, gn_array_form *a)
{
    gn_form one;
    gn_form before = *b->out;
    gn_form_none(&one);
    one.arrays = &a;
    one.n_arrays = 1;
    return gn_form_or(b->s, &before, &one, b->out);
}

/* Any object in which the member `from` stands (with that value), or does not. */
static gn_status with_member(breaker *b, const gn_schema_member *from, bool stands, gn_conj value)
{
    gn_object_form *o = gn_form_any_object(b->s);
    uint32_t i = 0;
    if (o == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_object_member(b->s, o, from->name, from->len, &i));
    o->members[i].required = stands;
    o->members[i].value = stands ? value : GN_CONJ_FALSE;
    return add_object(b, o);
}

static gn_status break_need(breaker *b, const gn_schema_member *key, const gn_schema_member *other)
{
    gn_object_form *o = gn_form_any_object(b->s);
    uint32_t i = 0;
    uint32_t j = 0;
    if (o == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_object_member(b->s, o, key->name, key->len, &i));
    GN_TRY(gn_object_member(b->s, o, other->name, other->len, &j));
    o->members[i].required = true;
    o->members[j].value = GN_CONJ_FALSE;
    return add_object(b, o);
}

static gn_status break_count(breaker *b, uint32_t min, uint32_t max)
{
    gn_object_form *o = gn_form_any_object(b->s);
    if (o == NULL) {
        return gn_alloc_failed();
    }
    o->min = min;
    o->max = max;
    return add_object(b, o);
}

static gn_status break_object(breaker *b, const gn_object_form *o)
{
    for (size_t i = 0; i < o->n_members; i++) {
        const gn_schema_member *m = &o->members[i];
        if (m->value != GN_CONJ_TRUE) {
            gn_conj other;
            GN_TRY(gn_schema_conj_not(b->s, m->value, &other));
            GN_TRY(with_member(b, m, true, other));
        }
        if (m->required) {
            GN_TRY(with_member(b, m, false, GN_CONJ_FALSE));
        }
    }
    for (size_t i = 0; i < o->n_regions; i++) {
        if (o->regions[i].value != GN_CONJ_TRUE) {
            return gn_schema_refuse(b->s, b->at, GN_E_UNSUPPORTED,
                                    "the opposite of a demand on keys without a name "
                                    "(additionalProperties, patternProperties, propertyNames) "
                                    "can't be enforced");
        }
    }
    for (size_t i = 0; i < o->n_needs; i++) {
        GN_TRY(break_need(b, &o->members[o->needs[i].key], &o->members[o->needs[i].other]));
    }
    if (o->min > 0) {
        GN_TRY(break_count(b, 0, o->min - 1));
    }
    return o->max == GN_IR_MANY ? GN_OK : break_count(b, o->max + 1, GN_IR_MANY);
}

/* An array of any items up to place n, which is `value`. */
static gn_status with_item(breaker *b, size_t n, gn_conj value)
{
    gn_array_form *a = gn_form_any_array(b->s);
    gn_conj *prefix = gn_schema_alloc(b->s, n + 1, sizeof *prefix);
    if (a == NULL || prefix == NULL) {
        return gn_alloc_failed();
    }
    prefix[n] = value; /* those before are GN_CONJ_TRUE, which is 0 */
    a->prefix = prefix;
    a->n_prefix = n + 1;
    a->min = (uint32_t)n + 1;
    return add_array(b, a);
}

static gn_status with_matching(breaker *b, size_t from, gn_conj matching, uint32_t min,
                               uint32_t max)
{
    gn_array_form *a = gn_form_any_array(b->s);
    if (a == NULL) {
        return gn_alloc_failed();
    }
    a->has_contains = true;
    a->contains_from = from;
    a->matching = matching;
    a->min_matching = min;
    a->max_matching = max;
    a->at = b->at;
    return add_array(b, a);
}

static gn_status with_length(breaker *b, uint32_t min, uint32_t max)
{
    gn_array_form *a = gn_form_any_array(b->s);
    if (a == NULL) {
        return gn_alloc_failed();
    }
    a->min = min;
    a->max = max;
    return add_array(b, a);
}

static gn_status break_array(breaker *b, const gn_array_form *a)
{
    gn_conj other;
    if (a->unique) {
        return gn_schema_refuse(b->s, b->at, GN_E_UNSUPPORTED,
                                "the opposite of \"uniqueItems\" can't be enforced");
    }
    for (size_t i = 0; i < a->n_prefix; i++) {
        if (a->prefix[i] != GN_CONJ_TRUE) {
            GN_TRY(gn_schema_conj_not(b->s, a->prefix[i], &other));
            GN_TRY(with_item(b, i, other));
        }
    }
    if (a->items == GN_CONJ_FALSE) {
        GN_TRY(with_length(b, (uint32_t)a->n_prefix + 1, GN_IR_MANY));
    } else if (a->items != GN_CONJ_TRUE) {
        GN_TRY(gn_schema_conj_not(b->s, a->items, &other));
        GN_TRY(with_matching(b, a->n_prefix, other, 1, GN_IR_MANY));
    }
    if (a->has_contains && a->min_matching > 0) {
        GN_TRY(with_matching(b, a->contains_from, a->matching, 0, a->min_matching - 1));
    }
    if (a->has_contains && a->max_matching != GN_IR_MANY) {
        GN_TRY(with_matching(b, a->contains_from, a->matching, a->max_matching + 1, GN_IR_MANY));
    }
    if (a->min > 0) {
        GN_TRY(with_length(b, 0, a->min - 1));
    }
    return a->max == GN_IR_MANY ? GN_OK : with_length(b, a->max + 1, GN_IR_MANY);
}

static gn_re without(gn_schema *s, gn_re all, gn_re a)
{
    const gn_re both[] = {all, gn_grammar_re_not(s->pool, a)};
    return gn_grammar_re_and(s->pool, both, 2);
}

gn_status gn_form_not(gn_schema *s, const gn_form *a, const gn_json *at, gn_form *out)
{
    gn_form any;
    GN_TRY(gn_form_any(s, &any));
    gn_form sum = {.null = !a->null, .no = !a->no, .yes = !a->yes};
    /* Numbers under a demand are plain decimals, and so is what is left of them; with no demand and with no
     * number at all, the exponents come and go too. */
    sum.number = a->number == GN_RE_NONE      ? s->any_number
                 : a->number == s->any_number ? GN_RE_NONE
                                              : without(s, s->plain_number, a->number);
    sum.string = a->string == GN_RE_NONE ? s->any_string : without(s, s->any_string, a->string);
    gn_form objects = {.objects = any.objects, .n_objects = 1};
    for (size_t i = 0; i < a->n_objects; i++) {
        gn_form broken = {0};
        breaker b = {s, at, &broken};
        GN_TRY(break_object(&b, a->objects[i]));
        gn_form before = objects;
        GN_TRY(gn_form_and(s, &before, &broken, &objects));
    }
    gn_form arrays = {.arrays = any.arrays, .n_arrays = 1};
    for (size_t i = 0; i < a->n_arrays; i++) {
        gn_form broken = {0};
        breaker b = {s, at, &broken};
        GN_TRY(break_array(&b, a->arrays[i]));
        gn_form before = arrays;
        GN_TRY(gn_form_and(s, &before, &broken, &arrays));
    }
    sum.objects = objects.objects;
    sum.n_objects = objects.n_objects;
    sum.arrays = arrays.arrays;
    sum.n_arrays = arrays.n_arrays;
    /* An opposite has looked at nothing. */
    for (size_t i = 0; i < sum.n_objects; i++) {
        sum.objects[i]->evaluated = GN_RE_NONE;
    }
    for (size_t i = 0; i < sum.n_arrays; i++) {
        sum.arrays[i]->evaluated = 0;
    }
    *out = sum;
    return GN_OK;
}
