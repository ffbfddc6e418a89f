/* From a schema's text to a grammar: reads it, then writes one rule for each conjunction that is reached, from
 * a list of those still to write, so that recursion in schemas is recursion between rules. */
#include "grammar/json_schema.h"

#include "base/alloc.h"
#include "grammar/number.h"
#include "grammar/regex.h"
#include "grammar/schema_impl.h"

#include <stdio.h>
#include <string.h>

enum { MAX_UNIQUE = 64, MAX_SCHEMA_BYTES = 4 << 20 };

/* ---- rules ---- */

static gn_ir rule_of(gn_schema *s, gn_conj conj)
{
    if (conj == GN_CONJ_FALSE) {
        return GN_IR_NONE;
    }
    gn_conj_entry *entry = &s->conj[conj];
    if (entry->rule == GN_IR_NONE) {
        char name[24];
        int len = snprintf(name, sizeof name, "value-%u", conj);
        entry->rule = gn_grammar_ir_rule(s->b, name, (size_t)len);
    }
    return entry->rule;
}

static gn_re quoted(gn_schema *s, gn_re inside)
{
    gn_re quote = gn_grammar_re_literal(s->pool, "\"", 1);
    return gn_grammar_re_cat(s->pool, quote, gn_grammar_re_cat(s->pool, inside, quote));
}

/* ---- arrays ---- */

/* A finite set of scalars that the conjunction allows, as texts; false where it is not one. */
static gn_status finite_set(gn_schema *s, gn_conj conj, gn_re *out, size_t *n, bool *finite)
{
    const gn_form *form = NULL;
    GN_TRY(gn_form_of_conj(s, conj, &form));
    *n = 0;
    *finite = form->n_arrays == 0 && form->n_objects == 0;
    if (form->null) {
        out[(*n)++] = gn_grammar_re_literal(s->pool, "null", 4);
    }
    if (form->no) {
        out[(*n)++] = gn_grammar_re_literal(s->pool, "false", 5);
    }
    if (form->yes) {
        out[(*n)++] = gn_grammar_re_literal(s->pool, "true", 4);
    }
    gn_re rest_strings = form->string;
    gn_re rest_numbers = form->number;
    uint32_t n_literals = conj <= GN_CONJ_FALSE ? 0 : s->conj[conj].n;
    for (uint32_t l = 0; l < n_literals && *finite; l++) {
        gn_literal literal = s->conj[conj].literals[l];
        const gn_json *values = literal.kind == GN_LITERAL_SCHEMA
                                    ? gn_base_json_get(s->nodes[literal.id], "enum")
                                    : NULL;
        for (const gn_json *v = values != NULL ? values->first : NULL; v != NULL; v = v->next) {
            gn_form one;
            if (v->type != GN_JSON_STRING && v->type != GN_JSON_NUMBER) {
                continue;
            }
            GN_TRY(gn_schema_value_form(s, v, &one));
            bool string = v->type == GN_JSON_STRING;
            gn_re *rest = string ? &rest_strings : &rest_numbers;
            const gn_re in[] = {*rest, string ? one.string : one.number};
            gn_re hit = gn_grammar_re_and(s->pool, in, 2);
            if (gn_grammar_re_min_len(s->pool, hit) == GN_RE_NEVER) {
                continue;
            }
            GN_REQUIRE(*n < MAX_UNIQUE, GN_E_LIMIT, "\"uniqueItems\" over more than %d values",
                       MAX_UNIQUE);
            out[(*n)++] = string ? quoted(s, hit) : hit;
            const gn_re left[] = {*rest, gn_grammar_re_not(s->pool, in[1])};
            *rest = gn_grammar_re_and(s->pool, left, 2);
        }
    }
    *finite = *finite && gn_grammar_re_min_len(s->pool, rest_strings) == GN_RE_NEVER &&
              gn_grammar_re_min_len(s->pool, rest_numbers) == GN_RE_NEVER;
    return GN_OK;
}

static gn_status emit_unique(gn_schema *s, const gn_array_form *a, gn_ir_array *to)
{
    gn_re *values = gn_schema_alloc(s, MAX_UNIQUE, sizeof *values);
    bool finite = false;
    if (values == NULL) {
        return gn_alloc_failed();
    }
    if (a->n_prefix == 0 && !a->has_contains) {
        GN_TRY(finite_set(s, a->items, values, &to->n_unique, &finite));
    }
    if (!finite) {
        return gn_schema_refuse(s, a->at, GN_E_UNSUPPORTED,
                                "\"uniqueItems\" can be enforced for a finite set of values only");
    }
    to->unique = values;
    if (to->n_unique == 0) {
        to->unique = NULL;
        to->max_items = 0;
    }
    return GN_OK;
}

/* Items that count and items that do not. Where there may be too many that count, those that do not are
 * exactly the others; else an item that counts may also pass as one that does not. */
static gn_status emit_contains(gn_schema *s, const gn_array_form *a, gn_ir_array *to, gn_ir *prefix,
                               gn_ir *prefix_matching)
{
    gn_conj others = GN_CONJ_TRUE;
    if (a->max_matching != GN_IR_MANY) {
        GN_TRY(gn_schema_conj_not(s, a->matching, &others));
    }
    for (size_t i = 0; i < to->n_prefix; i++) {
        gn_conj item = i < a->n_prefix ? a->prefix[i] : a->items;
        gn_conj counts = GN_CONJ_FALSE;
        gn_conj rest = item;
        if (i >= a->contains_from) {
            GN_TRY(gn_schema_conj_and(s, item, a->matching, &counts));
            GN_TRY(gn_schema_conj_and(s, item, others, &rest));
        }
        prefix[i] = rule_of(s, rest);
        prefix_matching[i] = rule_of(s, counts);
    }
    gn_conj counts;
    gn_conj rest;
    GN_TRY(gn_schema_conj_and(s, a->items, a->matching, &counts));
    GN_TRY(gn_schema_conj_and(s, a->items, others, &rest));
    to->items = rule_of(s, rest);
    to->matching = rule_of(s, counts);
    to->prefix_matching = prefix_matching;
    to->min_matching = a->min_matching;
    to->max_matching = a->max_matching;
    return GN_OK;
}

static gn_status emit_array(gn_schema *s, const gn_array_form *a, gn_ir *out)
{
    size_t n = a->has_contains && a->contains_from > a->n_prefix ? a->contains_from : a->n_prefix;
    if (a->max < n) {
        n = a->max; /* what can't be reached needs no place */
    }
    gn_ir_array to = {.n_prefix = n,
                      .min_items = a->min,
                      .max_items = a->max,
                      .max_matching = GN_IR_MANY,
                      .style = s->style};
    gn_ir *prefix = gn_schema_alloc(s, n, sizeof *prefix);
    gn_ir *matching = gn_schema_alloc(s, n, sizeof *matching);
    if (prefix == NULL || matching == NULL) {
        return gn_alloc_failed();
    }
    to.prefix = prefix;
    if (a->has_contains) {
        GN_TRY(emit_contains(s, a, &to, prefix, matching));
    } else {
        for (size_t i = 0; i < n; i++) {
            prefix[i] = rule_of(s, i < a->n_prefix ? a->prefix[i] : a->items);
        }
        to.items = rule_of(s, a->items);
    }
    if (a->unique && a->max > 1) {
        GN_TRY(emit_unique(s, a, &to));
    }
    *out = gn_grammar_ir_array(s->b, &to);
    return GN_OK;
}

/* ---- objects ---- */

static gn_status emit_needs(gn_schema *s, const gn_object_form *o, gn_ir_member *members)
{
    for (size_t i = 0; i < o->n_members; i++) {
        size_t n = 0;
        uint32_t *needs = o->n_needs != 0 ? gn_schema_alloc(s, o->n_needs, sizeof *needs) : NULL;
        if (o->n_needs != 0 && needs == NULL) {
            return gn_alloc_failed();
        }
        for (size_t k = 0; k < o->n_needs; k++) {
            if (o->needs[k].key == i) {
                needs[n++] = o->needs[k].other;
            }
        }
        members[i].needs = needs;
        members[i].n_needs = n;
    }
    return GN_OK;
}

static gn_status emit_object(gn_schema *s, const gn_object_form *o, gn_ir *out)
{
    gn_ir_member *members = gn_schema_alloc(s, o->n_members + o->n_regions, sizeof *members);
    gn_re *named = gn_schema_alloc(s, o->n_members, sizeof *named);
    if (members == NULL || named == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    for (; n < o->n_members; n++) {
        const gn_schema_member *m = &o->members[n];
        named[n] = gn_schema_key(s, m->name, m->len);
        members[n] = (gn_ir_member){
            .key = quoted(s, named[n]), .value = rule_of(s, m->value), .required = m->required};
    }
    GN_TRY(emit_needs(s, o, members));
    const gn_re others =
        gn_grammar_re_not(s->pool, gn_grammar_re_alt(s->pool, named, o->n_members));
    for (size_t i = 0; i < o->n_regions; i++) {
        const gn_re both[] = {o->regions[i].keys, others};
        gn_re keys = o->n_members != 0 ? gn_grammar_re_and(s->pool, both, 2) : o->regions[i].keys;
        gn_ir value = rule_of(s, o->regions[i].value);
        if (value != GN_IR_NONE) {
            members[n++] = (gn_ir_member){.key = quoted(s, keys), .value = value, .is_free = true};
        }
    }
    const gn_ir_object to = {.members = members,
                             .n_members = n,
                             .min_props = o->min,
                             .max_props = o->max,
                             .ordered = s->options.ordered,
                             .style = s->style};
    *out = gn_grammar_ir_object(s->b, &to);
    return GN_OK;
}

/* ---- a whole form ---- */

static gn_status emit_form(gn_schema *s, const gn_form *f, gn_ir *out)
{
    gn_ir *list = gn_schema_alloc(s, 5 + f->n_arrays + f->n_objects, sizeof *list);
    if (list == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    if (f->null) {
        list[n++] = gn_grammar_ir_literal(s->b, "null", 4);
    }
    if (f->no) {
        list[n++] = gn_grammar_ir_literal(s->b, "false", 5);
    }
    if (f->yes) {
        list[n++] = gn_grammar_ir_literal(s->b, "true", 4);
    }
    if (f->number != GN_RE_NONE) {
        list[n++] = gn_grammar_ir_term(s->b, f->number);
    }
    if (f->string != GN_RE_NONE) {
        list[n++] = gn_grammar_ir_term(s->b, quoted(s, f->string));
    }
    for (size_t i = 0; i < f->n_arrays; i++) {
        GN_TRY(emit_array(s, f->arrays[i], &list[n++]));
    }
    for (size_t i = 0; i < f->n_objects; i++) {
        GN_TRY(emit_object(s, f->objects[i], &list[n++]));
    }
    *out = gn_grammar_ir_alt(s->b, list, n);
    return GN_OK;
}

static gn_status emit_all(gn_schema *s, gn_conj top, gn_ir *out)
{
    *out = rule_of(s, top);
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t c = 0; c < s->n_conj; c++) {
            if (s->conj[c].rule == GN_IR_NONE || s->conj[c].written) {
                continue;
            }
            const gn_form *form = NULL;
            gn_ir body = GN_IR_NONE;
            s->conj[c].written = true;
            more = true;
            GN_TRY(gn_form_of_conj(s, c, &form));
            GN_TRY(emit_form(s, form, &body));
            gn_grammar_ir_define(s->b, s->conj[c].rule, body);
            GN_TRY(gn_grammar_re_status(s->pool));
            GN_TRY(gn_grammar_ir_status(s->b));
        }
    }
    return GN_OK;
}

/* ---- entry ---- */

/* The draft, by "$schema". A meta-schema of someone's own may give keywords another meaning. */
static gn_status find_draft(gn_schema *s)
{
    static const char *const old[] = {"draft-03", "draft-04", "draft-05", "draft-06", "draft-07"};
    const gn_json *schema = gn_base_json_get(s->root, "$schema");
    if (schema == NULL || schema->type != GN_JSON_STRING) {
        return GN_OK;
    }
    if (strstr(schema->text, "json-schema.org/") == NULL) {
        return gn_schema_refuse(s, schema, GN_E_UNSUPPORTED,
                                "a meta-schema other than those of json-schema.org");
    }
    for (size_t i = 0; i < GN_COUNTOF(old); i++) {
        s->ref_alone = s->ref_alone || strstr(schema->text, old[i]) != NULL;
    }
    return GN_OK;
}

static gn_status prepare(gn_schema *s, const char *json, size_t len)
{
    static const char decimal[] = "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?";
    const gn_number_rule anything = {0};
    GN_REQUIRE(len <= MAX_SCHEMA_BYTES, GN_E_LIMIT, "the schema has %zu bytes, at most %d are read",
               len, MAX_SCHEMA_BYTES);
    GN_TRY(gn_base_json_parse(&s->arena, json, len, &s->root, &s->n_nodes));
    s->nodes = gn_schema_alloc(s, s->n_nodes, sizeof *s->nodes);
    s->forms = gn_schema_alloc(s, s->n_nodes, sizeof *s->forms);
    s->busy = gn_schema_alloc(s, s->n_nodes, 1);
    if (s->nodes == NULL || s->forms == NULL || s->busy == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(find_draft(s));
    GN_TRY(gn_schema_index(s));
    GN_TRY(gn_grammar_ir_create(NULL, &s->b));
    s->pool = gn_grammar_ir_pool(s->b);
    s->style = gn_grammar_ir_json_blanks(s->pool, s->options.max_blanks);
    s->any_string = gn_grammar_re_repeat(s->pool, gn_grammar_re_json_chars(s->pool, NULL, 0, true),
                                         0, GN_RE_MANY);
    GN_TRY(gn_grammar_number(s->pool, &anything, &s->any_number));
    return gn_grammar_regex_parse(s->pool, decimal, strlen(decimal), 0, &s->plain_number);
}

static gn_status compile(gn_schema *s, const char *json, size_t len, gn_grammar **out)
{
    gn_conj top;
    gn_ir root = GN_IR_NONE;
    GN_TRY(prepare(s, json, len));
    GN_TRY(gn_schema_conj(s, NULL, 0, &top));
    s->place = s->root;
    GN_TRY(gn_schema_conj_of(s, s->root, &top));
    GN_TRY(emit_all(s, top, &root));
    gn_ir_builder *b = s->b;
    s->b = NULL;
    if (s->options.frame != NULL) {
        root = gn_grammar_frame(b, s->options.frame, root);
    }
    return gn_grammar_compile(b, root, out);
}

/* Append the part of a JSON pointer that leads to a node from its parent. */
static gn_status put_step(const gn_json *node, gn_buf *out)
{
    GN_TRY(gn_buf_putc(out, '/'));
    if (node->key == NULL) {
        size_t index = 0;
        for (const gn_json *c = node->parent->first; c != node; c = c->next) {
            index++;
        }
        return gn_buf_printf(out, "%zu", index);
    }
    for (size_t i = 0; i < node->key_len; i++) {
        char c = node->key[i];
        GN_TRY(c == '~'   ? gn_buf_puts(out, "~0")
               : c == '/' ? gn_buf_puts(out, "~1")
                          : gn_buf_putc(out, c));
    }
    return GN_OK;
}

/* Append the JSON pointer of a node. Nodes know their parents alone: each step walks up to where it is. */
static gn_status put_pointer(const gn_json *node, gn_buf *out)
{
    size_t depth = 0;
    for (const gn_json *at = node; at->parent != NULL; at = at->parent) {
        depth++;
    }
    GN_TRY(gn_buf_puts(out, ""));
    while (depth-- > 0) {
        const gn_json *at = node;
        for (size_t i = 0; i < depth; i++) {
            at = at->parent;
        }
        GN_TRY(put_step(at, out));
    }
    return GN_OK;
}

gn_status gn_grammar_json_schema(const char *json, size_t len,
                                 const gn_json_schema_options *options, gn_grammar **out,
                                 gn_buf *pointer)
{
    gn_schema s = {.options = options != NULL ? *options : (gn_json_schema_options){0}};
    gn_arena_init(&s.arena, (size_t)256 << 20);
    gn_status status = compile(&s, json, len, out);
    if (status != GN_OK && pointer != NULL && s.place != NULL) {
        gn_status put = put_pointer(s.place, pointer);
        status = put == GN_E_NOMEM ? put : status;
    }
    gn_grammar_ir_destroy(s.b);
    gn_map_fini(&s.conj_ids);
    gn_free(s.conj);
    gn_free(s.anchors);
    gn_free(s.resources);
    gn_arena_fini(&s.arena);
    return status;
}
