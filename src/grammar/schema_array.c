/* The keywords of arrays, in the spelling of 2020-12 (prefixItems, items) and the older one (items as a list,
 * additionalItems). */
#include "grammar/schema_impl.h"

#include "base/alloc.h"

static gn_status read_prefix(gn_schema *s, const gn_json *list, gn_array_form *a)
{
    a->prefix = gn_schema_alloc(s, list->len, sizeof *a->prefix);
    if (a->prefix == NULL) {
        return gn_alloc_failed();
    }
    for (const gn_json *item = list->first; item != NULL; item = item->next) {
        GN_TRY(gn_schema_conj_of(s, item, &a->prefix[a->n_prefix++]));
    }
    a->evaluated = a->n_prefix;
    return GN_OK;
}

static gn_status read_items(gn_schema *s, const gn_json *schema, gn_array_form *a)
{
    const gn_json *prefix = gn_base_json_get(schema, "prefixItems");
    const gn_json *items = gn_base_json_get(schema, "items");
    if (items != NULL && items->type == GN_JSON_ARRAY) {
        prefix = items;
        items = gn_base_json_get(schema, "additionalItems");
    }
    if (prefix != NULL) {
        if (prefix->type != GN_JSON_ARRAY) {
            return gn_schema_refuse(s, prefix, GN_E_FORMAT, "\"%s\": expected an array",
                                    prefix->key);
        }
        GN_TRY(read_prefix(s, prefix, a));
    }
    if (items != NULL) {
        GN_TRY(gn_schema_conj_of(s, items, &a->items));
        a->evaluated = SIZE_MAX;
    }
    return GN_OK;
}

static gn_status read_contains(gn_schema *s, const gn_json *schema, gn_array_form *a)
{
    const gn_json *contains = gn_base_json_get(schema, "contains");
    const gn_json *min = gn_base_json_get(schema, "minContains");
    const gn_json *max = gn_base_json_get(schema, "maxContains");
    if (contains == NULL) {
        return GN_OK;
    }
    a->has_contains = true;
    a->at = contains;
    a->min_matching = 1;
    GN_TRY(gn_schema_conj_of(s, contains, &a->matching));
    if (min != NULL) {
        GN_TRY(gn_schema_count(s, min, &a->min_matching));
    }
    return max != NULL ? gn_schema_count(s, max, &a->max_matching) : GN_OK;
}

gn_status gn_schema_read_array(gn_schema *s, const gn_json *schema, gn_form *form)
{
    static const char *const keys[] = {"prefixItems", "items",    "contains",
                                       "minItems",    "maxItems", "uniqueItems"};
    bool any = false;
    for (size_t i = 0; i < GN_COUNTOF(keys); i++) {
        any = any || gn_base_json_get(schema, keys[i]) != NULL;
    }
    if (!any) {
        return GN_OK;
    }
    gn_array_form *a = gn_form_any_array(s);
    if (a == NULL) {
        return gn_alloc_failed();
    }
    const gn_json *min = gn_base_json_get(schema, "minItems");
    const gn_json *max = gn_base_json_get(schema, "maxItems");
    const gn_json *unique = gn_base_json_get(schema, "uniqueItems");
    GN_TRY(read_items(s, schema, a));
    GN_TRY(read_contains(s, schema, a));
    if (min != NULL) {
        GN_TRY(gn_schema_count(s, min, &a->min));
    }
    if (max != NULL) {
        GN_TRY(gn_schema_count(s, max, &a->max));
    }
    if (unique != NULL && unique->type == GN_JSON_TRUE) {
        a->unique = true;
        a->at = unique;
    }
    gn_form arrays;
    gn_form before = *form;
    GN_TRY(gn_form_any(s, &arrays));
    arrays.arrays[0] = a;
    return gn_form_and(s, &before, &arrays, form);
}
