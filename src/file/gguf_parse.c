/* One GGUF header, from bytes to a checked table.
 *
 * A reader walks the bytes once, in file order: fixed header, key-values, tensor infos, then the data
 * section is checked against the tensor infos. Every claim (a count, a length, an offset) is compared with the
 * bytes that are left before it is used, and tables grow by doubling as entries are really read, so a file
 * can make us allocate no more than a small multiple of its own size. Arrays in arrays are walked with a
 * small stack of counters instead of recursion.
 *
 * A fault is recorded where it is seen ("offset N: what: found X, expected Y"); callers put the key or
 * the tensor in front. */
#include "file/gguf_table.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "file/extent.h"
#include "file/show.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static_assert(sizeof(size_t) == 8, "sizes from a file are 64 bits wide");

typedef struct reader {
    const unsigned char *data;
    size_t size;
    size_t pos; /* ≤ size */
} reader;

enum {
    HEADER_BYTES = 24,
    MIN_VALUE_BYTES = 8 + 1 + 4 + 1,          /* key length, key, type, value */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* name length, name, rank, one dim, type, offset */
    ARRAY_HEAD_BYTES = 12,
    FILE_DTYPE_END = 1000 /* tensor/dtype.h: from here on numbers are ours and no file's */
};

/* Bytes of one value of the type in the file; 0 for strings and arrays, whose size varies. */
static size_t scalar_bytes(gn_gguf_type type)
{
    switch (type) {
    case GN_GGUF_U8:
    case GN_GGUF_I8:
    case GN_GGUF_BOOL: return 1;
    case GN_GGUF_U16:
    case GN_GGUF_I16: return 2;
    case GN_GGUF_U32:
    case GN_GGUF_I32:
    case GN_GGUF_F32: return 4;
    case GN_GGUF_U64:
    case GN_GGUF_I64:
    case GN_GGUF_F64: return 8;
    case GN_GGUF_STRING:
    case GN_GGUF_ARRAY: break;
    }
    return 0;
}

static size_t left(const reader *r)
{
    return r->size - r->pos;
}

static gn_status take(reader *r, size_t n, const char *what, const unsigned char **out)
{
    GN_REQUIRE(n <= left(r), GN_E_FORMAT,
               "offset %zu: %s: found %zu bytes left in the file, expected %zu", r->pos, what,
               left(r), n);
    *out = r->data + r->pos;
    r->pos += n;
    return GN_OK;
}

static gn_status read_u32(reader *r, const char *what, uint32_t *out)
{
    const unsigned char *p = NULL;
    GN_TRY(take(r, sizeof *out, what, &p));
    memcpy(out, p, sizeof *out);
    return GN_OK;
}

static gn_status read_u64(reader *r, const char *what, uint64_t *out)
{
    const unsigned char *p = NULL;
    GN_TRY(take(r, sizeof *out, what, &p));
    memcpy(out, p, sizeof *out);
    return GN_OK;
}

static gn_status read_string(reader *r, const char *what, gn_gguf_str *out)
{
    size_t at = r->pos;
    uint64_t len = 0;
    GN_TRY(read_u64(r, what, &len));
    GN_REQUIRE(len <= left(r), GN_E_FORMAT,
               "offset %zu: %s: found a length of %" PRIu64
               ", expected at most %zu (the rest of the file)",
               at, what, len, left(r));
    *out = (gn_gguf_str){.s = (const char *)r->data + r->pos, .len = len};
    r->pos += len;
    return GN_OK;
}

static gn_status read_type(reader *r, const char *what, gn_gguf_type *out)
{
    size_t at = r->pos;
    uint32_t type = 0;
    GN_TRY(read_u32(r, what, &type));
    GN_REQUIRE(type <= GN_GGUF_F64, GN_E_FORMAT,
               "offset %zu: %s: found %" PRIu32 ", expected 0 to %d", at, what, type, GN_GGUF_F64);
    *out = (gn_gguf_type)type;
    return GN_OK;
}

static gn_status read_array_head(reader *r, gn_gguf_type *elem, uint64_t *n)
{
    GN_TRY(read_type(r, "array element type", elem));
    size_t at = r->pos;
    GN_TRY(read_u64(r, "array count", n));
    size_t each = scalar_bytes(*elem);
    if (each == 0) {
        each = *elem == GN_GGUF_STRING ? sizeof(uint64_t) : ARRAY_HEAD_BYTES;
    }
    GN_REQUIRE(*n <= left(r) / each, GN_E_FORMAT,
               "offset %zu: array count: found %" PRIu64
               " elements of at least %zu bytes, expected at most %zu (the rest of the file)",
               at, *n, each, left(r) / each);
    return GN_OK;
}

static gn_status check_bools(reader *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned value = r->data[r->pos + i];
        GN_REQUIRE(value <= 1, GN_E_FORMAT, "offset %zu: bool: found %u, expected 0 or 1",
                   (size_t)(r->pos + i), value);
    }
    return GN_OK;
}

/* Step over n values that are no arrays. */
static gn_status skip_plain(reader *r, gn_gguf_type type, uint64_t n)
{
    if (type == GN_GGUF_STRING) {
        for (uint64_t i = 0; i < n; i++) {
            gn_gguf_str unused;
            GN_TRY(read_string(r, "string", &unused));
        }
        return GN_OK;
    }
    size_t bytes = 0;
    GN_REQUIRE(gn_checked_mul(n, scalar_bytes(type), &bytes), GN_E_FORMAT,
               "offset %zu: value: the size wraps", r->pos);
    GN_REQUIRE(bytes <= left(r), GN_E_FORMAT,
               "offset %zu: value: found %zu bytes left in the file, expected %zu", r->pos, left(r),
               bytes);
    if (type == GN_GGUF_BOOL) {
        GN_TRY(check_bools(r, n));
    }
    r->pos += bytes;
    return GN_OK;
}

/* Step over an array whose head was read. pending[i] counts what is still to be walked at depth i. */
static gn_status skip_array(reader *r, gn_gguf_type elem, uint64_t n)
{
    uint64_t pending[GN_GGUF_MAX_ARRAY_DEPTH];
    int depth = 0;
    for (;;) {
        if (elem == GN_GGUF_ARRAY) {
            GN_REQUIRE(depth < GN_GGUF_MAX_ARRAY_DEPTH, GN_E_FORMAT,
                       "offset %zu: arrays in arrays: found more than %d levels, expected fewer",
                       r->pos, GN_GGUF_MAX_ARRAY_DEPTH);
            pending[depth++] = n;
        } else {
            GN_TRY(skip_plain(r, elem, n));
        }
        while (depth > 0 && pending[depth - 1] == 0) {
            depth--;
        }
        if (depth == 0) {
            return GN_OK;
        }
        pending[depth - 1]--;
        GN_TRY(read_array_head(r, &elem, &n));
    }
}

/* ---- key-values ---- */

static gn_status grow(void **items, size_t *cap, size_t n, size_t bytes)
{
    void *p = gn_grow_array(*items, cap, n + 1, bytes);
    if (p == NULL) {
        return gn_alloc_failed();
    }
    *items = p;
    return GN_OK;
}

static gn_status read_key(reader *r, gn_gguf_str *key)
{
    size_t at = r->pos;
    GN_TRY(read_string(r, "key", key));
    const char *fault = gn_file_name_fault(key->s, key->len, GN_GGUF_MAX_KEY_BYTES);
    GN_REQUIRE(fault == NULL, GN_E_FORMAT,
               "offset %zu: key \"%s\" %s, expected 1 to %d bytes of UTF-8 text", at,
               gn_file_show(key->s, key->len).text, fault, GN_GGUF_MAX_KEY_BYTES);
    return GN_OK;
}

static gn_status read_value(reader *r, gn_gguf_value *value)
{
    GN_TRY(read_type(r, "value type", &value->type));
    value->elem = value->type;
    value->n = 1;
    if (value->type == GN_GGUF_ARRAY) {
        GN_TRY(read_array_head(r, &value->elem, &value->n));
        value->data = r->data + r->pos;
        return skip_array(r, value->elem, value->n);
    }
    value->data = r->data + r->pos;
    return skip_plain(r, value->type, 1);
}

static gn_status read_values(reader *r, uint64_t n, gn_gguf_table *table)
{
    for (uint64_t i = 0; i < n; i++) {
        gn_gguf_value value = {0};
        gn_status status = read_key(r, &value.key);
        if (status != GN_OK) {
            return gn_base_fail_prefix(status, "key %" PRIu64 " of %" PRIu64 ": ", i + 1, n);
        }
        status = read_value(r, &value);
        if (status != GN_OK) {
            return gn_base_fail_prefix(
                status, "key \"%s\": ", gn_file_show(value.key.s, value.key.len).text);
        }
        void *values = table->values;
        GN_TRY(grow(&values, &table->cap_values, table->n_values, sizeof *table->values));
        table->values = values;
        bool added = false;
        GN_TRY(gn_map_add(&table->by_key, value.key.s, value.key.len, (uint32_t)table->n_values,
                          &added, NULL));
        GN_REQUIRE(added, GN_E_FORMAT, "key \"%s\": found twice, expected once",
                   gn_file_show(value.key.s, value.key.len).text);
        table->values[table->n_values++] = value;
    }
    return GN_OK;
}

/* general.alignment is the one key the layout itself depends on. */
static gn_status find_alignment(gn_gguf_table *table)
{
    static const char key[] = "general.alignment";
    table->alignment = GN_GGUF_DEFAULT_ALIGNMENT;
    const gn_gguf_value *value = gn_gguf_table_find(table, key);
    if (value == NULL) {
        return GN_OK;
    }
    GN_REQUIRE(value->type == GN_GGUF_U32, GN_E_FORMAT, "key \"%s\": found type %s, expected u32",
               key, gn_gguf_type_name(value->type));
    uint32_t n = (uint32_t)gn_gguf_elem_u64(value, 0);
    GN_REQUIRE(n >= 8 && n <= GN_GGUF_MAX_ALIGNMENT && (n & (n - 1)) == 0, GN_E_FORMAT,
               "key \"%s\": found %" PRIu32 ", expected a power of two, 8 to %u", key, n,
               GN_GGUF_MAX_ALIGNMENT);
    table->alignment = n;
    return GN_OK;
}

/* ---- tensors ---- */

gn_status gn_gguf_table_add_tensor(gn_gguf_table *table, const gn_gguf_tensor *tensor)
{
    void *tensors = table->tensors;
    GN_TRY(grow(&tensors, &table->cap_tensors, table->n_tensors, sizeof *table->tensors));
    table->tensors = tensors;
    bool added = false;
    GN_TRY(gn_map_add(&table->by_name, tensor->name.s, tensor->name.len, (uint32_t)table->n_tensors,
                      &added, NULL));
    GN_REQUIRE(added, GN_E_FORMAT, "tensor \"%s\": found twice, expected once",
               gn_file_show(tensor->name.s, tensor->name.len).text);
    table->tensors[table->n_tensors++] = *tensor;
    return GN_OK;
}

/* Dimensions are stored innermost first; views hold them outermost first. */
static gn_status read_shape(reader *r, gn_view *view)
{
    size_t at = r->pos;
    uint32_t n_dims = 0;
    GN_TRY(read_u32(r, "number of dimensions", &n_dims));
    GN_REQUIRE(n_dims >= 1 && n_dims <= GN_VIEW_MAX_DIMS, GN_E_FORMAT,
               "offset %zu: number of dimensions: found %" PRIu32 ", expected 1 to %d", at, n_dims,
               GN_VIEW_MAX_DIMS);
    view->n_dims = (int)n_dims;
    for (size_t i = 0; i < GN_VIEW_MAX_DIMS; i++) {
        view->shape[i] = 1;
    }
    size_t elements = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        at = r->pos;
        uint64_t dim = 0;
        GN_TRY(read_u64(r, "dimension", &dim));
        GN_REQUIRE(dim >= 1 && dim <= INT64_MAX, GN_E_FORMAT,
                   "offset %zu: dimension %" PRIu32 ": found %" PRIu64 ", expected 1 to %" PRId64,
                   at, i, dim, INT64_MAX);
        GN_REQUIRE(gn_checked_mul(elements, dim, &elements) && elements <= INT64_MAX, GN_E_FORMAT,
                   "offset %zu: dimension %" PRIu32 ": found %" PRIu64
                   ", expected a product of dimensions below 2^63",
                   at, i, dim);
        view->shape[n_dims - 1 - i] = dim;
    }
    return GN_OK;
}

/* Type, row and total size. */
static gn_status read_dtype(reader *r, gn_view *view)
{
    size_t at = r->pos;
    uint32_t id = 0;
    GN_TRY(read_u32(r, "tensor type", &id));
    const gn_dtype_info *info = id < FILE_DTYPE_END ? gn_dtype_find(id) : NULL;
    GN_REQUIRE(info != NULL, GN_E_FORMAT,
               "offset %zu: tensor type: found %" PRIu32 ", expected a type number in use", at, id);
    uint64_t row = view->shape[view->n_dims - 1];
    GN_REQUIRE(row % info->block_len == 0, GN_E_FORMAT,
               "offset %zu: row length: found %" PRIu64 ", expected a multiple of %" PRIu32
               " (the block of %s)",
               at, row, info->block_len, info->name);
    view->dtype = info->dtype;
    bool fits = gn_checked_mul(row / info->block_len, info->block_bytes, &view->row_bytes);
    view->bytes = view->row_bytes;
    for (int i = 0; i + 1 < view->n_dims; i++) {
        fits = fits && gn_checked_mul(view->bytes, view->shape[i], &view->bytes);
    }
    GN_REQUIRE(fits, GN_E_FORMAT, "offset %zu: size in bytes: the product of dimensions wraps", at);
    return GN_OK;
}

/* view->data stays NULL until the start of the data section is known; place_tensors() sets it. */
static gn_status read_tensor(reader *r, uint32_t alignment, gn_gguf_tensor *tensor,
                             uint64_t *offset)
{
    GN_TRY(read_shape(r, &tensor->view));
    GN_TRY(read_dtype(r, &tensor->view));
    size_t at = r->pos;
    GN_TRY(read_u64(r, "tensor offset", offset));
    GN_REQUIRE(*offset % alignment == 0, GN_E_FORMAT,
               "offset %zu: tensor offset: found %" PRIu64 ", expected a multiple of %" PRIu32, at,
               *offset, alignment);
    return GN_OK;
}

static gn_status read_tensor_name(reader *r, gn_gguf_str *name)
{
    size_t at = r->pos;
    GN_TRY(read_string(r, "tensor name", name));
    const char *fault = gn_file_name_fault(name->s, name->len, GN_GGUF_MAX_NAME_BYTES);
    GN_REQUIRE(fault == NULL, GN_E_FORMAT,
               "offset %zu: tensor name \"%s\" %s, expected 1 to %d bytes of UTF-8 text", at,
               gn_file_show(name->s, name->len).text, fault, GN_GGUF_MAX_NAME_BYTES);
    return GN_OK;
}

/* Where tensor i lies is kept in extents[i] until the data section is known. */
static gn_status read_tensors(reader *r, uint64_t n, gn_gguf_table *table, gn_extent **extents)
{
    size_t cap = 0;
    for (uint64_t i = 0; i < n; i++) {
        gn_gguf_tensor tensor = {0};
        gn_status status = read_tensor_name(r, &tensor.name);
        if (status != GN_OK) {
            return gn_base_fail_prefix(status, "tensor %" PRIu64 " of %" PRIu64 ": ", i + 1, n);
        }
        uint64_t begin = 0;
        status = read_tensor(r, table->alignment, &tensor, &begin);
        if (status != GN_OK) {
            return gn_base_fail_prefix(
                status, "tensor \"%s\": ", gn_file_show(tensor.name.s, tensor.name.len).text);
        }
        void *items = *extents;
        GN_TRY(grow(&items, &cap, i, sizeof **extents));
        *extents = items;
        (*extents)[i] = (gn_extent){.begin = begin, .index = (uint32_t)i};
        GN_TRY(gn_gguf_table_add_tensor(table, &tensor));
    }
    return GN_OK;
}

/* ---- data section ---- */

static gn_status place_tensors(const reader *r, gn_gguf_table *table, gn_extent *extents)
{
    size_t n = table->n_tensors;
    if (n == 0) {
        return GN_OK;
    }
    size_t start = 0;
    GN_REQUIRE(gn_checked_align(r->pos, table->alignment, &start) && start <= r->size, GN_E_FORMAT,
               "offset %zu: data section: found the end of the file at %zu", r->pos, r->size);
    size_t room = r->size - start;
    for (size_t i = 0; i < n; i++) {
        gn_gguf_tensor *tensor = &table->tensors[i];
        uint64_t begin = extents[i].begin;
        GN_REQUIRE(gn_checked_range(begin, tensor->view.bytes, room), GN_E_FORMAT,
                   "tensor \"%s\": found %zu bytes at offset %" PRIu64
                   " of the data section, expected at most %zu bytes in all",
                   gn_file_show(tensor->name.s, tensor->name.len).text, tensor->view.bytes, begin,
                   room);
        tensor->view.data = r->data + start + begin;
        extents[i].end = begin + tensor->view.bytes;
    }
    gn_extent_sort(extents, n);
    for (size_t i = 1; i < n; i++) {
        const gn_gguf_tensor *prev = &table->tensors[extents[i - 1].index];
        const gn_gguf_tensor *next = &table->tensors[extents[i].index];
        GN_REQUIRE(extents[i].begin >= extents[i - 1].end, GN_E_FORMAT,
                   "tensor \"%s\": found offset %" PRIu64 ", expected %" PRIu64
                   " or more (the end of tensor \"%s\")",
                   gn_file_show(next->name.s, next->name.len).text, extents[i].begin,
                   extents[i - 1].end, gn_file_show(prev->name.s, prev->name.len).text);
    }
    return GN_OK;
}

/* ---- header ---- */

static gn_status check_magic(const reader *r)
{
    static const char magic[4] = {'G', 'G', 'U', 'F'};
    size_t n = r->size < sizeof magic ? r->size : sizeof magic;
    GN_REQUIRE(n == 0 || memcmp(r->data, "FUGG", n) != 0 || n < sizeof magic, GN_E_FORMAT,
               "offset 0: magic: found \"FUGG\": the file is byte-swapped (big endian), expected a "
               "little-endian GGUF file");
    GN_REQUIRE(n > 0, GN_E_FORMAT, "offset 0: found an empty file, expected a GGUF file");
    GN_REQUIRE(memcmp(r->data, magic, n) == 0, GN_E_FORMAT,
               "offset 0: magic: found \"%s\", expected \"GGUF\"",
               gn_file_show((const char *)r->data, n).text);
    GN_REQUIRE(r->size >= HEADER_BYTES, GN_E_FORMAT,
               "offset 0: header: found a file of %zu bytes, expected at least %d", r->size,
               HEADER_BYTES);
    return GN_OK;
}

static uint32_t swap_bytes(uint32_t x)
{
    return x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24;
}

static gn_status read_header(reader *r, uint32_t *version, uint64_t *n_tensors, uint64_t *n_values)
{
    GN_TRY(check_magic(r));
    r->pos = 4;
    GN_TRY(read_u32(r, "version", version));
    GN_REQUIRE(swap_bytes(*version) < 1 || swap_bytes(*version) > 0xffff, GN_E_FORMAT,
               "offset 4: version: found %" PRIu32
               ": the file is byte-swapped (big endian), expected a little-endian GGUF file",
               *version);
    GN_REQUIRE(*version == 2 || *version == 3, GN_E_FORMAT,
               "offset 4: version: found %" PRIu32 ", expected 2 or 3", *version);
    size_t at = r->pos;
    GN_TRY(read_u64(r, "tensor count", n_tensors));
    GN_TRY(read_u64(r, "key count", n_values));
    size_t most = left(r) / MIN_TENSOR_BYTES;
    most = most < GN_GGUF_MAX_TENSORS ? most : GN_GGUF_MAX_TENSORS;
    GN_REQUIRE(*n_tensors <= most, GN_E_FORMAT,
               "offset %zu: tensor count: found %" PRIu64 ", expected at most %zu", at, *n_tensors,
               most);
    most = left(r) / MIN_VALUE_BYTES;
    most = most < GN_GGUF_MAX_VALUES ? most : GN_GGUF_MAX_VALUES;
    GN_REQUIRE(*n_values <= most, GN_E_FORMAT,
               "offset %zu: key count: found %" PRIu64 ", expected at most %zu", at + 8, *n_values,
               most);
    return GN_OK;
}

gn_status gn_gguf_table_parse(gn_gguf_table *table, const unsigned char *data, size_t size)
{
    reader r = {.data = data, .size = size};
    uint64_t n_tensors = 0;
    uint64_t n_values = 0;
    gn_extent *extents = NULL;
    GN_TRY(read_header(&r, &table->version, &n_tensors, &n_values));
    GN_TRY(read_values(&r, n_values, table));
    GN_TRY(find_alignment(table));
    gn_status status = read_tensors(&r, n_tensors, table, &extents);
    if (status == GN_OK) {
        status = place_tensors(&r, table, extents);
    }
    gn_free(extents);
    return status;
}

void gn_gguf_table_fini(gn_gguf_table *table)
{
    if (table != NULL) {
        gn_map_fini(&table->by_key);
        gn_map_fini(&table->by_name);
        gn_free(table->values);
        gn_free(table->tensors);
        *table = (gn_gguf_table){0};
    }
}
