/* `ganglion inspect`: what a model file holds and what it would take to run, without loading it and
 * whatever its architecture. The facts come from cli/inspect.h; this file prints them. */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/model_path.h"
#include "cli/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    bool json;
    bool full;
} options;

static const gn_cli_option rows[] = {
    {.name = "full",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, full),
     .help = "Print arrays of metadata, such as the vocabulary, to their end."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print one object with the same facts."},
};

#define SHOWN_ELEMENTS 64
#define SHOWN_CHARS    72

static const char *const value_types[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                          "bool", "string", "array", "u64", "i64", "f64"};

/* One number, bool or string of a GGUF value. */
static void put_element(gn_cli_json *json, const char *key, const gn_gguf_value *value, uint64_t i,
                        const void **cursor)
{
    switch (value->elem) {
    case GN_GGUF_STRING: {
        gn_gguf_str s = gn_gguf_str_next(value, cursor);
        gn_cli_json_strn(json, key, s.s, s.len);
        break;
    }
    case GN_GGUF_F32: {
        /* 9 digits keep a float; a double would show digits that the file does not hold. */
        float v = (float)gn_gguf_elem_f64(value, i);
        char text[32];
        (void)snprintf(text, sizeof text, "%.9g", (double)v);
        if (strpbrk(text, "in") != NULL) {
            gn_cli_json_null(json, key);
        } else {
            gn_cli_json_raw(json, key, text);
        }
        break;
    }
    case GN_GGUF_F64: gn_cli_json_real(json, key, gn_gguf_elem_f64(value, i), -1); break;
    case GN_GGUF_BOOL: gn_cli_json_bool(json, key, gn_gguf_elem_u64(value, i) != 0); break;
    case GN_GGUF_I8:
    case GN_GGUF_I16:
    case GN_GGUF_I32:
    case GN_GGUF_I64: gn_cli_json_int(json, key, gn_gguf_elem_i64(value, i)); break;
    case GN_GGUF_ARRAY: gn_cli_json_null(json, key); break;
    case GN_GGUF_U8:
    case GN_GGUF_U16:
    case GN_GGUF_U32:
    case GN_GGUF_U64: gn_cli_json_uint(json, key, gn_gguf_elem_u64(value, i)); break;
    }
}

/* An array longer than `most` becomes {"type":…,"n":…,"first":[…]}. */
static void put_value(gn_cli_json *json, const char *key, const gn_gguf_value *value, uint64_t most)
{
    const void *cursor = NULL;
    if (value->type != GN_GGUF_ARRAY) {
        put_element(json, key, value, 0, &cursor);
        return;
    }
    bool cut = value->n > most;
    if (cut) {
        gn_cli_json_object(json, key);
        gn_cli_json_str(json, "type", value_types[value->elem]);
        gn_cli_json_uint(json, "n", value->n);
        key = "first";
        most = 8;
    }
    gn_cli_json_array(json, key);
    for (uint64_t i = 0; i < value->n && i < most; i++) {
        put_element(json, NULL, value, i, &cursor);
    }
    gn_cli_json_end(json);
    if (cut) {
        gn_cli_json_end(json);
    }
}

static gn_status put_config(gn_cli_json *json, const char *key, const json_t *config)
{
    char *text = json_dumps(config, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (text == NULL) {
        return gn_alloc_failed();
    }
    gn_cli_json_raw(json, key, text);
    free(text);
    return GN_OK;
}

static gn_status put_metadata(gn_cli_json *json, const gn_source *source, bool full)
{
    if (gn_source_get_kind(source) == GN_SOURCE_HF) {
        return put_config(json, "metadata", gn_source_config(source));
    }
    const gn_gguf *gguf = gn_source_gguf(source);
    gn_buf key = {0};
    gn_status status = GN_OK;
    gn_cli_json_object(json, "metadata");
    for (size_t i = 0; status == GN_OK && i < gn_gguf_n_values(gguf); i++) {
        const gn_gguf_value *value = gn_gguf_value_at(gguf, i);
        gn_buf_clear(&key);
        status = gn_buf_append(&key, value->key.s, value->key.len);
        if (status == GN_OK) {
            put_value(json, key.data, value, full ? UINT64_MAX : SHOWN_ELEMENTS);
        }
    }
    gn_cli_json_end(json);
    gn_buf_fini(&key);
    return status;
}

static void put_tensor(gn_cli_json *json, const gn_source *source, size_t i)
{
    const char *name;
    const gn_view *view = gn_source_tensor_at(source, i, &name);
    gn_cli_json_object(json, NULL);
    gn_cli_json_str(json, "name", name);
    gn_cli_json_str(json, "type", gn_dtype_find((uint32_t)view->dtype)->name);
    gn_cli_json_array(json, "shape");
    for (int d = 0; d < view->n_dims; d++) {
        gn_cli_json_uint(json, NULL, view->shape[d]);
    }
    gn_cli_json_end(json);
    gn_cli_json_uint(json, "bytes", view->bytes);
    gn_cli_json_end(json);
}

/* Context lengths worth a row: powers of two up to the model's own, and that. Returns the next one. */
static uint64_t next_context(uint64_t ctx, uint64_t n_ctx_train)
{
    if (ctx >= n_ctx_train) {
        return 0;
    }
    uint64_t next = ctx == 0 ? 2048 : ctx * 4;
    return next < n_ctx_train ? next : n_ctx_train;
}

static bool kv_bytes(const gn_cli_shape *shape, uint64_t ctx, uint64_t *out)
{
    if (shape->kv_bytes_per_tok == 0 || ctx > UINT64_MAX / 2 / shape->kv_bytes_per_tok) {
        return false;
    }
    *out = ctx * shape->kv_bytes_per_tok;
    return true;
}

static void put_memory(gn_cli_json *json, const gn_cli_shape *shape, uint64_t weights)
{
    gn_cli_json_array(json, "memory");
    uint64_t kv;
    for (uint64_t ctx = next_context(0, shape->n_ctx_train); ctx != 0 && kv_bytes(shape, ctx, &kv);
         ctx = next_context(ctx, shape->n_ctx_train)) {
        gn_cli_json_object(json, NULL);
        gn_cli_json_uint(json, "ctx", ctx);
        gn_cli_json_str(json, "kv", "f16");
        gn_cli_json_uint(json, "kv_bytes", kv);
        gn_cli_json_uint(json, "total_bytes", kv + weights);
        gn_cli_json_end(json);
    }
    gn_cli_json_end(json);
}

typedef struct facts {
    gn_cli_shape shape;
    gn_cli_type_count *types; /* [GN_CLI_MAX_TYPES] */
    size_t n_types;
    uint64_t n_params, weight_bytes;
} facts;

static const char *format_name(const gn_source *source)
{
    return gn_source_get_kind(source) == GN_SOURCE_GGUF ? "gguf" : "safetensors";
}

static gn_status print_json(const gn_source *source, const facts *f, bool full)
{
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_str(&json, "file", gn_source_path(source));
    gn_cli_json_str(&json, "format", format_name(source));
    if (gn_source_gguf(source) != NULL) {
        gn_cli_json_uint(&json, "version", gn_gguf_version(gn_source_gguf(source)));
    }
    gn_cli_json_uint(&json, "file_bytes", gn_source_bytes(source));
    gn_cli_json_str(&json, "architecture", f->shape.architecture);
    gn_cli_json_uint(&json, "n_params", f->n_params);
    gn_cli_json_uint(&json, "weight_bytes", f->weight_bytes);
    gn_cli_json_uint(&json, "n_layer", f->shape.n_layer);
    gn_cli_json_uint(&json, "n_embd", f->shape.n_embd);
    gn_cli_json_uint(&json, "n_ctx_train", f->shape.n_ctx_train);
    gn_cli_json_uint(&json, "n_vocab", f->shape.n_vocab);
    gn_cli_json_uint(&json, "kv_bytes_per_token", f->shape.kv_bytes_per_tok);
    gn_cli_json_object(&json, "types");
    for (size_t i = 0; i < f->n_types; i++) {
        const gn_cli_type_count *t = &f->types[i];
        gn_cli_json_object(&json, t->type->name);
        gn_cli_json_uint(&json, "tensors", t->n_tensors);
        gn_cli_json_uint(&json, "elements", t->n_elements);
        gn_cli_json_uint(&json, "bytes", t->n_bytes);
        gn_cli_json_bool(&json, "computed", t->type->computed);
        gn_cli_json_end(&json);
    }
    gn_cli_json_end(&json);
    put_memory(&json, &f->shape, f->weight_bytes);
    GN_TRY(put_metadata(&json, source, full));
    gn_cli_json_array(&json, "tensors");
    for (size_t i = 0; i < gn_source_n_tensors(source); i++) {
        put_tensor(&json, source, i);
    }
    gn_cli_json_end(&json);
    gn_cli_json_end(&json);
    return GN_OK;
}

/* Text from a file, on one line: control characters as \xNN, cut at `most` bytes (0: not). */
static void print_text(const char *s, size_t len, size_t most)
{
    size_t n = most != 0 && len > most ? most : len;
    while (n > 0 && n < len && ((unsigned char)s[n] & 0xc0) == 0x80) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f) {
            (void)printf("\\x%02x", c);
        } else {
            (void)putchar(c);
        }
    }
    if (n < len) {
        (void)printf("… (%zu bytes)", len);
    }
}

static void print_value(const gn_gguf_value *value, bool full)
{
    const void *cursor = NULL;
    const uint64_t most = full || value->n <= SHOWN_ELEMENTS ? value->n : 8;
    if (value->type == GN_GGUF_ARRAY) {
        (void)printf("[%" PRIu64 "] ", value->n);
    }
    for (uint64_t i = 0; i < most; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        switch (value->elem) {
        case GN_GGUF_STRING: {
            gn_gguf_str s = gn_gguf_str_next(value, &cursor);
            print_text(s.s, s.len, full ? 0 : SHOWN_CHARS);
            break;
        }
        case GN_GGUF_F32:
        case GN_GGUF_F64: (void)printf("%.9g", gn_gguf_elem_f64(value, i)); break;
        case GN_GGUF_BOOL:
            (void)fputs(gn_gguf_elem_u64(value, i) != 0 ? "true" : "false", stdout);
            break;
        case GN_GGUF_ARRAY: (void)fputs("[…]", stdout); break;
        case GN_GGUF_I8:
        case GN_GGUF_I16:
        case GN_GGUF_I32:
        case GN_GGUF_I64: (void)printf("%" PRId64, gn_gguf_elem_i64(value, i)); break;
        case GN_GGUF_U8:
        case GN_GGUF_U16:
        case GN_GGUF_U32:
        case GN_GGUF_U64: (void)printf("%" PRIu64, gn_gguf_elem_u64(value, i)); break;
        }
    }
    (void)fputs(most < value->n ? ", …\n" : "\n", stdout);
}

static gn_status print_metadata(const gn_source *source, bool full)
{
    (void)printf("\nMetadata\n");
    const gn_gguf *gguf = gn_source_gguf(source);
    for (size_t i = 0; gguf != NULL && i < gn_gguf_n_values(gguf); i++) {
        const gn_gguf_value *value = gn_gguf_value_at(gguf, i);
        (void)fputs("  ", stdout);
        print_text(value->key.s, value->key.len, 0);
        (void)printf("%*s %-6s ", value->key.len < 42 ? (int)(42 - value->key.len) : 0, "",
                     value_types[value->elem]);
        print_value(value, full);
    }
    if (gguf != NULL) {
        return GN_OK;
    }
    const char *key;
    const json_t *item;
    json_object_foreach((json_t *)(uintptr_t)gn_source_config(source), key, item)
    {
        char *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        if (text == NULL) {
            return gn_alloc_failed();
        }
        (void)fputs("  ", stdout);
        print_text(key, strlen(key), 0);
        (void)printf("%*s ", strlen(key) < 42 ? (int)(42 - strlen(key)) : 0, "");
        print_text(text, strlen(text), full ? 0 : SHOWN_CHARS);
        (void)putchar('\n');
        free(text);
    }
    return GN_OK;
}

static void print_tensors(const gn_source *source)
{
    (void)printf("\nTensors\n");
    for (size_t i = 0; i < gn_source_n_tensors(source); i++) {
        const char *name;
        const gn_view *view = gn_source_tensor_at(source, i, &name);
        char shape[96] = "";
        size_t at = 0;
        for (int d = 0; d < view->n_dims; d++) {
            int n = snprintf(shape + at, sizeof shape - at, "%s%" PRIu64, d > 0 ? " x " : "",
                             view->shape[d]);
            at += n > 0 ? (size_t)n : 0;
        }
        char size[GN_CLI_HUMAN];
        (void)fputs("  ", stdout);
        print_text(name, strlen(name), 0);
        (void)printf("%*s %-8s %-24s %s\n", strlen(name) < 42 ? (int)(42 - strlen(name)) : 0, "",
                     gn_dtype_find((uint32_t)view->dtype)->name, shape,
                     gn_cli_human_bytes(view->bytes, size));
    }
}

static void print_memory(const gn_cli_shape *shape, uint64_t weights)
{
    uint64_t kv;
    if (!kv_bytes(shape, 1, &kv) || shape->n_ctx_train == 0) {
        return;
    }
    (void)printf("\nMemory (KV cache in f16, %" PRIu64 " bytes a token)\n  %12s %12s %12s\n", kv,
                 "context", "KV", "with weights");
    for (uint64_t ctx = next_context(0, shape->n_ctx_train); ctx != 0 && kv_bytes(shape, ctx, &kv);
         ctx = next_context(ctx, shape->n_ctx_train)) {
        char a[GN_CLI_HUMAN];
        char b[GN_CLI_HUMAN];
        (void)printf("  %12" PRIu64 " %12s %12s\n", ctx, gn_cli_human_bytes(kv, a),
                     gn_cli_human_bytes(kv + weights, b));
    }
}

static gn_status print_tables(const gn_source *source, const facts *f, bool full)
{
    char a[GN_CLI_HUMAN];
    char b[GN_CLI_HUMAN];
    (void)printf("%s\n  format        %s", gn_source_path(source), format_name(source));
    if (gn_source_gguf(source) != NULL) {
        (void)printf(" version %u", gn_gguf_version(gn_source_gguf(source)));
    }
    (void)printf(", %s\n  architecture  ", gn_cli_human_bytes(gn_source_bytes(source), a));
    print_text(f->shape.architecture, strlen(f->shape.architecture), 0);
    (void)printf("\n  weights       %" PRIu64 " in %zu tensors, %s\n  shape         %" PRIu64
                 " layers of width %" PRIu64 ", vocabulary %" PRIu64 ", context %" PRIu64 "\n",
                 f->n_params, gn_source_n_tensors(source), gn_cli_human_bytes(f->weight_bytes, b),
                 f->shape.n_layer, f->shape.n_embd, f->shape.n_vocab, f->shape.n_ctx_train);
    (void)printf("\nTypes\n  %-10s %8s %16s %12s\n", "type", "tensors", "elements", "size");
    for (size_t i = 0; i < f->n_types; i++) {
        const gn_cli_type_count *t = &f->types[i];
        (void)printf("  %-10s %8" PRIu64 " %16" PRIu64 " %12s%s\n", t->type->name, t->n_tensors,
                     t->n_elements, gn_cli_human_bytes(t->n_bytes, a),
                     t->type->computed ? "" : "  (known, not computed by this build)");
    }
    print_memory(&f->shape, f->weight_bytes);
    GN_TRY(print_metadata(source, full));
    print_tensors(source);
    return GN_OK;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    const options *o = options_;
    gn_source *source = NULL;
    GN_TRY(gn_cli_source_open(args->v[0], &source));
    facts f = {.types = gn_calloc(GN_CLI_MAX_TYPES, sizeof *f.types)};
    gn_status status = f.types == NULL ? gn_alloc_failed() : GN_OK;
    if (status == GN_OK) {
        gn_cli_inspect_shape(source, &f.shape);
        f.n_types = gn_cli_inspect_types(source, f.types);
        for (size_t i = 0; i < f.n_types; i++) {
            f.n_params += f.types[i].n_elements;
            f.weight_bytes += f.types[i].n_bytes;
        }
        status = o->json ? print_json(source, &f, o->full) : print_tables(source, &f, o->full);
    }
    gn_free(f.types);
    gn_source_close(source);
    return status;
}

const gn_cli_command gn_cli_cmd_inspect = {
    .name = "inspect",
    .summary = "metadata, tensors and memory of a model file, without loading it",
    .usage = "[options] FILE",
    .details = "FILE is a .gguf file (the first of a split set), a Hugging Face folder, a\n"
               ".safetensors file in one, or the name of a pulled model.",
    .example = "ganglion inspect smollm2-135m\n"
               "ganglion inspect --json model.gguf | jq .types",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
