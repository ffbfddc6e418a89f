/* One schema to its form: type, values, numbers, strings, and the keywords that combine schemas for the same
 * value. Objects and arrays are read in files of their own. */
#include "grammar/schema_impl.h"

#include "base/alloc.h"
#include "grammar/number.h"
#include "grammar/regex.h"

#include <string.h>

enum { MAX_DEPTH = 200, MAX_SUBSETS = 4 };

gn_status gn_schema_count(gn_schema *s, const gn_json *node, uint32_t *out)
{
    uint64_t n = 0;
    const char *c = node->type == GN_JSON_NUMBER ? node->text : "";
    bool ok = *c >= '0' && *c <= '9';
    for (; *c >= '0' && *c <= '9' && n < GN_IR_MANY; c++) {
        n = n * 10 + (uint64_t)(*c - '0');
    }
    if (*c == '.') {
        c += 1 + strspn(c + 1, "0");
    }
    if (!ok || *c != '\0') {
        return gn_schema_refuse(s, node, GN_E_FORMAT, "\"%s\": expected a whole number from 0 on",
                                node->key);
    }
    *out = n < GN_IR_MANY ? (uint32_t)n : GN_IR_MANY - 1;
    return GN_OK;
}

/* ---- values ---- */

static gn_status value_array(gn_schema *s, const gn_json *value, gn_form *out)
{
    gn_array_form *a = gn_form_any_array(s);
    gn_conj *prefix = gn_schema_alloc(s, value->len, sizeof *prefix);
    out->arrays = gn_schema_alloc(s, 1, sizeof(gn_array_form *));
    if (a == NULL || prefix == NULL || out->arrays == NULL) {
        return gn_alloc_failed();
    }
    size_t i = 0;
    for (const gn_json *item = value->first; item != NULL; item = item->next) {
        GN_TRY(gn_schema_conj_value(s, item, &prefix[i++]));
    }
    a->prefix = prefix;
    a->n_prefix = value->len;
    a->min = (uint32_t)value->len;
    a->max = (uint32_t)value->len;
    a->items = GN_CONJ_FALSE;
    out->arrays[0] = a;
    out->n_arrays = 1;
    return GN_OK;
}

static gn_status value_object(gn_schema *s, const gn_json *value, gn_form *out)
{
    gn_object_form *o = gn_form_any_object(s);
    gn_schema_member *members = gn_schema_alloc(s, value->len, sizeof *members);
    out->objects = gn_schema_alloc(s, 1, sizeof(gn_object_form *));
    if (o == NULL || members == NULL || out->objects == NULL) {
        return gn_alloc_failed();
    }
    o->members = members;
    for (const gn_json *m = value->first; m != NULL; m = m->next) {
        gn_schema_member *to = &members[o->n_members++];
        *to = (gn_schema_member){m->key, m->key_len, GN_CONJ_TRUE, true};
        GN_TRY(gn_schema_conj_value(s, m, &to->value));
    }
    /* The count, not a closed region, keeps others out, so that the opposite can be told too. */
    o->min = (uint32_t)value->len;
    o->max = (uint32_t)value->len;
    out->objects[0] = o;
    out->n_objects = 1;
    return GN_OK;
}

gn_status gn_schema_value_form(gn_schema *s, const gn_json *value, gn_form *out)
{
    gn_form_none(out);
    const gn_number_rule exactly = {.min = value->text, .max = value->text};
    switch (value->type) {
    case GN_JSON_NULL: out->null = true; return GN_OK;
    case GN_JSON_FALSE: out->no = true; return GN_OK;
    case GN_JSON_TRUE: out->yes = true; return GN_OK;
    case GN_JSON_NUMBER: return gn_grammar_number(s->pool, &exactly, &out->number);
    case GN_JSON_STRING: out->string = gn_schema_key(s, value->text, value->len); return GN_OK;
    case GN_JSON_ARRAY: return value_array(s, value, out);
    case GN_JSON_OBJECT: return value_object(s, value, out);
    }
    return GN_OK;
}

static gn_status read_enum(gn_schema *s, const gn_json *values, gn_form *form)
{
    if (values->type != GN_JSON_ARRAY) {
        return gn_schema_refuse(s, values, GN_E_FORMAT, "\"enum\": expected an array");
    }
    gn_form all;
    gn_form_none(&all);
    /* Strings and numbers are gathered first: one wide alternative instead of a chain of unions. */
    gn_re *strings = gn_schema_alloc(s, values->len, sizeof *strings);
    gn_re *numbers = gn_schema_alloc(s, values->len, sizeof *numbers);
    size_t n_strings = 0;
    size_t n_numbers = 0;
    if (strings == NULL || numbers == NULL) {
        return gn_alloc_failed();
    }
    for (const gn_json *v = values->first; v != NULL; v = v->next) {
        gn_form one;
        GN_TRY(gn_schema_value_form(s, v, &one));
        if (v->type == GN_JSON_STRING) {
            strings[n_strings++] = one.string;
        } else if (v->type == GN_JSON_NUMBER) {
            numbers[n_numbers++] = one.number;
        } else {
            gn_form before = all;
            GN_TRY(gn_form_or(s, &before, &one, &all));
        }
    }
    all.string = gn_grammar_re_alt(s->pool, strings, n_strings);
    all.number = gn_grammar_re_alt(s->pool, numbers, n_numbers);
    gn_form before = *form;
    return gn_form_and(s, &before, &all, form);
}

/* ---- type, numbers, strings ---- */

static gn_status add_type(gn_schema *s, const gn_json *name, gn_form *types)
{
    const gn_number_rule whole = {.integer = true};
    gn_form any;
    GN_TRY(gn_form_any(s, &any));
    if (gn_base_json_is(name, "null")) {
        types->null = true;
    } else if (gn_base_json_is(name, "boolean")) {
        types->no = true;
        types->yes = true;
    } else if (gn_base_json_is(name, "number")) {
        types->number = s->any_number;
    } else if (gn_base_json_is(name, "integer")) {
        return types->number == GN_RE_NONE ? gn_grammar_number(s->pool, &whole, &types->number)
                                           : GN_OK;
    } else if (gn_base_json_is(name, "string")) {
        types->string = s->any_string;
    } else if (gn_base_json_is(name, "array")) {
        types->arrays = any.arrays;
        types->n_arrays = 1;
    } else if (gn_base_json_is(name, "object")) {
        types->objects = any.objects;
        types->n_objects = 1;
    } else {
        return gn_schema_refuse(s, name, GN_E_FORMAT, "\"type\": no such type");
    }
    return GN_OK;
}

static gn_status read_type(gn_schema *s, const gn_json *schema, gn_form *form)
{
    const gn_json *type = gn_base_json_get(schema, "type");
    if (type == NULL) {
        return GN_OK;
    }
    gn_form types;
    gn_form_none(&types);
    if (type->type == GN_JSON_STRING) {
        GN_TRY(add_type(s, type, &types));
    } else if (type->type == GN_JSON_ARRAY) {
        for (const gn_json *one = type->first; one != NULL; one = one->next) {
            GN_TRY(add_type(s, one, &types));
        }
    } else {
        return gn_schema_refuse(s, type, GN_E_FORMAT, "\"type\": expected a string or an array");
    }
    const gn_json *nullable = gn_base_json_get(schema, "nullable"); /* OpenAPI 3.0 */
    types.null = types.null || (nullable != NULL && nullable->type == GN_JSON_TRUE);
    gn_form before = *form;
    return gn_form_and(s, &before, &types, form);
}

static gn_status number_of(gn_schema *s, const gn_json *schema, const char *key, const char **out)
{
    const gn_json *node = gn_base_json_get(schema, key);
    *out = NULL;
    if (node != NULL && node->type != GN_JSON_NUMBER) {
        return gn_schema_refuse(s, node, GN_E_FORMAT, "\"%s\": expected a number", key);
    }
    *out = node != NULL ? node->text : NULL;
    return GN_OK;
}

/* A bound of draft 4 is made exclusive by a boolean beside it. */
static gn_status bound_of(gn_schema *s, const gn_json *schema, const char *key,
                          const char *exclusive_key, gn_number_rule *plain,
                          gn_number_rule *exclusive, bool is_min)
{
    const gn_json *flag = gn_base_json_get(schema, exclusive_key);
    bool is_flag = flag != NULL && (flag->type == GN_JSON_TRUE || flag->type == GN_JSON_FALSE);
    bool excluded = is_flag && flag->type == GN_JSON_TRUE;
    const char *text = NULL;
    GN_TRY(number_of(s, schema, key, &text));
    if (is_min) {
        plain->min = text;
        plain->min_exclusive = excluded;
    } else {
        plain->max = text;
        plain->max_exclusive = excluded;
    }
    if (!is_flag) {
        GN_TRY(number_of(s, schema, exclusive_key, &text));
        if (is_min) {
            exclusive->min = text;
            exclusive->min_exclusive = true;
        } else {
            exclusive->max = text;
            exclusive->max_exclusive = true;
        }
    }
    return GN_OK;
}

static gn_status add_number(gn_schema *s, const gn_json *schema, const gn_number_rule *rule,
                            gn_form *form)
{
    gn_re re;
    if (rule->min == NULL && rule->max == NULL && rule->multiple_of == NULL) {
        return GN_OK;
    }
    gn_status status = gn_grammar_number(s->pool, rule, &re);
    if (status != GN_OK) {
        s->place = schema;
        return status;
    }
    form->number = gn_schema_re_and(s, form->number, re);
    return GN_OK;
}

static gn_status read_number(gn_schema *s, const gn_json *schema, gn_form *form)
{
    gn_number_rule plain = {0};
    gn_number_rule exclusive = {0};
    gn_number_rule multiple = {0};
    GN_TRY(bound_of(s, schema, "minimum", "exclusiveMinimum", &plain, &exclusive, true));
    GN_TRY(bound_of(s, schema, "maximum", "exclusiveMaximum", &plain, &exclusive, false));
    GN_TRY(number_of(s, schema, "multipleOf", &multiple.multiple_of));
    if (form->number == GN_RE_NONE) {
        return GN_OK;
    }
    GN_TRY(add_number(s, schema, &plain, form));
    GN_TRY(add_number(s, schema, &exclusive, form));
    return add_number(s, schema, &multiple, form);
}

static gn_status read_string(gn_schema *s, const gn_json *schema, gn_form *form)
{
    const gn_json *min = gn_base_json_get(schema, "minLength");
    const gn_json *max = gn_base_json_get(schema, "maxLength");
    const gn_json *pattern = gn_base_json_get(schema, "pattern");
    const gn_json *format = gn_base_json_get(schema, "format");
    uint32_t low = 0;
    uint32_t high = GN_RE_MANY;
    if (min != NULL) {
        GN_TRY(gn_schema_count(s, min, &low));
    }
    if (max != NULL) {
        GN_TRY(gn_schema_count(s, max, &high));
    }
    if (min != NULL || max != NULL) {
        gn_re one = gn_grammar_re_json_chars(s->pool, NULL, 0, true);
        gn_re re = low <= high ? gn_grammar_re_repeat(s->pool, one, low, high) : GN_RE_NONE;
        form->string = gn_schema_re_and(s, form->string, re);
    }
    if (pattern != NULL) {
        gn_re re = GN_RE_NONE;
        if (pattern->type != GN_JSON_STRING) {
            return gn_schema_refuse(s, pattern, GN_E_FORMAT, "\"pattern\": expected a string");
        }
        gn_status status =
            gn_grammar_regex_parse(s->pool, pattern->text, pattern->len,
                                   GN_REGEX_SEARCH | GN_REGEX_JSON | GN_REGEX_ECMA, &re);
        if (status != GN_OK) {
            s->place = pattern;
            return status;
        }
        form->string = gn_schema_re_and(s, form->string, re);
    }
    if (format != NULL && format->type == GN_JSON_STRING) {
        bool known = false;
        gn_re re = GN_RE_NONE;
        GN_TRY(gn_schema_format(s, format, &known, &re));
        form->string = known ? gn_schema_re_and(s, form->string, re) : form->string;
    }
    return GN_OK;
}

/* ---- schemas for the same value ---- */

static gn_status and_schema(gn_schema *s, const gn_json *schema, gn_form *form)
{
    const gn_form *one = NULL;
    GN_TRY(gn_schema_form(s, schema, &one));
    gn_form before = *form;
    return gn_form_and(s, &before, one, form);
}

static gn_status check_list(gn_schema *s, const gn_json *list)
{
    return list->type == GN_JSON_ARRAY && list->len > 0
               ? GN_OK
               : gn_schema_refuse(s, list, GN_E_FORMAT, "\"%s\": expected schemas in an array",
                                  list->key);
}

/* The union of branches. Where later keywords ask what was looked at, a value may fulfil several branches and
 * all of them have looked, so their intersections are alternatives of their own. */
static gn_status any_of(gn_schema *s, const gn_json *list, gn_form *out)
{
    gn_form_none(out);
    GN_TRY(check_list(s, list));
    for (const gn_json *branch = list->first; branch != NULL; branch = branch->next) {
        const gn_form *one = NULL;
        GN_TRY(gn_schema_form(s, branch, &one));
        gn_form before = *out;
        gn_form both;
        if (s->unevaluated && branch != list->first) {
            if (list->len > MAX_SUBSETS) {
                return gn_schema_refuse(s, list, GN_E_UNSUPPORTED,
                                        "\"anyOf\" of more than %d branches together with "
                                        "\"unevaluated...\" can't be enforced",
                                        MAX_SUBSETS);
            }
            GN_TRY(gn_form_and(s, &before, one, &both));
            gn_form sum;
            GN_TRY(gn_form_or(s, &before, &both, &sum));
            before = sum;
        }
        GN_TRY(gn_form_or(s, &before, one, out));
    }
    return GN_OK;
}

static bool disjoint(gn_schema *s, const gn_form *a, const gn_form *b)
{
    gn_form both;
    gn_status status = gn_form_and(s, a, b, &both);
    return status == GN_OK && gn_form_is_none(s, &both);
}

/* Exactly one branch: branches that are disjoint from all others as they are, the rest each without the
 * others. */
static gn_status one_of(gn_schema *s, const gn_json *list, gn_form *out)
{
    gn_form_none(out);
    GN_TRY(check_list(s, list));
    for (const gn_json *branch = list->first; branch != NULL; branch = branch->next) {
        const gn_form *one = NULL;
        GN_TRY(gn_schema_form(s, branch, &one));
        gn_form alone = *one;
        for (const gn_json *other = list->first; other != NULL; other = other->next) {
            const gn_form *second = NULL;
            if (other == branch) {
                continue;
            }
            GN_TRY(gn_schema_form(s, other, &second));
            if (!disjoint(s, &alone, second)) {
                gn_form opposite;
                gn_form before = alone;
                GN_TRY(gn_form_not(s, second, other, &opposite));
                GN_TRY(gn_form_and(s, &before, &opposite, &alone));
            }
        }
        gn_form before = *out;
        GN_TRY(gn_form_or(s, &before, &alone, out));
    }
    return GN_OK;
}

static gn_status conditional(gn_schema *s, const gn_json *schema, gn_form *out)
{
    const gn_json *condition = gn_base_json_get(schema, "if");
    const gn_json *then_part = gn_base_json_get(schema, "then");
    const gn_json *else_part = gn_base_json_get(schema, "else");
    const gn_form *yes = NULL;
    GN_TRY(gn_schema_form(s, condition, &yes));
    gn_form when = *yes;
    gn_form otherwise;
    GN_TRY(gn_form_not(s, yes, condition, &otherwise));
    if (then_part != NULL) {
        GN_TRY(and_schema(s, then_part, &when));
    }
    if (else_part != NULL) {
        GN_TRY(and_schema(s, else_part, &otherwise));
    }
    return gn_form_or(s, &when, &otherwise, out);
}

static gn_status and_form(gn_schema *s, const gn_form *one, gn_form *form)
{
    gn_form before = *form;
    return gn_form_and(s, &before, one, form);
}

static gn_status read_combined(gn_schema *s, const gn_json *schema, gn_form *form)
{
    gn_form one;
    const gn_json *all = gn_base_json_get(schema, "allOf");
    const gn_json *any = gn_base_json_get(schema, "anyOf");
    const gn_json *exactly = gn_base_json_get(schema, "oneOf");
    const gn_json *opposite = gn_base_json_get(schema, "not");
    const gn_json *condition = gn_base_json_get(schema, "if");
    if (all != NULL) {
        GN_TRY(check_list(s, all));
        for (const gn_json *part = all->first; part != NULL; part = part->next) {
            GN_TRY(and_schema(s, part, form));
        }
    }
    if (any != NULL) {
        GN_TRY(any_of(s, any, &one));
        GN_TRY(and_form(s, &one, form));
    }
    if (exactly != NULL) {
        GN_TRY(one_of(s, exactly, &one));
        GN_TRY(and_form(s, &one, form));
    }
    if (opposite != NULL) {
        const gn_form *inner = NULL;
        GN_TRY(gn_schema_form(s, opposite, &inner));
        GN_TRY(gn_form_not(s, inner, opposite, &one));
        GN_TRY(and_form(s, &one, form));
    }
    bool wanted = gn_base_json_get(schema, "then") != NULL ||
                  gn_base_json_get(schema, "else") != NULL || s->unevaluated;
    if (condition != NULL && wanted) {
        GN_TRY(conditional(s, schema, &one));
        GN_TRY(and_form(s, &one, form));
    }
    return GN_OK;
}

static gn_status read_refs(gn_schema *s, const gn_json *schema, gn_form *form)
{
    static const char *const keys[] = {"$ref", "$dynamicRef", "$recursiveRef"};
    for (size_t i = 0; i < GN_COUNTOF(keys); i++) {
        const gn_json *ref = gn_base_json_get(schema, keys[i]);
        const gn_json *target = NULL;
        if (ref == NULL || ref->type != GN_JSON_STRING) {
            continue;
        }
        GN_TRY(gn_schema_resolve(s, ref, &target));
        GN_TRY(and_schema(s, target, form));
    }
    return GN_OK;
}

static gn_status read_all(gn_schema *s, const gn_json *schema, gn_form *form)
{
    GN_TRY(gn_form_any(s, form));
    const gn_json *ref = gn_base_json_get(schema, "$ref");
    if (s->ref_alone && ref != NULL && ref->type == GN_JSON_STRING) {
        return read_refs(s, schema, form);
    }
    const gn_json *value = gn_base_json_get(schema, "const");
    const gn_json *values = gn_base_json_get(schema, "enum");
    GN_TRY(read_type(s, schema, form));
    if (value != NULL) {
        gn_form one;
        GN_TRY(gn_schema_value_form(s, value, &one));
        GN_TRY(and_form(s, &one, form));
    }
    if (values != NULL) {
        GN_TRY(read_enum(s, values, form));
    }
    GN_TRY(read_number(s, schema, form));
    GN_TRY(read_string(s, schema, form));
    GN_TRY(gn_schema_read_array(s, schema, form));
    GN_TRY(gn_schema_read_object(s, schema, form));
    GN_TRY(read_refs(s, schema, form));
    GN_TRY(read_combined(s, schema, form));
    return gn_schema_read_unevaluated(s, schema, form);
}

gn_status gn_schema_form(gn_schema *s, const gn_json *schema, const gn_form **out)
{
    if (s->forms[schema->id] != NULL) {
        *out = s->forms[schema->id];
        return GN_OK;
    }
    gn_form *form = gn_schema_alloc(s, 1, sizeof *form);
    if (form == NULL) {
        return gn_alloc_failed();
    }
    if (schema->type == GN_JSON_TRUE) {
        GN_TRY(gn_form_any(s, form));
    } else if (schema->type == GN_JSON_FALSE) {
        gn_form_none(form);
    } else if (schema->type != GN_JSON_OBJECT) {
        return gn_schema_refuse(s, schema, GN_E_FORMAT, "a schema is an object, true or false");
    } else if (s->busy[schema->id] != 0) {
        return gn_schema_refuse(s, schema, GN_E_UNSUPPORTED,
                                "the schema refers to itself for the same value");
    } else {
        if (++s->depth > MAX_DEPTH) {
            return gn_schema_refuse(s, schema, GN_E_LIMIT,
                                    "schemas for one value nested more than %d deep", MAX_DEPTH);
        }
        s->busy[schema->id] = 1;
        GN_TRY(read_all(s, schema, form));
        s->busy[schema->id] = 0;
        s->depth--;
        GN_TRY(gn_grammar_re_status(s->pool));
    }
    s->forms[schema->id] = form;
    *out = form;
    return GN_OK;
}
