/* The keywords of objects. Keys without a name are split into disjoint regions by the patterns that match. */
#include "grammar/schema_impl.h"

#include "base/alloc.h"
#include "grammar/regex.h"

#include <string.h>

enum { MAX_PATTERNS = 10 };

typedef struct pattern {
    gn_re keys;
    gn_conj value;
} pattern;

static gn_status check_object(gn_schema *s, const gn_json *node)
{
    return node->type == GN_JSON_OBJECT
               ? GN_OK
               : gn_schema_refuse(s, node, GN_E_FORMAT, "\"%s\": expected an object", node->key);
}

static gn_status read_patterns(gn_schema *s, const gn_json *patterns, pattern *out, size_t *n)
{
    *n = 0;
    if (patterns == NULL) {
        return GN_OK;
    }
    GN_TRY(check_object(s, patterns));
    if (patterns->len > MAX_PATTERNS) {
        return gn_schema_refuse(s, patterns, GN_E_LIMIT, "found %zu patterns of keys, at most %d",
                                patterns->len, MAX_PATTERNS);
    }
    for (const gn_json *p = patterns->first; p != NULL; p = p->next) {
        gn_status status =
            gn_grammar_regex_parse(s->pool, p->key, p->key_len,
                                   GN_REGEX_SEARCH | GN_REGEX_JSON | GN_REGEX_ECMA, &out[*n].keys);
        if (status != GN_OK) {
            s->place = p;
            return status;
        }
        GN_TRY(gn_schema_conj_of(s, p, &out[*n].value));
        (*n)++;
    }
    return GN_OK;
}

/* Split each region by the pattern: those of its keys that match get the pattern's demand too. `other` is
 * what keys that match no pattern must fulfil; it is put in at the end. */
static gn_status split_regions(gn_schema *s, const pattern *patterns, size_t n, gn_conj other,
                               gn_object_form *o)
{
    gn_schema_region *now = gn_schema_alloc(s, (size_t)1 << n, sizeof *now);
    bool *matched = gn_schema_alloc(s, (size_t)1 << n, sizeof *matched);
    if (now == NULL || matched == NULL) {
        return gn_alloc_failed();
    }
    size_t count = 1;
    now[0] = (gn_schema_region){s->any_string, GN_CONJ_TRUE};
    for (size_t i = 0; i < n; i++) {
        size_t before = count;
        for (size_t r = 0; r < before; r++) {
            const gn_re out[] = {now[r].keys, gn_grammar_re_not(s->pool, patterns[i].keys)};
            gn_re inside = gn_schema_re_and(s, now[r].keys, patterns[i].keys);
            gn_re outside = gn_grammar_re_and(s->pool, out, 2);
            bool has_inside = gn_grammar_re_min_len(s->pool, inside) != GN_RE_NEVER;
            bool has_outside = gn_grammar_re_min_len(s->pool, outside) != GN_RE_NEVER;
            gn_schema_region with = {inside, now[r].value};
            if (has_inside) {
                GN_TRY(gn_schema_conj_and(s, with.value, patterns[i].value, &with.value));
            }
            if (has_inside && has_outside) {
                now[r].keys = outside;
                now[count] = with;
                matched[count++] = true;
            } else if (has_inside) {
                now[r] = with;
                matched[r] = true;
            }
        }
    }
    for (size_t r = 0; r < count; r++) {
        if (!matched[r]) {
            now[r].value = other;
        }
    }
    o->regions = now;
    o->n_regions = count;
    return GN_OK;
}

static bool key_matches(gn_schema *s, gn_re keys, const gn_json *member)
{
    const gn_re both[] = {keys, gn_schema_key(s, member->key, member->key_len)};
    return gn_grammar_re_min_len(s->pool, gn_grammar_re_and(s->pool, both, 2)) != GN_RE_NEVER;
}

static gn_status read_properties(gn_schema *s, const gn_json *properties, const pattern *patterns,
                                 size_t n_patterns, gn_object_form *o)
{
    if (properties == NULL) {
        return GN_OK;
    }
    GN_TRY(check_object(s, properties));
    o->members = gn_schema_alloc(s, properties->len, sizeof *o->members);
    if (o->members == NULL) {
        return gn_alloc_failed();
    }
    for (const gn_json *p = properties->first; p != NULL; p = p->next) {
        gn_schema_member *m = &o->members[o->n_members];
        *m = (gn_schema_member){.name = p->key, .len = p->key_len};
        GN_TRY(gn_schema_conj_of(s, p, &m->value));
        for (size_t i = 0; i < n_patterns; i++) {
            if (key_matches(s, patterns[i].keys, p)) {
                GN_TRY(gn_schema_conj_and(s, m->value, patterns[i].value, &m->value));
            }
        }
        o->n_members++;
    }
    return GN_OK;
}

static gn_status mark_evaluated(gn_schema *s, const pattern *patterns, size_t n_patterns, bool all,
                                gn_object_form *o)
{
    gn_re *seen = gn_schema_alloc(s, o->n_members + n_patterns, sizeof *seen);
    if (seen == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    for (size_t i = 0; i < o->n_members; i++) {
        seen[n++] = gn_schema_key(s, o->members[i].name, o->members[i].len);
    }
    for (size_t i = 0; i < n_patterns; i++) {
        seen[n++] = patterns[i].keys;
    }
    o->evaluated = all ? s->any_string : gn_grammar_re_alt(s->pool, seen, n);
    return GN_OK;
}

static gn_status read_required(gn_schema *s, const gn_json *list, gn_object_form *o)
{
    if (list == NULL || list->type == GN_JSON_TRUE || list->type == GN_JSON_FALSE) {
        return GN_OK; /* draft 3's boolean demands nothing of this object */
    }
    if (list->type != GN_JSON_ARRAY) {
        return gn_schema_refuse(s, list, GN_E_FORMAT, "\"required\": expected an array");
    }
    for (const gn_json *name = list->first; name != NULL; name = name->next) {
        uint32_t i = 0;
        if (name->type != GN_JSON_STRING) {
            return gn_schema_refuse(s, name, GN_E_FORMAT, "\"required\": expected strings");
        }
        GN_TRY(gn_object_member(s, o, name->text, name->len, &i));
        o->members[i].required = true;
    }
    return GN_OK;
}

static gn_status read_needs(gn_schema *s, const gn_json *map, gn_object_form *o)
{
    for (const gn_json *m = map != NULL ? map->first : NULL; m != NULL; m = m->next) {
        if (m->type != GN_JSON_ARRAY || m->len == 0) {
            continue; /* a schema: read_dependent_schemas() */
        }
        gn_schema_need *grown = gn_schema_alloc(s, o->n_needs + m->len, sizeof *grown);
        if (grown == NULL) {
            return gn_alloc_failed();
        }
        if (o->n_needs != 0) {
            memcpy(grown, o->needs, o->n_needs * sizeof *grown);
        }
        o->needs = grown;
        for (const gn_json *name = m->first; name != NULL; name = name->next) {
            gn_schema_need need;
            if (name->type != GN_JSON_STRING) {
                return gn_schema_refuse(s, name, GN_E_FORMAT, "expected the names of members");
            }
            GN_TRY(gn_object_member(s, o, m->key, m->key_len, &need.key));
            GN_TRY(gn_object_member(s, o, name->text, name->len, &need.other));
            o->needs[o->n_needs++] = need;
        }
    }
    return GN_OK;
}

/* Keys outside the names that `schema` allows may not stand. */
static gn_status read_names(gn_schema *s, const gn_json *schema, gn_object_form *o,
                            gn_object_form **out)
{
    const gn_form *names = NULL;
    *out = o;
    if (schema == NULL) {
        return GN_OK;
    }
    GN_TRY(gn_schema_form(s, schema, &names));
    if (names->string == s->any_string) {
        return GN_OK;
    }
    gn_object_form *limit = gn_form_any_object(s);
    gn_schema_region *regions = gn_schema_alloc(s, 2, sizeof *regions);
    if (limit == NULL || regions == NULL) {
        return gn_alloc_failed();
    }
    const gn_re rest[] = {s->any_string, gn_grammar_re_not(s->pool, names->string)};
    regions[0] = (gn_schema_region){names->string, GN_CONJ_TRUE};
    regions[1] = (gn_schema_region){gn_grammar_re_and(s->pool, rest, 2), GN_CONJ_FALSE};
    limit->regions = regions;
    limit->n_regions = 2;
    return gn_object_and(s, o, limit, out);
}

/* The schema applies where the member stands: either it does not, or all of the schema is fulfilled. */
static gn_status read_dependent_schemas(gn_schema *s, const gn_json *map, gn_form *form)
{
    for (const gn_json *m = map != NULL ? map->first : NULL; m != NULL; m = m->next) {
        if (m->type == GN_JSON_ARRAY) {
            continue;
        }
        const gn_form *then_form = NULL;
        GN_TRY(gn_schema_form(s, m, &then_form));
        gn_object_form *absent = gn_form_any_object(s);
        gn_object_form *present = gn_form_any_object(s);
        uint32_t i = 0;
        if (absent == NULL || present == NULL) {
            return gn_alloc_failed();
        }
        GN_TRY(gn_object_member(s, absent, m->key, m->key_len, &i));
        absent->members[i].value = GN_CONJ_FALSE;
        GN_TRY(gn_object_member(s, present, m->key, m->key_len, &i));
        present->members[i].required = true;
        gn_form any;
        GN_TRY(gn_form_any(s, &any));
        gn_form either = any;
        either.n_objects = 0;
        gn_form one = {.objects = &absent, .n_objects = 1};
        gn_form sum;
        GN_TRY(gn_form_or(s, &either, &one, &sum));
        gn_form when = {.objects = &present, .n_objects = 1};
        gn_form both;
        GN_TRY(gn_form_and(s, &when, then_form, &both));
        GN_TRY(gn_form_or(s, &sum, &both, &either));
        gn_form before = *form;
        GN_TRY(gn_form_and(s, &before, &either, form));
    }
    return GN_OK;
}

static gn_status read_counts(gn_schema *s, const gn_json *schema, gn_object_form *o)
{
    const gn_json *min = gn_base_json_get(schema, "minProperties");
    const gn_json *max = gn_base_json_get(schema, "maxProperties");
    if (min != NULL) {
        GN_TRY(gn_schema_count(s, min, &o->min));
    }
    return max != NULL ? gn_schema_count(s, max, &o->max) : GN_OK;
}

gn_status gn_schema_read_object(gn_schema *s, const gn_json *schema, gn_form *form)
{
    static const char *const keys[] = {
        "properties",    "patternProperties", "additionalProperties", "required",
        "minProperties", "maxProperties",     "propertyNames",        "dependentRequired",
        "dependencies",  "dependentSchemas"};
    bool any = false;
    for (size_t i = 0; i < GN_COUNTOF(keys); i++) {
        any = any || gn_base_json_get(schema, keys[i]) != NULL;
    }
    if (!any) {
        return GN_OK;
    }
    gn_object_form *o = gn_form_any_object(s);
    if (o == NULL) {
        return gn_alloc_failed();
    }
    pattern patterns[MAX_PATTERNS];
    size_t n = 0;
    const gn_json *additional = gn_base_json_get(schema, "additionalProperties");
    const gn_json *old = gn_base_json_get(schema, "dependencies");
    const gn_json *dependent = gn_base_json_get(schema, "dependentSchemas");
    gn_conj other = GN_CONJ_TRUE;
    GN_TRY(read_patterns(s, gn_base_json_get(schema, "patternProperties"), patterns, &n));
    if (additional != NULL) {
        GN_TRY(gn_schema_conj_of(s, additional, &other));
    }
    GN_TRY(read_properties(s, gn_base_json_get(schema, "properties"), patterns, n, o));
    GN_TRY(mark_evaluated(s, patterns, n, additional != NULL, o));
    GN_TRY(split_regions(s, patterns, n, other, o));
    GN_TRY(read_required(s, gn_base_json_get(schema, "required"), o));
    GN_TRY(read_needs(s, gn_base_json_get(schema, "dependentRequired"), o));
    GN_TRY(read_needs(s, old, o));
    GN_TRY(read_counts(s, schema, o));
    GN_TRY(read_names(s, gn_base_json_get(schema, "propertyNames"), o, &o));
    gn_form objects;
    gn_form before = *form;
    GN_TRY(gn_form_any(s, &objects));
    objects.objects[0] = o;
    GN_TRY(gn_form_and(s, &before, &objects, form));
    GN_TRY(read_dependent_schemas(s, dependent, form));
    return read_dependent_schemas(s, old, form);
}

/* Put the demand on all keys that nothing has looked at. */
static gn_status demand_rest(gn_schema *s, const gn_object_form *o, gn_conj demand,
                             gn_object_form **out)
{
    gn_object_form *rest = gn_form_any_object(s);
    gn_schema_region *regions = gn_schema_alloc(s, 2, sizeof *regions);
    if (rest == NULL || regions == NULL) {
        return gn_alloc_failed();
    }
    const gn_re seen[] = {s->any_string, o->evaluated};
    const gn_re unseen[] = {s->any_string, gn_grammar_re_not(s->pool, o->evaluated)};
    regions[0] = (gn_schema_region){gn_grammar_re_and(s->pool, unseen, 2), demand};
    regions[1] = (gn_schema_region){gn_grammar_re_and(s->pool, seen, 2), GN_CONJ_TRUE};
    rest->regions = regions;
    rest->n_regions = o->evaluated == GN_RE_NONE ? 1 : 2;
    GN_TRY(gn_object_and(s, o, rest, out));
    (*out)->evaluated = s->any_string;
    return GN_OK;
}

gn_status gn_schema_read_unevaluated(gn_schema *s, const gn_json *schema, gn_form *form)
{
    const gn_json *properties = gn_base_json_get(schema, "unevaluatedProperties");
    const gn_json *items = gn_base_json_get(schema, "unevaluatedItems");
    gn_conj demand = GN_CONJ_TRUE;
    if (properties != NULL) {
        GN_TRY(gn_schema_conj_of(s, properties, &demand));
        for (size_t i = 0; i < form->n_objects; i++) {
            GN_TRY(demand_rest(s, form->objects[i], demand, &form->objects[i]));
        }
    }
    if (items == NULL) {
        return GN_OK;
    }
    GN_TRY(gn_schema_conj_of(s, items, &demand));
    for (size_t i = 0; i < form->n_arrays; i++) {
        gn_array_form *a = form->arrays[i];
        if (a->has_contains) {
            return gn_schema_refuse(s, items, GN_E_UNSUPPORTED,
                                    "\"unevaluatedItems\" beside \"contains\" can't be enforced");
        }
        if (a->evaluated == SIZE_MAX) {
            continue;
        }
        gn_array_form *r = gn_schema_alloc(s, 1, sizeof *r);
        size_t n = a->n_prefix > a->evaluated ? a->n_prefix : a->evaluated;
        gn_conj *prefix = gn_schema_alloc(s, n, sizeof *prefix);
        if (r == NULL || prefix == NULL) {
            return gn_alloc_failed();
        }
        *r = *a;
        for (size_t k = 0; k < n; k++) {
            prefix[k] = k < a->n_prefix ? a->prefix[k] : a->items;
            if (k >= a->evaluated) {
                GN_TRY(gn_schema_conj_and(s, prefix[k], demand, &prefix[k]));
            }
        }
        r->prefix = prefix;
        r->n_prefix = n;
        GN_TRY(gn_schema_conj_and(s, a->items, demand, &r->items));
        r->evaluated = SIZE_MAX;
        form->arrays[i] = r;
    }
    return GN_OK;
}
