/* GGUF files and split sets: maps the files, has each header parsed, and joins the tensors of all
 * parts into the first part's table. The keys of the other parts only repeat the set's own description
 * (split.no, split.count, split.tensors.count) and are checked, then dropped. */
#include "file/gguf.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "file/gguf_table.h"
#include "os/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct gn_gguf {
    char *path; /* NULL for bytes in memory */
    gn_gguf_table table;
    gn_os_map *maps; /* [n_maps], the first part's first */
    size_t n_maps;
};

/* What a part says about the set it belongs to; absent keys leave the defaults of a single file. */
typedef struct split {
    uint64_t no;        /* from 0 */
    uint64_t count;     /* 0 or 1: not split */
    uint64_t n_tensors; /* of all parts */
    bool has_n_tensors;
} split;

static gn_status optional_u64(const gn_gguf_table *table, const char *key, uint64_t *out,
                              bool *found)
{
    gn_status status = gn_gguf_table_get_u64(table, key, out);
    *found = status == GN_OK;
    return status == GN_E_NOT_FOUND ? GN_OK : status;
}

static gn_status read_split(const gn_gguf_table *table, split *out)
{
    bool has_no = false;
    bool has_count = false;
    *out = (split){0};
    GN_TRY(optional_u64(table, "split.no", &out->no, &has_no));
    GN_TRY(optional_u64(table, "split.count", &out->count, &has_count));
    GN_TRY(optional_u64(table, "split.tensors.count", &out->n_tensors, &out->has_n_tensors));
    GN_REQUIRE(out->count <= UINT16_MAX, GN_E_FORMAT,
               "key \"split.count\": found %" PRIu64 ", expected at most %d", out->count,
               UINT16_MAX);
    GN_REQUIRE(!has_no || (has_count && out->no < out->count) || (!has_count && out->no == 0),
               GN_E_FORMAT,
               "key \"split.no\": found %" PRIu64 ", expected less than split.count, %" PRIu64,
               out->no, out->count);
    return GN_OK;
}

/* A model names its architecture; other kinds of file (adapters, importance matrices) say what they are in
 * general.type and need none. */
static gn_status check_architecture(const gn_gguf_table *table)
{
    gn_gguf_str str;
    gn_status status = gn_gguf_table_get_str(table, "general.architecture", &str);
    if (status == GN_OK) {
        GN_REQUIRE(str.len > 0, GN_E_FORMAT,
                   "key \"general.architecture\": found an empty string, expected a name");
        return GN_OK;
    }
    if (status != GN_E_NOT_FOUND) {
        return status;
    }
    gn_gguf_str type;
    if (gn_gguf_table_get_str(table, "general.type", &type) == GN_OK &&
        !(type.len == 5 && memcmp(type.s, "model", 5) == 0)) {
        return GN_OK;
    }
    return gn_base_fail(GN_E_FORMAT, "key \"general.architecture\": not found, expected a string");
}

static gn_status parse_first(gn_gguf *gguf, const unsigned char *data, size_t size, split *set)
{
    GN_TRY(gn_gguf_table_parse(&gguf->table, data, size));
    GN_TRY(read_split(&gguf->table, set));
    /* Only the first part describes the model; whether another part may stand here is decided later. */
    return set->no == 0 ? check_architecture(&gguf->table) : GN_OK;
}

/* ---- the parts of a set ---- */

enum { SUFFIX_BYTES = sizeof "-00001-of-00002.gguf" - 1 };

/* "DIR/NAME-00001-of-00003.gguf" for part 0 of 3, given the path of any part. */
static gn_status part_path(const char *path, uint64_t no, uint64_t count, gn_buf *out)
{
    size_t len = strlen(path);
    size_t stem = len > SUFFIX_BYTES ? len - SUFFIX_BYTES : 0;
    gn_buf_clear(out);
    GN_TRY(gn_buf_append(out, path, stem));
    return gn_buf_printf(out, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", no + 1, count);
}

/* The path given must be that of part 0, by its keys and by its name. */
static gn_status check_first(const char *path, const split *set, gn_buf *name)
{
    GN_TRY(part_path(path, 0, set->count, name));
    GN_REQUIRE(set->no == 0, GN_E_FORMAT,
               "key \"split.no\": found part %" PRIu64 " of %" PRIu64 ", expected the first part",
               set->no + 1, set->count);
    GN_REQUIRE(strcmp(path, name->data) == 0, GN_E_FORMAT,
               "key \"split.count\": found %" PRIu64
               " parts, expected a file name that ends in -00001-of-%05" PRIu64 ".gguf",
               set->count, set->count);
    return GN_OK;
}

static gn_status parse_part(const gn_os_map *map, uint64_t no, const split *set,
                            gn_gguf_table *part)
{
    split own;
    GN_TRY(gn_gguf_table_parse(part, map->data, map->size));
    GN_TRY(read_split(part, &own));
    GN_REQUIRE(own.count == set->count, GN_E_FORMAT,
               "key \"split.count\": found %" PRIu64 ", expected %" PRIu64 " as in the first part",
               own.count, set->count);
    GN_REQUIRE(own.no == no, GN_E_FORMAT, "key \"split.no\": found %" PRIu64 ", expected %" PRIu64,
               own.no, no);
    GN_REQUIRE(
        own.has_n_tensors == set->has_n_tensors && own.n_tensors == set->n_tensors, GN_E_FORMAT,
        "key \"split.tensors.count\": found %" PRIu64 ", expected %" PRIu64 " as in the first part",
        own.n_tensors, set->n_tensors);
    return GN_OK;
}

/* Map part `no` and append its tensors. */
static gn_status add_part(gn_gguf *gguf, uint64_t no, const split *set, gn_buf *name)
{
    GN_TRY(part_path(gguf->path, no, set->count, name));
    gn_os_map *maps = gn_realloc_array(gguf->maps, gguf->n_maps + 1, sizeof *maps);
    if (maps == NULL) {
        return gn_alloc_failed();
    }
    gguf->maps = maps;
    gn_os_map *map = &maps[gguf->n_maps];
    gn_status status = gn_os_map_file(name->data, map);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status,
                                   "%s: part %" PRIu64 " of %" PRIu64 " is missing: ", gguf->path,
                                   no + 1, set->count);
    }
    gguf->n_maps++;
    gn_gguf_table part = {0};
    status = parse_part(map, no, set, &part);
    for (size_t i = 0; status == GN_OK && i < part.n_tensors; i++) {
        status = gn_gguf_table_add_tensor(&gguf->table, &part.tensors[i]);
    }
    gn_gguf_table_fini(&part);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", name->data);
    }
    return GN_OK;
}

static gn_status add_parts(gn_gguf *gguf, const split *set, gn_buf *name)
{
    gn_status status = check_first(gguf->path, set, name);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", gguf->path);
    }
    for (uint64_t no = 1; no < set->count; no++) {
        GN_TRY(add_part(gguf, no, set, name));
    }
    GN_REQUIRE(!set->has_n_tensors || gguf->table.n_tensors == set->n_tensors, GN_E_FORMAT,
               "%s: key \"split.tensors.count\": found %" PRIu64
               ", expected %zu, the tensors of all parts",
               gguf->path, set->n_tensors, gguf->table.n_tensors);
    return GN_OK;
}

/* ---- open and close ---- */

static gn_status open_file(const char *path, gn_gguf *gguf)
{
    gguf->path = gn_strdup(path);
    gguf->maps = gn_calloc(1, sizeof *gguf->maps);
    if (gguf->path == NULL || gguf->maps == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_os_map_file(path, &gguf->maps[0]));
    gguf->n_maps = 1;
    split set;
    gn_status status = parse_first(gguf, gguf->maps[0].data, gguf->maps[0].size, &set);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", path);
    }
    if (set.count <= 1) {
        return GN_OK;
    }
    gn_buf name = {0};
    status = add_parts(gguf, &set, &name);
    gn_buf_fini(&name);
    return status;
}

gn_status gn_gguf_open(const char *path, gn_gguf **out)
{
    gn_gguf *gguf = gn_calloc(1, sizeof *gguf);
    if (gguf == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = open_file(path, gguf);
    if (status != GN_OK) {
        gn_gguf_close(gguf);
        return status;
    }
    *out = gguf;
    return GN_OK;
}

gn_status gn_gguf_open_memory(const void *data, size_t size, gn_gguf **out)
{
    gn_gguf *gguf = gn_calloc(1, sizeof *gguf);
    if (gguf == NULL) {
        return gn_alloc_failed();
    }
    split set;
    gn_status status = parse_first(gguf, data, size, &set);
    if (status == GN_OK && set.count > 1) {
        status = gn_base_fail(GN_E_UNSUPPORTED,
                              "key \"split.count\": found %" PRIu64 " parts, expected one file",
                              set.count);
    }
    if (status != GN_OK) {
        gn_gguf_close(gguf);
        return status;
    }
    *out = gguf;
    return GN_OK;
}

void gn_gguf_close(gn_gguf *gguf)
{
    if (gguf == NULL) {
        return;
    }
    gn_gguf_table_fini(&gguf->table);
    for (size_t i = 0; i < gguf->n_maps; i++) {
        gn_os_unmap(&gguf->maps[i]);
    }
    gn_free(gguf->maps);
    gn_free(gguf->path);
    gn_free(gguf);
}

/* ---- what was read ---- */

uint32_t gn_gguf_version(const gn_gguf *gguf)
{
    return gguf->table.version;
}

uint32_t gn_gguf_alignment(const gn_gguf *gguf)
{
    return gguf->table.alignment;
}

size_t gn_gguf_n_maps(const gn_gguf *gguf)
{
    return gguf->n_maps;
}

const gn_os_map *gn_gguf_map_at(const gn_gguf *gguf, size_t i)
{
    return &gguf->maps[i];
}

size_t gn_gguf_bytes(const gn_gguf *gguf)
{
    size_t bytes = 0;
    for (size_t i = 0; i < gguf->n_maps; i++) {
        bytes += gguf->maps[i].size;
    }
    return bytes;
}

size_t gn_gguf_n_values(const gn_gguf *gguf)
{
    return gguf->table.n_values;
}

const gn_gguf_value *gn_gguf_value_at(const gn_gguf *gguf, size_t i)
{
    return &gguf->table.values[i];
}

size_t gn_gguf_n_tensors(const gn_gguf *gguf)
{
    return gguf->table.n_tensors;
}

const gn_gguf_tensor *gn_gguf_tensor_at(const gn_gguf *gguf, size_t i)
{
    return &gguf->table.tensors[i];
}

const gn_gguf_value *gn_gguf_find(const gn_gguf *gguf, const char *key)
{
    return gn_gguf_table_find(&gguf->table, key);
}

const gn_view *gn_gguf_find_tensor(const gn_gguf *gguf, const char *name)
{
    const uint32_t *index = gn_map_find(&gguf->table.by_name, name, strlen(name));
    return index != NULL ? &gguf->table.tensors[*index].view : NULL;
}

/* Put the file's name in front of a getter's message. */
static gn_status named(const gn_gguf *gguf, gn_status status)
{
    if (status != GN_OK && gguf->path != NULL) {
        return gn_base_fail_prefix(status, "%s: ", gguf->path);
    }
    return status;
}

gn_status gn_gguf_get_u64(const gn_gguf *gguf, const char *key, uint64_t *out)
{
    return named(gguf, gn_gguf_table_get_u64(&gguf->table, key, out));
}

gn_status gn_gguf_get_i64(const gn_gguf *gguf, const char *key, int64_t *out)
{
    return named(gguf, gn_gguf_table_get_i64(&gguf->table, key, out));
}

gn_status gn_gguf_get_f64(const gn_gguf *gguf, const char *key, double *out)
{
    return named(gguf, gn_gguf_table_get_f64(&gguf->table, key, out));
}

gn_status gn_gguf_get_bool(const gn_gguf *gguf, const char *key, bool *out)
{
    return named(gguf, gn_gguf_table_get_bool(&gguf->table, key, out));
}

gn_status gn_gguf_get_str(const gn_gguf *gguf, const char *key, gn_gguf_str *out)
{
    return named(gguf, gn_gguf_table_get_str(&gguf->table, key, out));
}
