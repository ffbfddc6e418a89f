/* References: resources by $id (RFC 3986 resolution), anchors, JSON pointers (RFC 6901). Only this document
 * is known; whatever lies elsewhere is refused. */
#include "grammar/schema_impl.h"

#include "base/alloc.h"

#include <string.h>

enum { MAX_URI = 2048 };

/* ---- URIs ---- */

typedef struct part {
    const char *s;
    size_t len;
} part;

typedef struct uri {
    part scheme, authority, path, query;
    bool has_authority, has_query;
} uri;

static uri split_uri(const char *s, size_t len)
{
    uri u = {0};
    size_t at = 0;
    size_t colon = strcspn(s, ":/?#");
    if (colon > 0 && colon < len && s[colon] == ':') {
        u.scheme = (part){s, colon};
        at = colon + 1;
    }
    if (len - at >= 2 && s[at] == '/' && s[at + 1] == '/') {
        u.has_authority = true;
        u.authority.s = s + at + 2;
        u.authority.len = strcspn(u.authority.s, "/?");
        if (u.authority.len > len - at - 2) {
            u.authority.len = len - at - 2;
        }
        at += 2 + u.authority.len;
    }
    const char *question = memchr(s + at, '?', len - at);
    size_t end = question != NULL ? (size_t)(question - s) : len;
    u.path = (part){s + at, end - at};
    u.has_query = question != NULL;
    if (u.has_query) {
        u.query = (part){question + 1, len - end - 1};
    }
    return u;
}

/* Append `path` to out without "." and ".." (RFC 3986, 5.2.4). */
static gn_status put_path(gn_buf *out, const char *path, size_t len)
{
    size_t start = out->len;
    size_t at = 0;
    while (at < len) {
        const char *slash = memchr(path + at + 1, '/', len - at - 1);
        size_t end = slash != NULL ? (size_t)(slash - path) : len;
        size_t skip = path[at] == '/' ? 1 : 0;
        part name = {path + at + skip, end - at - skip};
        bool dot = name.len == 1 && name.s[0] == '.';
        bool dots = name.len == 2 && name.s[0] == '.' && name.s[1] == '.';
        if (dots) {
            while (out->len > start && out->data[--out->len] != '/') {
            }
        }
        if ((dot || dots) && slash == NULL) {
            GN_TRY(gn_buf_putc(out, '/'));
        } else if (!dot && !dots) {
            GN_TRY(gn_buf_append(out, path + at, end - at));
        }
        at = end;
    }
    return GN_OK;
}

static gn_status resolve_path(gn_buf *out, const uri *base, const uri *ref)
{
    if (ref->path.len == 0) {
        return put_path(out, base->path.s, base->path.len);
    }
    if (ref->path.s[0] == '/') {
        return put_path(out, ref->path.s, ref->path.len);
    }
    size_t keep = base->path.len;
    while (keep > 0 && base->path.s[keep - 1] != '/') {
        keep--;
    }
    gn_buf merged = {0};
    gn_status status = gn_buf_append(&merged, base->path.s, keep);
    if (status == GN_OK && keep == 0 && base->has_authority) {
        status = gn_buf_putc(&merged, '/');
    }
    if (status == GN_OK) {
        status = gn_buf_append(&merged, ref->path.s, ref->path.len);
    }
    if (status == GN_OK) {
        status = put_path(out, merged.data, merged.len);
    }
    gn_buf_fini(&merged);
    return status;
}

/* ref[0 .. len) without its fragment, against base: RFC 3986, 5.2.2. */
static gn_status resolve_uri(const char *base_text, const char *ref_text, size_t len, gn_buf *out)
{
    uri base = split_uri(base_text, strlen(base_text));
    uri ref = split_uri(ref_text, len);
    if (ref.scheme.len != 0) {
        base = ref;
    }
    const uri *authority = ref.scheme.len != 0 || ref.has_authority ? &ref : &base;
    if (base.scheme.len != 0) {
        GN_TRY(gn_buf_append(out, base.scheme.s, base.scheme.len));
        GN_TRY(gn_buf_putc(out, ':'));
    }
    if (authority->has_authority) {
        GN_TRY(gn_buf_puts(out, "//"));
        GN_TRY(gn_buf_append(out, authority->authority.s, authority->authority.len));
    }
    if (authority == &ref) {
        GN_TRY(put_path(out, ref.path.s, ref.path.len));
    } else {
        GN_TRY(resolve_path(out, &base, &ref));
    }
    const uri *query = ref.has_query || ref.path.len != 0 || authority == &ref ? &ref : &base;
    if (query->has_query) {
        GN_TRY(gn_buf_putc(out, '?'));
        GN_TRY(gn_buf_append(out, query->query.s, query->query.len));
    }
    return gn_buf_puts(out, "");
}

/* ---- finding resources and anchors ---- */

static const gn_json *string_member(const gn_json *node, const char *key)
{
    const gn_json *m = gn_base_json_get(node, key);
    return m != NULL && m->type == GN_JSON_STRING ? m : NULL;
}

/* $id of 2020-12 and draft 7; draft 4's id. A fragment alone is draft 7's anchor. */
static const gn_json *id_of(const gn_schema *s, const gn_json *node)
{
    const gn_json *id = string_member(node, "$id");
    if (id == NULL && s->ref_alone) {
        id = string_member(node, "id");
    }
    bool hidden = s->ref_alone && string_member(node, "$ref") != NULL;
    return hidden ? NULL : id;
}

static const gn_schema_resource *resource_at(const gn_schema *s, const gn_json *node)
{
    for (; node != NULL; node = node->parent) {
        for (size_t i = 0; i < s->n_resources; i++) {
            if (s->resources[i].node == node) {
                return &s->resources[i];
            }
        }
    }
    return &s->resources[0];
}

static gn_status add_resource(gn_schema *s, const gn_json *node, const char *uri_text)
{
    gn_schema_resource *grown =
        gn_grow_array(s->resources, &s->cap_resources, s->n_resources + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    s->resources = grown;
    s->resources[s->n_resources++] = (gn_schema_resource){node, uri_text};
    return GN_OK;
}

static gn_status add_anchor(gn_schema *s, const gn_json *node, const char *name, bool dynamic)
{
    gn_schema_anchor *grown =
        gn_grow_array(s->anchors, &s->cap_anchors, s->n_anchors + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    s->anchors = grown;
    s->anchors[s->n_anchors++] =
        (gn_schema_anchor){resource_at(s, node)->node, node, name, dynamic};
    return GN_OK;
}

static gn_status note(gn_schema *s, const gn_json *node)
{
    const gn_json *id = id_of(s, node);
    const gn_json *anchor = string_member(node, "$anchor");
    const gn_json *dynamic = string_member(node, "$dynamicAnchor");
    if (id != NULL) {
        size_t len = strcspn(id->text, "#");
        if (len == 0 && id->text[0] == '#') {
            GN_TRY(add_anchor(s, node, id->text + 1, false));
        } else if (id->len <= MAX_URI) {
            gn_buf full = {0};
            gn_status status = resolve_uri(resource_at(s, node)->uri, id->text, len, &full);
            char *copy = status == GN_OK ? gn_arena_strndup(&s->arena, full.data, full.len) : NULL;
            gn_buf_fini(&full);
            GN_TRY(status);
            if (copy == NULL) {
                return gn_alloc_failed();
            }
            if (node == s->root) {
                s->resources[0].uri = copy;
            } else {
                GN_TRY(add_resource(s, node, copy));
            }
        }
    }
    if (anchor != NULL) {
        GN_TRY(add_anchor(s, node, anchor->text, false));
    }
    return dynamic != NULL ? add_anchor(s, node, dynamic->text, true) : GN_OK;
}

/* Values are no schemas: an $id inside of enum, const, default or examples is data. */
static bool is_data(const gn_json *node)
{
    static const char *const keys[] = {"enum", "const", "default", "examples", "example"};
    bool member_of_map =
        node->parent != NULL && node->parent->key != NULL &&
        (strcmp(node->parent->key, "properties") == 0 || strcmp(node->parent->key, "$defs") == 0 ||
         strcmp(node->parent->key, "definitions") == 0);
    for (size_t i = 0; node->key != NULL && !member_of_map && i < GN_COUNTOF(keys); i++) {
        if (strcmp(node->key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

gn_status gn_schema_index(gn_schema *s)
{
    GN_TRY(add_resource(s, s->root, ""));
    const gn_json *node = s->root;
    while (node != NULL) {
        s->nodes[node->id] = node;
        bool data = is_data(node);
        if (!data && node->type == GN_JSON_OBJECT) {
            GN_TRY(note(s, node));
            s->unevaluated = s->unevaluated ||
                             gn_base_json_get(node, "unevaluatedProperties") != NULL ||
                             gn_base_json_get(node, "unevaluatedItems") != NULL;
        }
        const gn_json *next = node->type >= GN_JSON_ARRAY ? node->first : NULL;
        while (next == NULL && node != NULL) {
            next = node->next;
            node = node->parent;
        }
        node = next;
    }
    return GN_OK;
}

/* ---- pointers ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One name of a pointer, percent-decoded and with ~0 and ~1 replaced. */
static gn_status decode_name(const char *s, size_t len, gn_buf *out)
{
    gn_buf_clear(out);
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        if (c == '%' && i + 2 < len && hex_digit(s[i + 1]) >= 0 && hex_digit(s[i + 2]) >= 0) {
            c = (char)(hex_digit(s[i + 1]) * 16 + hex_digit(s[i + 2]));
            i += 2;
        }
        if (c == '~' && i + 1 < len && (s[i + 1] == '0' || s[i + 1] == '1')) {
            c = s[++i] == '0' ? '~' : '/';
        }
        GN_TRY(gn_buf_putc(out, c));
    }
    return gn_buf_puts(out, "");
}

static const gn_json *child_of(const gn_json *node, const gn_buf *name)
{
    size_t index = 0;
    for (size_t i = 0; i < name->len && node->type == GN_JSON_ARRAY; i++) {
        if (name->data[i] < '0' || name->data[i] > '9' || index > node->len) {
            return NULL;
        }
        index = index * 10 + (size_t)(name->data[i] - '0');
    }
    for (const gn_json *c = node->type >= GN_JSON_ARRAY ? node->first : NULL; c != NULL;
         c = c->next) {
        if (node->type == GN_JSON_ARRAY
                ? index-- == 0
                : c->key_len == name->len &&
                      memcmp(c->key, name->len != 0 ? name->data : "", name->len) == 0) {
            return c;
        }
    }
    return NULL;
}

static gn_status follow(const gn_json *node, const char *pointer, const gn_json **out)
{
    gn_buf name = {0};
    gn_status status = GN_OK;
    while (*pointer == '/' && node != NULL && status == GN_OK) {
        size_t len = strcspn(pointer + 1, "/");
        status = decode_name(pointer + 1, len, &name);
        if (status == GN_OK) {
            node = child_of(node, &name);
        }
        pointer += 1 + len;
    }
    gn_buf_fini(&name);
    *out = node;
    return status;
}

/* The anchor of that name in a resource; *n says how many dynamic anchors have the name in the document. */
static const gn_json *find_anchor(const gn_schema *s, const gn_json *resource, const char *name,
                                  size_t *n)
{
    const gn_json *found = NULL;
    *n = 0;
    for (size_t i = 0; i < s->n_anchors; i++) {
        if (strcmp(s->anchors[i].name, name) == 0) {
            *n += s->anchors[i].dynamic;
            if (s->anchors[i].resource == resource) {
                found = s->anchors[i].node;
            }
        }
    }
    return found;
}

static gn_status find_resource(gn_schema *s, const gn_json *ref, size_t len, const gn_json **out)
{
    const gn_schema_resource *here = resource_at(s, ref);
    *out = len == 0 ? here->node : NULL;
    if (len == 0) {
        return GN_OK;
    }
    if (len > MAX_URI) {
        return gn_schema_refuse(s, ref, GN_E_LIMIT, "a reference of more than %d bytes", MAX_URI);
    }
    gn_buf full = {0};
    gn_status status = resolve_uri(here->uri, ref->text, len, &full);
    for (size_t i = 0; status == GN_OK && i < s->n_resources && *out == NULL; i++) {
        if (strcmp(s->resources[i].uri, full.data) == 0) {
            *out = s->resources[i].node;
        }
    }
    gn_buf_fini(&full);
    return status;
}

gn_status gn_schema_resolve(gn_schema *s, const gn_json *ref, const gn_json **out)
{
    const gn_json *target = NULL;
    size_t len = strcspn(ref->text, "#");
    const char *fragment = ref->text[len] == '#' ? ref->text + len + 1 : "";
    GN_TRY(find_resource(s, ref, len, &target));
    if (target == NULL) {
        return gn_schema_refuse(s, ref, GN_E_UNSUPPORTED,
                                "the reference \"%.200s\" leads out of this document", ref->text);
    }
    if (fragment[0] == '/') {
        GN_TRY(follow(target, fragment, &target));
    } else if (fragment[0] != '\0') {
        size_t n_dynamic = 0;
        target = find_anchor(s, target, fragment, &n_dynamic);
        if (n_dynamic > 1 && strcmp(ref->key, "$dynamicRef") == 0) {
            return gn_schema_refuse(s, ref, GN_E_UNSUPPORTED,
                                    "a dynamic reference with several targets can't be enforced");
        }
    }
    if (target == NULL) {
        return gn_schema_refuse(s, ref, GN_E_FORMAT, "the reference \"%.200s\" leads nowhere",
                                ref->text);
    }
    *out = target;
    return GN_OK;
}
