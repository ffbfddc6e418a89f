/* Deltas of one kind in a row are one part. A text after a tool call is a part of its own, so that an API whose
 * answers are lists keeps the order. */
#include "serve/parts.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "serve/talk.h"

static gn_status begin_part(gn_parts *parts, const gn_chat_delta *delta)
{
    gn_part *v = gn_grow_array(parts->v, &parts->cap, parts->n + 1, sizeof *v);
    GN_REQUIRE(v != NULL, GN_E_NOMEM, "out of memory");
    parts->v = v;
    gn_part *part = &v[parts->n];
    *part = (gn_part){.type = delta->type};
    if (delta->type == GN_CHAT_CALL) {
        part->id = gn_strdup(delta->id);
        part->name = gn_strdup(delta->name);
        if (part->id == NULL || part->name == NULL) {
            gn_free(part->id);
            gn_free(part->name);
            return gn_alloc_failed();
        }
    }
    parts->n++;
    return GN_OK;
}

gn_status gn_parts_add(gn_parts *parts, const gn_chat_delta *delta, bool *begun)
{
    bool begins = false;
    switch (delta->type) {
    case GN_CHAT_TEXT:
    case GN_CHAT_REASONING:
        if (delta->len == 0) {
            break;
        }
        begins = parts->n == 0 || parts->v[parts->n - 1].type != delta->type;
        if (begins) {
            GN_TRY(begin_part(parts, delta));
        }
        GN_TRY(gn_buf_append(&parts->v[parts->n - 1].text, delta->text, delta->len));
        break;
    case GN_CHAT_CALL:
        begins = true;
        GN_TRY(begin_part(parts, delta));
        break;
    case GN_CHAT_ARGUMENTS:
        if (parts->n > 0) {
            GN_TRY(gn_buf_append(&parts->v[parts->n - 1].text, delta->text, delta->len));
        }
        break;
    case GN_CHAT_FINISH:
        parts->ended = true;
        parts->finish = delta->finish;
        parts->called = delta->called;
        if (delta->stop_text != NULL) {
            gn_free(parts->stop_text);
            parts->stop_text = gn_strdup(delta->stop_text);
            GN_REQUIRE(parts->stop_text != NULL, GN_E_NOMEM, "out of memory");
        }
        break;
    case GN_CHAT_START:
    case GN_CHAT_LOGPROB:
    case GN_CHAT_PING:
    case GN_CHAT_FAILED: break;
    }
    if (begun != NULL) {
        *begun = begins;
    }
    return GN_OK;
}

void gn_parts_fini(gn_parts *parts)
{
    if (parts == NULL) {
        return;
    }
    for (size_t i = 0; i < parts->n; i++) {
        gn_buf_fini(&parts->v[i].text);
        gn_buf_fini(&parts->v[i].logprobs);
        gn_free(parts->v[i].id);
        gn_free(parts->v[i].name);
    }
    gn_free(parts->v);
    gn_free(parts->stop_text);
    *parts = (gn_parts){0};
}

void gn_parts_put_arguments(gn_json_out *out, const char *key, const gn_part *part)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *value = NULL;
    if (part->text.len > 0 &&
        gn_base_json_parse(&arena, part->text.data, part->text.len, &value, NULL) == GN_OK &&
        value->type == GN_JSON_OBJECT) {
        gn_talk_put(out, key, value);
    } else {
        gn_base_put_raw(out, key, "{}", 2);
    }
    gn_arena_fini(&arena);
}
