/* jansson bounds nesting, refuses bad UTF-8, NUL bytes, numbers that overflow and (asked to) duplicate
 * keys; sizes are bounded here. */
#include "file/hf.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "os/map.h"

#include <string.h>

gn_status gn_hf_parse_object(const void *text, size_t n, json_t **out)
{
    json_error_t error;
    GN_REQUIRE(n > 0, GN_E_FORMAT, "found no text, expected a JSON object");
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        /* Where a small allocation fails jansson sets no text at all. */
        if (json_error_code(&error) == json_error_out_of_memory || error.text[0] == '\0') {
            return gn_alloc_failed();
        }
        return gn_base_fail(GN_E_FORMAT, "line %d, column %d: found bad JSON: %s", error.line,
                            error.column, error.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return gn_base_fail(GN_E_FORMAT, "found a JSON array, expected an object");
    }
    *out = root;
    return GN_OK;
}

gn_status gn_hf_load_object(const char *path, json_t **out)
{
    gn_os_map map = {0};
    GN_TRY(gn_os_map_file(path, &map));
    gn_status status;
    if (map.size > GN_HF_MAX_JSON_BYTES) {
        status = gn_base_fail(GN_E_FORMAT, "found %zu bytes, expected at most %zu", map.size,
                              GN_HF_MAX_JSON_BYTES);
    } else {
        status = gn_hf_parse_object(map.data, map.size, out);
    }
    gn_os_unmap(&map);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", path);
    }
    return GN_OK;
}

static gn_status copy_text(const gn_os_map *map, char **out)
{
    GN_REQUIRE(map->size <= GN_HF_MAX_TEMPLATE_BYTES, GN_E_FORMAT,
               "found %zu bytes, expected at most %zu", map->size, GN_HF_MAX_TEMPLATE_BYTES);
    const char *text = map->data != NULL ? (const char *)map->data : "";
    GN_REQUIRE(memchr(text, '\0', map->size) == NULL, GN_E_FORMAT,
               "found a NUL byte, expected text");
    GN_REQUIRE(gn_utf8_valid(text, map->size), GN_E_FORMAT,
               "found bytes that are not UTF-8, expected text");
    char *copy = gn_strndup(text, map->size);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    *out = copy;
    return GN_OK;
}

gn_status gn_hf_load_text(const char *path, char **out)
{
    gn_os_map map = {0};
    GN_TRY(gn_os_map_file(path, &map));
    gn_status status = copy_text(&map, out);
    gn_os_unmap(&map);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", path);
    }
    return GN_OK;
}
