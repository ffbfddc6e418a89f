/* Union, intersection and complement of forms, and the interning of conjunctions. */
#include "grammar/schema_impl.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ALTERNATIVES = 512, MAX_MEMBERS = 4096, MAX_CONJ = 1 << 17 };

void *gn_schema_alloc(gn_schema *s, size_t n, size_t bytes)
{
    return gn_arena_calloc(&s->arena, n != 0 ? n : 1, bytes);
}

/* ---- conjunctions ---- */

static int by_literal(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(gn_literal));
}

static gn_status add_conj(gn_schema *s, const gn_literal *literals, size_t n, gn_conj *out)
{
    GN_REQUIRE(s->n_conj < MAX_CONJ, GN_E_LIMIT, "the schema has more than %d combined parts",
               MAX_CONJ);
    gn_conj_entry *grown = gn_grow_array(s->conj, &s->cap_conj, s->n_conj + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    s->conj = grown;
    gn_literal *copy = gn_schema_alloc(s, n, sizeof *copy);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    if (n != 0) {
        memcpy(copy, literals, n * sizeof *copy);
    }
    s->conj[s->n_conj] = (gn_conj_entry){.literals = copy, .n = (uint32_t)n};
    *out = s->n_conj++;
    return gn_map_add(&s->conj_ids, (const char *)copy, n * sizeof *copy, *out, NULL, NULL);
}

/* Sort, drop doubles, see a literal beside its opposite. */
static size_t tidy(gn_literal *v, size_t n, bool *contradiction)
{
    if (n > 1) {
        qsort(v, n, sizeof *v, by_literal);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && by_literal(&v[kept - 1], &v[i]) == 0) {
            continue;
        }
        v[kept++] = v[i];
    }
    for (size_t i = 0; i < kept; i++) {
        gn_literal opposite = v[i];
        opposite.negated ^= 1;
        *contradiction =
            *contradiction || bsearch(&opposite, v, kept, sizeof *v, by_literal) != NULL;
    }
    return kept;
}

gn_status gn_schema_conj(gn_schema *s, const gn_literal *literals, size_t n, gn_conj *out)
{
    if (s->n_conj == 0) {
        gn_conj ignored;
        const gn_literal impossible = {UINT32_MAX, GN_LITERAL_CONJ, 0};
        GN_TRY(add_conj(s, NULL, 0, &ignored));
        GN_TRY(add_conj(s, &impossible, 1, &ignored));
    }
    gn_literal *v = gn_schema_alloc(s, n, sizeof *v);
    if (v == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < n; i++) {
        v[i] = literals[i];
    }
    bool contradiction = false;
    n = tidy(v, n, &contradiction);
    if (contradiction) {
        *out = GN_CONJ_FALSE;
        return GN_OK;
    }
    const uint32_t *found = gn_map_find(&s->conj_ids, (const char *)v, n * sizeof *v);
    if (found != NULL) {
        *out = *found;
        return GN_OK;
    }
    return add_conj(s, v, n, out);
}

gn_status gn_schema_conj_of(gn_schema *s, const gn_json *schema, gn_conj *out)
{
    if (schema->type == GN_JSON_TRUE || (schema->type == GN_JSON_OBJECT && schema->len == 0)) {
        *out = GN_CONJ_TRUE;
        return GN_OK;
    }
    if (schema->type == GN_JSON_FALSE) {
        *out = GN_CONJ_FALSE;
        return GN_OK;
    }
    const gn_literal one = {schema->id, GN_LITERAL_SCHEMA, 0};
    return gn_schema_conj(s, &one, 1, out);
}

gn_status gn_schema_conj_value(gn_schema *s, const gn_json *value, gn_conj *out)
{
    const gn_literal one = {value->id, GN_LITERAL_VALUE, 0};
    return gn_schema_conj(s, &one, 1, out);
}

gn_status gn_schema_conj_and(gn_schema *s, gn_conj a, gn_conj b, gn_conj *out)
{
    if (a == b || b == GN_CONJ_TRUE || a == GN_CONJ_FALSE) {
        *out = a;
        return GN_OK;
    }
    if (a == GN_CONJ_TRUE || b == GN_CONJ_FALSE) {
        *out = b;
        return GN_OK;
    }
    size_t n_a = s->conj[a].n;
    size_t n_b = s->conj[b].n;
    gn_literal *both = gn_schema_alloc(s, n_a + n_b, sizeof *both);
    if (both == NULL) {
        return gn_alloc_failed();
    }
    memcpy(both, s->conj[a].literals, n_a * sizeof *both);
    memcpy(both + n_a, s->conj[b].literals, n_b * sizeof *both);
    return gn_schema_conj(s, both, n_a + n_b, out);
}

gn_status gn_schema_conj_not(gn_schema *s, gn_conj a, gn_conj *out)
{
    if (a <= GN_CONJ_FALSE) {
        *out = a == GN_CONJ_TRUE ? GN_CONJ_FALSE : GN_CONJ_TRUE;
        return GN_OK;
    }
    gn_literal one = {a, GN_LITERAL_CONJ, 1};
    if (s->conj[a].n == 1) {
        one = s->conj[a].literals[0];
        one.negated ^= 1;
    }
    return gn_schema_conj(s, &one, 1, out);
}

/* ---- simple forms ---- */

void gn_form_none(gn_form *out)
{
    *out = (gn_form){.number = GN_RE_NONE, .string = GN_RE_NONE};
}

gn_object_form *gn_form_any_object(gn_schema *s)
{
    gn_object_form *o = gn_schema_alloc(s, 1, sizeof *o);
    gn_schema_region *all = gn_schema_alloc(s, 1, sizeof *all);
    if (o == NULL || all == NULL) {
        return NULL;
    }
    *all = (gn_schema_region){s->any_string, GN_CONJ_TRUE};
    *o = (gn_object_form){
        .regions = all, .n_regions = 1, .max = GN_IR_MANY, .evaluated = GN_RE_NONE};
    return o;
}

gn_array_form *gn_form_any_array(gn_schema *s)
{
    gn_array_form *a = gn_schema_alloc(s, 1, sizeof *a);
    if (a != NULL) {
        *a = (gn_array_form){.items = GN_CONJ_TRUE, .max = GN_IR_MANY, .max_matching = GN_IR_MANY};
    }
    return a;
}

static gn_status one_of_each(gn_schema *s, gn_array_form *array, gn_object_form *object,
                             gn_form *out)
{
    out->arrays = gn_schema_alloc(s, 1, sizeof(gn_array_form *));
    out->objects = gn_schema_alloc(s, 1, sizeof(gn_object_form *));
    if (array == NULL || object == NULL || out->arrays == NULL || out->objects == NULL) {
        return gn_alloc_failed();
    }
    out->arrays[0] = array;
    out->objects[0] = object;
    out->n_arrays = 1;
    out->n_objects = 1;
    return GN_OK;
}

gn_status gn_form_any(gn_schema *s, gn_form *out)
{
    *out = (gn_form){
        .null = true, .no = true, .yes = true, .number = s->any_number, .string = s->any_string};
    return one_of_each(s, gn_form_any_array(s), gn_form_any_object(s), out);
}

bool gn_form_is_none(gn_schema *s, const gn_form *a)
{
    return !a->null && !a->no && !a->yes && a->n_arrays == 0 && a->n_objects == 0 &&
           gn_grammar_re_min_len(s->pool, a->number) == GN_RE_NEVER &&
           gn_grammar_re_min_len(s->pool, a->string) == GN_RE_NEVER;
}

gn_re gn_schema_re_and(gn_schema *s, gn_re a, gn_re b)
{
    const gn_re both[] = {a, b};
    if (a == b || b == s->any_string || b == s->any_number) {
        return a;
    }
    return a == s->any_string || a == s->any_number ? b : gn_grammar_re_and(s->pool, both, 2);
}

/* ---- objects ---- */

gn_re gn_schema_key(gn_schema *s, const char *name, size_t len)
{
    return gn_grammar_re_json_literal(s->pool, name, len);
}

static const gn_schema_member *find_member(const gn_object_form *o, const char *name, size_t len)
{
    for (size_t i = 0; i < o->n_members; i++) {
        if (o->members[i].len == len && memcmp(o->members[i].name, name, len) == 0) {
            return &o->members[i];
        }
    }
    return NULL;
}

static gn_conj object_value(gn_schema *s, const gn_object_form *o, const char *name, size_t len)
{
    const gn_schema_member *member = find_member(o, name, len);
    if (member != NULL) {
        return member->value;
    }
    gn_re key = gn_schema_key(s, name, len);
    for (size_t i = 0; i < o->n_regions; i++) {
        const gn_re both[] = {o->regions[i].keys, key};
        if (o->regions[i].keys == s->any_string ||
            gn_grammar_re_min_len(s->pool, gn_grammar_re_and(s->pool, both, 2)) != GN_RE_NEVER) {
            return o->regions[i].value;
        }
    }
    return GN_CONJ_FALSE;
}

gn_status gn_object_member(gn_schema *s, gn_object_form *o, const char *name, size_t len,
                           uint32_t *index)
{
    const gn_schema_member *found = find_member(o, name, len);
    if (found != NULL) {
        *index = (uint32_t)(found - o->members);
        return GN_OK;
    }
    GN_REQUIRE(o->n_members < MAX_MEMBERS, GN_E_LIMIT, "an object with more than %d named members",
               MAX_MEMBERS);
    gn_conj value = object_value(s, o, name, len);
    gn_schema_member *grown = gn_schema_alloc(s, o->n_members + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    if (o->n_members != 0) {
        memcpy(grown, o->members, o->n_members * sizeof *grown);
    }
    grown[o->n_members] = (gn_schema_member){name, len, value, false};
    o->members = grown;
    *index = (uint32_t)o->n_members++;
    return GN_OK;
}

static gn_status and_members(gn_schema *s, const gn_object_form *a, const gn_object_form *b,
                             gn_object_form *out)
{
    out->members = gn_schema_alloc(s, a->n_members + b->n_members, sizeof *out->members);
    if (out->members == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < a->n_members; i++) {
        gn_schema_member m = a->members[i];
        const gn_schema_member *other = find_member(b, m.name, m.len);
        m.required = m.required || (other != NULL && other->required);
        GN_TRY(gn_schema_conj_and(s, m.value, object_value(s, b, m.name, m.len), &m.value));
        out->members[out->n_members++] = m;
    }
    for (size_t i = 0; i < b->n_members; i++) {
        gn_schema_member m = b->members[i];
        if (find_member(a, m.name, m.len) == NULL) {
            GN_TRY(gn_schema_conj_and(s, object_value(s, a, m.name, m.len), m.value, &m.value));
            out->members[out->n_members++] = m;
        }
    }
    GN_REQUIRE(out->n_members <= MAX_MEMBERS, GN_E_LIMIT,
               "an object with more than %d named members", MAX_MEMBERS);
    return GN_OK;
}

static gn_status and_regions(gn_schema *s, const gn_object_form *a, const gn_object_form *b,
                             gn_object_form *out)
{
    GN_REQUIRE(a->n_regions * b->n_regions <= MAX_ALTERNATIVES, GN_E_LIMIT,
               "patterns of keys overlap in more than %d ways", MAX_ALTERNATIVES);
    out->regions = gn_schema_alloc(s, a->n_regions * b->n_regions, sizeof *out->regions);
    if (out->regions == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < a->n_regions; i++) {
        for (size_t j = 0; j < b->n_regions; j++) {
            gn_re from_a = a->regions[i].keys;
            gn_re from_b = b->regions[j].keys;
            gn_schema_region r = {gn_schema_re_and(s, from_a, from_b), GN_CONJ_TRUE};
            if (r.keys != from_a && r.keys != from_b &&
                gn_grammar_re_min_len(s->pool, r.keys) == GN_RE_NEVER) {
                continue;
            }
            GN_TRY(gn_schema_conj_and(s, a->regions[i].value, b->regions[j].value, &r.value));
            out->regions[out->n_regions++] = r;
        }
    }
    return GN_OK;
}

static gn_status add_needs(gn_schema *s, const gn_object_form *from, gn_object_form *out)
{
    gn_schema_need *needs = gn_schema_alloc(s, out->n_needs + from->n_needs, sizeof *needs);
    if (needs == NULL) {
        return gn_alloc_failed();
    }
    if (out->n_needs != 0) {
        memcpy(needs, out->needs, out->n_needs * sizeof *needs);
    }
    for (size_t i = 0; i < from->n_needs; i++) {
        const gn_schema_member *key = &from->members[from->needs[i].key];
        const gn_schema_member *other = &from->members[from->needs[i].other];
        gn_schema_need *need = &needs[out->n_needs + i];
        need->key = (uint32_t)(find_member(out, key->name, key->len) - out->members);
        need->other = (uint32_t)(find_member(out, other->name, other->len) - out->members);
    }
    out->needs = needs;
    out->n_needs += from->n_needs;
    return GN_OK;
}

gn_status gn_object_and(gn_schema *s, const gn_object_form *a, const gn_object_form *b,
                        gn_object_form **out)
{
    gn_object_form *o = gn_schema_alloc(s, 1, sizeof *o);
    if (o == NULL) {
        return gn_alloc_failed();
    }
    o->min = a->min > b->min ? a->min : b->min;
    o->max = a->max < b->max ? a->max : b->max;
    const gn_re seen[] = {a->evaluated, b->evaluated};
    o->evaluated = gn_grammar_re_alt(s->pool, seen, 2);
    GN_TRY(and_members(s, a, b, o));
    GN_TRY(and_regions(s, a, b, o));
    GN_TRY(add_needs(s, a, o));
    GN_TRY(add_needs(s, b, o));
    *out = o;
    return GN_OK;
}

/* ---- arrays ---- */

static gn_conj item_at(const gn_array_form *a, size_t i)
{
    return i < a->n_prefix ? a->prefix[i] : a->items;
}

static gn_status array_and(gn_schema *s, const gn_array_form *a, const gn_array_form *b,
                           gn_array_form **out)
{
    gn_array_form *r = gn_schema_alloc(s, 1, sizeof *r);
    if (r == NULL) {
        return gn_alloc_failed();
    }
    const gn_array_form *contains = a->has_contains ? a : b;
    bool both = a->has_contains && b->has_contains;
    if (both && (a->matching != b->matching || a->contains_from != b->contains_from)) {
        return gn_schema_refuse(s, b->at, GN_E_UNSUPPORTED,
                                "two different \"contains\" for one array can't be enforced");
    }
    *r = *contains;
    r->at = a->at != NULL ? a->at : b->at;
    if (both) {
        r->min_matching = a->min_matching > b->min_matching ? a->min_matching : b->min_matching;
        r->max_matching = a->max_matching < b->max_matching ? a->max_matching : b->max_matching;
    }
    r->min = a->min > b->min ? a->min : b->min;
    r->max = a->max < b->max ? a->max : b->max;
    r->unique = a->unique || b->unique;
    r->evaluated = a->evaluated > b->evaluated ? a->evaluated : b->evaluated;
    r->n_prefix = a->n_prefix > b->n_prefix ? a->n_prefix : b->n_prefix;
    r->prefix = gn_schema_alloc(s, r->n_prefix, sizeof *r->prefix);
    if (r->prefix == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < r->n_prefix; i++) {
        GN_TRY(gn_schema_conj_and(s, item_at(a, i), item_at(b, i), &r->prefix[i]));
    }
    GN_TRY(gn_schema_conj_and(s, a->items, b->items, &r->items));
    *out = r;
    return GN_OK;
}

/* ---- intersection and union ---- */

static bool is_dead_object(const gn_object_form *o)
{
    bool dead = o->min > o->max;
    for (size_t i = 0; i < o->n_members && !dead; i++) {
        dead = o->members[i].required && o->members[i].value == GN_CONJ_FALSE;
    }
    return dead;
}

static bool is_dead_array(const gn_array_form *a)
{
    bool dead = a->min > a->max || (a->has_contains && a->min_matching > a->max_matching);
    for (size_t i = 0; i < a->n_prefix && !dead; i++) {
        dead = i < a->min && a->prefix[i] == GN_CONJ_FALSE;
    }
    return dead || (a->min > a->n_prefix && a->items == GN_CONJ_FALSE);
}

gn_status gn_form_and(gn_schema *s, const gn_form *a, const gn_form *b, gn_form *out)
{
    gn_form r = {.null = a->null && b->null, .no = a->no && b->no, .yes = a->yes && b->yes};
    r.number = gn_schema_re_and(s, a->number, b->number);
    r.string = gn_schema_re_and(s, a->string, b->string);
    GN_REQUIRE(a->n_arrays * b->n_arrays <= MAX_ALTERNATIVES &&
                   a->n_objects * b->n_objects <= MAX_ALTERNATIVES,
               GN_E_LIMIT, "the schema needs more than %d alternatives at one place",
               MAX_ALTERNATIVES);
    r.arrays = gn_schema_alloc(s, a->n_arrays * b->n_arrays, sizeof(gn_array_form *));
    r.objects = gn_schema_alloc(s, a->n_objects * b->n_objects, sizeof(gn_object_form *));
    if (r.arrays == NULL || r.objects == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < a->n_arrays; i++) {
        for (size_t j = 0; j < b->n_arrays; j++) {
            GN_TRY(array_and(s, a->arrays[i], b->arrays[j], &r.arrays[r.n_arrays]));
            r.n_arrays += !is_dead_array(r.arrays[r.n_arrays]);
        }
    }
    for (size_t i = 0; i < a->n_objects; i++) {
        for (size_t j = 0; j < b->n_objects; j++) {
            GN_TRY(gn_object_and(s, a->objects[i], b->objects[j], &r.objects[r.n_objects]));
            r.n_objects += !is_dead_object(r.objects[r.n_objects]);
        }
    }
    *out = r;
    return GN_OK;
}

gn_status gn_form_or(gn_schema *s, const gn_form *a, const gn_form *b, gn_form *out)
{
    const gn_re numbers[] = {a->number, b->number};
    const gn_re strings[] = {a->string, b->string};
    gn_form r = {.null = a->null || b->null,
                 .no = a->no || b->no,
                 .yes = a->yes || b->yes,
                 .number = gn_grammar_re_alt(s->pool, numbers, 2),
                 .string = gn_grammar_re_alt(s->pool, strings, 2),
                 .n_arrays = a->n_arrays + b->n_arrays,
                 .n_objects = a->n_objects + b->n_objects};
    GN_REQUIRE(r.n_arrays <= MAX_ALTERNATIVES && r.n_objects <= MAX_ALTERNATIVES, GN_E_LIMIT,
               "the schema needs more than %d alternatives at one place", MAX_ALTERNATIVES);
    r.arrays = gn_schema_alloc(s, r.n_arrays, sizeof(gn_array_form *));
    r.objects = gn_schema_alloc(s, r.n_objects, sizeof(gn_object_form *));
    if (r.arrays == NULL || r.objects == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < r.n_arrays; i++) {
        r.arrays[i] = i < a->n_arrays ? a->arrays[i] : b->arrays[i - a->n_arrays];
    }
    for (size_t i = 0; i < r.n_objects; i++) {
        r.objects[i] = i < a->n_objects ? a->objects[i] : b->objects[i - a->n_objects];
    }
    *out = r;
    return GN_OK;
}

gn_status gn_form_of_conj(gn_schema *s, gn_conj conj, const gn_form **out)
{
    if (s->conj[conj].form != NULL) {
        *out = s->conj[conj].form;
        return GN_OK;
    }
    gn_form *sum = gn_schema_alloc(s, 1, sizeof *sum);
    if (sum == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_form_any(s, sum));
    if (conj == GN_CONJ_FALSE) {
        gn_form_none(sum);
    }
    uint32_t n = conj == GN_CONJ_FALSE ? 0 : s->conj[conj].n;
    for (uint32_t i = 0; i < n; i++) {
        const gn_literal l = s->conj[conj].literals[i];
        const gn_form *one = NULL;
        gn_form made;
        const gn_json *at = s->root;
        if (l.kind == GN_LITERAL_SCHEMA) {
            at = s->nodes[l.id];
            GN_TRY(gn_schema_form(s, at, &one));
        } else if (l.kind == GN_LITERAL_VALUE) {
            at = s->nodes[l.id];
            GN_TRY(gn_schema_value_form(s, at, &made));
            one = &made;
        } else {
            GN_TRY(gn_form_of_conj(s, l.id, &one));
        }
        gn_form opposite;
        if (l.negated) {
            GN_TRY(gn_form_not(s, one, at, &opposite));
            one = &opposite;
        }
        if (n == 1) {
            *sum = *one;
        } else {
            gn_form before = *sum;
            GN_TRY(gn_form_and(s, &before, one, sum));
        }
    }
    s->conj[conj].form = sum;
    *out = sum;
    return GN_OK;
}
