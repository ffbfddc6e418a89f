/* One file: length, JSON header, data. jansson reads the header (no NUL bytes, valid UTF-8, no duplicate
 * keys, bounded depth); what it says is checked here: every tensor has exactly dtype, shape and
 * data_offsets, its size is what shape and dtype give, and the data section is covered without overlap,
 * hole or rest, as the specification demands. Names are copied, for the JSON tree is dropped after open.
 *
 * A sharded model: the index names a file for each tensor. Each file is opened once; index and files must
 * agree in both directions. */
#include "file/safetensors.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/map.h"
#include "file/extent.h"
#include "file/hf.h"
#include "file/show.h"
#include "os/map.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* Limits beyond the specification's; docs/FORMATS.md lists them. */
enum {
    LENGTH_BYTES = 8,
    MAX_HEADER_BYTES = 100000000, /* the specification's */
    MAX_NAME_BYTES = 1024,
    MAX_TENSORS = 1 << 18,
    MAX_SHARDS = 4096
};

typedef struct pair {
    const char *key;
    const char *value;
} pair;

struct gn_safetensors {
    gn_os_map *maps; /* [n_maps] */
    size_t n_maps;
    gn_safetensors_tensor *tensors; /* [n_tensors] */
    size_t n_tensors;
    gn_map by_name; /* → index into tensors */
    pair *metadata; /* [n_metadata] */
    size_t n_metadata;
    gn_arena strings; /* names and metadata */
};

/* ---- one tensor's description ---- */

typedef struct dtype_name {
    const char *name;
    gn_dtype dtype;
} dtype_name;

static const gn_dtype_info *find_dtype(const char *name)
{
    static const dtype_name table[] = {
        {"F32", GN_DTYPE_F32},         {"F16", GN_DTYPE_F16},         {"BF16", GN_DTYPE_BF16},
        {"F64", GN_DTYPE_F64},         {"F8_E4M3", GN_DTYPE_F8_E4M3}, {"F8_E5M2", GN_DTYPE_F8_E5M2},
        {"F8_E8M0", GN_DTYPE_F8_E8M0}, {"I8", GN_DTYPE_I8},           {"I16", GN_DTYPE_I16},
        {"I32", GN_DTYPE_I32},         {"I64", GN_DTYPE_I64},         {"U8", GN_DTYPE_U8},
        {"U16", GN_DTYPE_U16},         {"U32", GN_DTYPE_U32},         {"U64", GN_DTYPE_U64},
        {"BOOL", GN_DTYPE_BOOL},
    };
    for (size_t i = 0; i < GN_COUNTOF(table); i++) {
        if (strcmp(name, table[i].name) == 0) {
            return gn_dtype_find((uint32_t)table[i].dtype);
        }
    }
    return NULL;
}

/* Types of the format that no view can hold: parts of a byte, and complex numbers. */
static bool is_foreign_dtype(const char *name)
{
    static const char *const names[] = {"F4", "F6_E2M3", "F6_E3M2", "C64"};
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *json_kind(const json_t *value)
{
    switch (value != NULL ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: break;
    }
    return value != NULL ? "null" : "nothing";
}

static gn_status read_dtype(const json_t *value, const gn_dtype_info **out)
{
    GN_REQUIRE(json_is_string(value), GN_E_FORMAT, "dtype: found %s, expected a string",
               json_kind(value));
    const char *name = json_string_value(value);
    const gn_dtype_info *info = find_dtype(name);
    if (info == NULL) {
        gn_file_shown shown = gn_file_show(name, strlen(name));
        GN_REQUIRE(!is_foreign_dtype(name), GN_E_UNSUPPORTED,
                   "dtype: found %s, which is known but not supported", shown.text);
        return gn_base_fail(GN_E_FORMAT, "dtype: found \"%s\", expected one of the format's",
                            shown.text);
    }
    *out = info;
    return GN_OK;
}

static gn_status read_shape(const json_t *value, const gn_dtype_info *info, gn_view *view)
{
    GN_REQUIRE(json_is_array(value), GN_E_FORMAT, "shape: found %s, expected an array",
               json_kind(value));
    size_t n = json_array_size(value);
    GN_REQUIRE(n <= GN_VIEW_MAX_DIMS, GN_E_UNSUPPORTED,
               "shape: found %zu dimensions, expected at most %d", n, GN_VIEW_MAX_DIMS);
    view->dtype = info->dtype;
    view->n_dims = n != 0 ? (int)n : 1;
    size_t bytes = info->block_bytes;
    for (size_t i = 0; i < GN_VIEW_MAX_DIMS; i++) {
        view->shape[i] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(value, i);
        GN_REQUIRE(json_is_integer(dim), GN_E_FORMAT,
                   "shape: dimension %zu: found %s, expected an integer", i, json_kind(dim));
        json_int_t d = json_integer_value(dim);
        GN_REQUIRE(d >= 1, GN_E_FORMAT,
                   "shape: dimension %zu: found %" JSON_INTEGER_FORMAT ", expected 1 or more", i,
                   d);
        GN_REQUIRE(gn_checked_mul(bytes, (size_t)d, &bytes) && bytes <= INT64_MAX, GN_E_FORMAT,
                   "shape: dimension %zu: found %" JSON_INTEGER_FORMAT
                   ", expected a product of dimensions below 2^63 bytes",
                   i, d);
        view->shape[i] = (uint64_t)d;
    }
    view->bytes = bytes;
    view->row_bytes = (size_t)view->shape[view->n_dims - 1] * info->block_bytes;
    return GN_OK;
}

static gn_status read_offsets(const json_t *value, size_t room, gn_extent *extent)
{
    GN_REQUIRE(json_is_array(value) && json_array_size(value) == 2, GN_E_FORMAT,
               "data_offsets: found %s, expected an array of two integers",
               json_is_array(value) ? "another number of elements" : json_kind(value));
    const json_t *first = json_array_get(value, 0);
    const json_t *last = json_array_get(value, 1);
    GN_REQUIRE(json_is_integer(first) && json_is_integer(last), GN_E_FORMAT,
               "data_offsets: found %s and %s, expected two integers", json_kind(first),
               json_kind(last));
    json_int_t begin = json_integer_value(first);
    json_int_t end = json_integer_value(last);
    GN_REQUIRE(begin >= 0 && begin <= end, GN_E_FORMAT,
               "data_offsets: found %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT
               ", expected 0 or more in ascending order",
               begin, end);
    GN_REQUIRE((uint64_t)end <= room, GN_E_FORMAT,
               "data_offsets: found an end of %" JSON_INTEGER_FORMAT
               ", expected at most %zu (the data section)",
               end, room);
    extent->begin = (uint64_t)begin;
    extent->end = (uint64_t)end;
    return GN_OK;
}

static gn_status read_tensor(const json_t *entry, const unsigned char *data, size_t room,
                             gn_view *view, gn_extent *extent)
{
    GN_REQUIRE(json_is_object(entry), GN_E_FORMAT, "found %s, expected an object",
               json_kind(entry));
    GN_REQUIRE(json_object_size(entry) <= 3, GN_E_FORMAT,
               "found %zu fields, expected dtype, shape and data_offsets", json_object_size(entry));
    const gn_dtype_info *info = NULL;
    GN_TRY(read_dtype(json_object_get(entry, "dtype"), &info));
    GN_TRY(read_shape(json_object_get(entry, "shape"), info, view));
    GN_TRY(read_offsets(json_object_get(entry, "data_offsets"), room, extent));
    GN_REQUIRE(extent->end - extent->begin == view->bytes, GN_E_FORMAT,
               "data_offsets: found %" PRIu64 " bytes, expected %zu (dtype and shape)",
               extent->end - extent->begin, view->bytes);
    view->data = data + extent->begin;
    return GN_OK;
}

/* ---- the header of one file ---- */

static gn_status copy_string(gn_safetensors *st, const char *s, size_t len, const char **out)
{
    *out = gn_arena_strndup(&st->strings, s, len);
    return *out != NULL ? GN_OK : gn_alloc_failed();
}

static gn_status read_metadata(gn_safetensors *st, json_t *object)
{
    GN_REQUIRE(json_is_object(object), GN_E_FORMAT,
               "__metadata__: found %s, expected an object of strings", json_kind(object));
    bool keep = st->metadata == NULL;
    if (keep) {
        st->metadata = gn_calloc(json_object_size(object), sizeof *st->metadata);
        if (st->metadata == NULL) {
            return gn_alloc_failed();
        }
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        GN_REQUIRE(json_is_string(value), GN_E_FORMAT,
                   "__metadata__: \"%s\": found %s, expected a string",
                   gn_file_show(key, strlen(key)).text, json_kind(value));
        if (keep) {
            pair *p = &st->metadata[st->n_metadata];
            GN_TRY(copy_string(st, key, strlen(key), &p->key));
            GN_TRY(copy_string(st, json_string_value(value), json_string_length(value), &p->value));
            st->n_metadata++;
        }
    }
    return GN_OK;
}

/* No overlap, no hole, no rest. */
static gn_status check_cover(const gn_safetensors_tensor *tensors, const gn_extent *extents,
                             size_t n, size_t room)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = tensors[extents[i].index].name;
        GN_REQUIRE(extents[i].begin == end, GN_E_FORMAT,
                   "tensor \"%s\": data_offsets: found %" PRIu64 ", expected %" PRIu64
                   " (%s the tensor before it)",
                   gn_file_show(name, strlen(name)).text, extents[i].begin, end,
                   extents[i].begin < end ? "it overlaps" : "a hole after");
        end = extents[i].end;
    }
    GN_REQUIRE(end == room, GN_E_FORMAT,
               "data section: found %zu bytes, expected %" PRIu64 " (the end of the last tensor)",
               room, end);
    return GN_OK;
}

/* Move this file's tensors to the list in the order of their data. */
static gn_status append_tensors(gn_safetensors *st, const gn_safetensors_tensor *tensors,
                                const gn_extent *extents, size_t n)
{
    if (n == 0) {
        return GN_OK;
    }
    gn_safetensors_tensor *all =
        gn_realloc_array(st->tensors, st->n_tensors + n, sizeof *st->tensors);
    if (all == NULL) {
        return gn_alloc_failed();
    }
    st->tensors = all;
    for (size_t i = 0; i < n; i++) {
        const gn_safetensors_tensor *tensor = &tensors[extents[i].index];
        bool added = false;
        GN_TRY(gn_map_add(&st->by_name, tensor->name, strlen(tensor->name), (uint32_t)st->n_tensors,
                          &added, NULL));
        GN_REQUIRE(added, GN_E_FORMAT, "tensor \"%s\": found in another file too, expected once",
                   gn_file_show(tensor->name, strlen(tensor->name)).text);
        st->tensors[st->n_tensors++] = *tensor;
    }
    return GN_OK;
}

static gn_status read_entries(gn_safetensors *st, json_t *root, const unsigned char *data,
                              size_t room, gn_safetensors_tensor *tensors, gn_extent *extents)
{
    size_t n = 0;
    const char *key;
    json_t *entry;
    json_object_foreach(root, key, entry)
    {
        if (strcmp(key, "__metadata__") == 0) {
            GN_TRY(read_metadata(st, entry));
            continue;
        }
        const char *fault = gn_file_name_fault(key, strlen(key), MAX_NAME_BYTES);
        gn_file_shown shown = gn_file_show(key, strlen(key));
        GN_REQUIRE(fault == NULL, GN_E_FORMAT,
                   "tensor name \"%s\" %s, expected 1 to %d bytes of text", shown.text, fault,
                   MAX_NAME_BYTES);
        gn_status status = read_tensor(entry, data, room, &tensors[n].view, &extents[n]);
        if (status != GN_OK) {
            return gn_base_fail_prefix(status, "tensor \"%s\": ", shown.text);
        }
        GN_TRY(copy_string(st, key, strlen(key), &tensors[n].name));
        extents[n].index = (uint32_t)n;
        n++;
    }
    gn_extent_sort(extents, n);
    GN_TRY(check_cover(tensors, extents, n, room));
    return append_tensors(st, tensors, extents, n);
}

static gn_status read_header(gn_safetensors *st, json_t *root, const unsigned char *data,
                             size_t room)
{
    size_t n = json_object_size(root);
    GN_REQUIRE(n <= MAX_TENSORS && st->n_tensors + n <= MAX_TENSORS, GN_E_FORMAT,
               "found %zu tensors, expected at most %d", st->n_tensors + n, MAX_TENSORS);
    gn_status status = GN_OK;
    gn_safetensors_tensor *tensors = gn_calloc(n, sizeof *tensors);
    gn_extent *extents = gn_calloc(n, sizeof *extents);
    if (tensors == NULL || extents == NULL) {
        status = gn_alloc_failed();
    } else {
        status = read_entries(st, root, data, room, tensors, extents);
    }
    gn_free(extents);
    gn_free(tensors);
    return status;
}

static gn_status parse_file(gn_safetensors *st, const unsigned char *data, size_t size)
{
    GN_REQUIRE(size >= LENGTH_BYTES, GN_E_FORMAT,
               "offset 0: header length: found a file of %zu bytes, expected at least %d", size,
               LENGTH_BYTES);
    uint64_t length = 0;
    memcpy(&length, data, sizeof length);
    GN_REQUIRE(length <= size - LENGTH_BYTES, GN_E_FORMAT,
               "offset 0: header length: found %" PRIu64
               ", expected at most %zu (the rest of the file)",
               length, size - LENGTH_BYTES);
    GN_REQUIRE(length <= MAX_HEADER_BYTES, GN_E_FORMAT,
               "offset 0: header length: found %" PRIu64 ", expected at most %d", length,
               MAX_HEADER_BYTES);
    const unsigned char *text = data + LENGTH_BYTES;
    GN_REQUIRE(length >= 2 && text[0] == '{', GN_E_FORMAT,
               "offset 8: header: found no \"{\", expected a JSON object");
    json_t *root = NULL;
    gn_status status = gn_hf_parse_object(text, length, &root);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "header: ");
    }
    status = read_header(st, root, text + length, size - LENGTH_BYTES - length);
    json_decref(root);
    return status;
}

/* ---- files and shards ---- */

static gn_status add_file(gn_safetensors *st, const char *path)
{
    gn_os_map *maps = gn_realloc_array(st->maps, st->n_maps + 1, sizeof *maps);
    if (maps == NULL) {
        return gn_alloc_failed();
    }
    st->maps = maps;
    GN_TRY(gn_os_map_file(path, &maps[st->n_maps]));
    const gn_os_map map = maps[st->n_maps++];
    gn_status status = parse_file(st, map.data, map.size);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", path);
    }
    return GN_OK;
}

/* A shard is a plain file name: it may not lead out of the folder. */
static gn_status check_shard_name(const char *tensor, const json_t *value)
{
    GN_REQUIRE(json_is_string(value), GN_E_FORMAT,
               "weight_map: \"%s\": found %s, expected a file name",
               gn_file_show(tensor, strlen(tensor)).text, json_kind(value));
    const char *name = json_string_value(value);
    size_t len = json_string_length(value);
    GN_REQUIRE(gn_file_name_fault(name, len, 255) == NULL && name[0] != '.' &&
                   strpbrk(name, "/\\") == NULL,
               GN_E_FORMAT, "weight_map: \"%s\": found \"%s\", expected a plain file name",
               gn_file_show(tensor, strlen(tensor)).text, gn_file_show(name, len).text);
    return GN_OK;
}

/* Which shard each tensor was found in, by its end in st->tensors. */
typedef struct shard_list {
    gn_map by_name; /* file name → number */
    size_t ends[MAX_SHARDS];
    size_t n;
} shard_list;

static gn_status open_shards(gn_safetensors *st, const char *folder, size_t folder_len,
                             json_t *weight_map, shard_list *shards, gn_buf *path)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value)
    {
        GN_TRY(check_shard_name(tensor, value));
        bool added = false;
        GN_TRY(gn_map_add(&shards->by_name, json_string_value(value), json_string_length(value),
                          (uint32_t)shards->n, &added, NULL));
        if (!added) {
            continue;
        }
        GN_REQUIRE(shards->n < MAX_SHARDS, GN_E_FORMAT,
                   "weight_map: found more than %d files, expected fewer", MAX_SHARDS);
        gn_buf_clear(path);
        GN_TRY(gn_buf_append(path, folder, folder_len));
        GN_TRY(gn_buf_puts(path, json_string_value(value)));
        gn_status status = add_file(st, path->data);
        if (status != GN_OK) {
            return gn_base_fail_prefix(status, "weight_map: ");
        }
        shards->ends[shards->n++] = st->n_tensors;
    }
    return GN_OK;
}

/* Each tensor of the index is in the file it names, and the files hold no others. */
static gn_status check_index(const gn_safetensors *st, json_t *weight_map, const shard_list *shards)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value)
    {
        const char *file = json_string_value(value);
        const uint32_t *shard = gn_map_find(&shards->by_name, file, json_string_length(value));
        const uint32_t *index = gn_map_find(&st->by_name, tensor, strlen(tensor));
        size_t begin = *shard != 0 ? shards->ends[*shard - 1] : 0;
        GN_REQUIRE(index != NULL && *index >= begin && *index < shards->ends[*shard], GN_E_FORMAT,
                   "weight_map: \"%s\": not found in \"%s\", expected there",
                   gn_file_show(tensor, strlen(tensor)).text,
                   gn_file_show(file, strlen(file)).text);
    }
    for (size_t i = 0; i < st->n_tensors; i++) {
        GN_REQUIRE(json_object_get(weight_map, st->tensors[i].name) != NULL, GN_E_FORMAT,
                   "weight_map: found a tensor \"%s\" in the files, expected it in the index",
                   gn_file_show(st->tensors[i].name, strlen(st->tensors[i].name)).text);
    }
    return GN_OK;
}

static gn_status read_index(gn_safetensors *st, const char *path, json_t *root)
{
    json_t *weight_map = json_object_get(root, "weight_map");
    GN_REQUIRE(json_is_object(weight_map), GN_E_FORMAT, "weight_map: found %s, expected an object",
               json_kind(weight_map));
    const char *slash = strrchr(path, '/');
    size_t folder_len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    shard_list *shards = gn_calloc(1, sizeof *shards);
    if (shards == NULL) {
        return gn_alloc_failed();
    }
    gn_buf shard_path = {0};
    gn_status status = open_shards(st, path, folder_len, weight_map, shards, &shard_path);
    if (status == GN_OK) {
        status = check_index(st, weight_map, shards);
    }
    gn_buf_fini(&shard_path);
    gn_map_fini(&shards->by_name);
    gn_free(shards);
    return status;
}

static gn_status add_index(gn_safetensors *st, const char *path)
{
    json_t *root = NULL;
    GN_TRY(gn_hf_load_object(path, &root));
    gn_status status = read_index(st, path, root);
    json_decref(root);
    if (status != GN_OK) {
        return gn_base_fail_prefix(status, "%s: ", path);
    }
    return GN_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

gn_status gn_safetensors_open(const char *path, gn_safetensors **out)
{
    gn_safetensors *st = gn_calloc(1, sizeof *st);
    if (st == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = ends_with(path, ".index.json") ? add_index(st, path) : add_file(st, path);
    if (status != GN_OK) {
        gn_safetensors_close(st);
        return status;
    }
    *out = st;
    return GN_OK;
}

gn_status gn_safetensors_open_memory(const void *data, size_t size, gn_safetensors **out)
{
    gn_safetensors *st = gn_calloc(1, sizeof *st);
    if (st == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = parse_file(st, data, size);
    if (status != GN_OK) {
        gn_safetensors_close(st);
        return status;
    }
    *out = st;
    return GN_OK;
}

void gn_safetensors_close(gn_safetensors *st)
{
    if (st == NULL) {
        return;
    }
    for (size_t i = 0; i < st->n_maps; i++) {
        gn_os_unmap(&st->maps[i]);
    }
    gn_free(st->maps);
    gn_map_fini(&st->by_name);
    gn_free(st->tensors);
    gn_free(st->metadata);
    gn_arena_fini(&st->strings);
    gn_free(st);
}

/* ---- what was read ---- */

size_t gn_safetensors_n_tensors(const gn_safetensors *st)
{
    return st->n_tensors;
}

const gn_safetensors_tensor *gn_safetensors_tensor_at(const gn_safetensors *st, size_t i)
{
    return &st->tensors[i];
}

const gn_view *gn_safetensors_find(const gn_safetensors *st, const char *name)
{
    const uint32_t *index = gn_map_find(&st->by_name, name, strlen(name));
    return index != NULL ? &st->tensors[*index].view : NULL;
}

size_t gn_safetensors_n_metadata(const gn_safetensors *st)
{
    return st->n_metadata;
}

void gn_safetensors_metadata_at(const gn_safetensors *st, size_t i, const char **key,
                                const char **value)
{
    *key = st->metadata[i].key;
    *value = st->metadata[i].value;
}

size_t gn_safetensors_n_maps(const gn_safetensors *st)
{
    return st->n_maps;
}

const gn_os_map *gn_safetensors_map_at(const gn_safetensors *st, size_t i)
{
    return &st->maps[i];
}

size_t gn_safetensors_bytes(const gn_safetensors *st)
{
    size_t bytes = 0;
    for (size_t i = 0; i < st->n_maps; i++) {
        bytes += st->maps[i].size;
    }
    return bytes;
}
