#include "serve/chat_impl.h"

#include <stdio.h>
#include <string.h>

static const char open_tag[] = "<think>";
static const char close_tag[] = "</think>";

static gn_status add_piece(gn_chat_choice *choice, gn_chat_delta_type type, const char *s,
                           size_t len)
{
    if (len == 0) {
        return GN_OK;
    }
    size_t begin = choice->text.len;
    GN_TRY(gn_buf_append(&choice->text, s, len));
    choice->pieces[choice->n_pieces++] = (gn_chat_piece){.type = type, .begin = begin, .len = len};
    return GN_OK;
}

static size_t skip_blanks(const char *s, size_t len)
{
    size_t i = 0;
    while (i < len && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r')) {
        i++;
    }
    return i;
}

/* Bytes at the end of s that may be the beginning of the tag. */
static size_t tail_of(const char *s, size_t len, const char *tag)
{
    size_t most = strlen(tag) - 1;
    for (size_t n = most < len ? most : len; n > 0; n--) {
        if (memcmp(s + len - n, tag, n) == 0) {
            return n;
        }
    }
    return 0;
}

/* Does the answer begin with reasoning? true: decided. */
static bool settle(gn_chat_choice *choice, bool last)
{
    const gn_buf *held = &choice->held;
    size_t blanks = skip_blanks(held->data, held->len);
    size_t rest = held->len - blanks;
    size_t n = strlen(open_tag) < rest ? strlen(open_tag) : rest;
    bool fits = memcmp(held->data + blanks, open_tag, n) == 0;
    if (fits && n < strlen(open_tag) && !last) {
        return false;
    }
    choice->settled = true;
    if (fits && n == strlen(open_tag)) {
        choice->thinks = true;
        size_t cut = blanks + n;
        memmove(choice->held.data, choice->held.data + cut, held->len - cut);
        choice->held.len -= cut;
    }
    return true;
}

static gn_status push_reasoning(gn_chat_choice *choice, bool last)
{
    gn_buf *held = &choice->held;
    const char *end =
        held->len > 0 ? memmem(held->data, held->len, close_tag, strlen(close_tag)) : NULL;
    if (end == NULL) {
        size_t keep = last || held->len == 0 ? 0 : tail_of(held->data, held->len, close_tag);
        GN_TRY(add_piece(choice, GN_CHAT_REASONING, held->data, held->len - keep));
        if (held->len > 0) {
            memmove(held->data, held->data + held->len - keep, keep);
        }
        held->len = keep;
        return GN_OK;
    }
    size_t n = (size_t)(end - held->data);
    GN_TRY(add_piece(choice, GN_CHAT_REASONING, held->data, n));
    choice->thinks = false;
    n += strlen(close_tag);
    memmove(held->data, held->data + n, held->len - n);
    held->len -= n;
    return GN_OK;
}

gn_status gn_chat_choice_push(gn_chat_choice *choice, const char *text, size_t len, bool last)
{
    gn_buf_clear(&choice->text);
    choice->n_pieces = 0;
    choice->n_taken = 0;
    choice->last = last;
    GN_TRY(gn_buf_append(&choice->held, text, len));
    if (choice->held.len == 0) {
        return GN_OK;
    }
    if (!choice->settled && !choice->thinks && !settle(choice, last)) {
        return GN_OK;
    }
    if (choice->thinks) {
        GN_TRY(push_reasoning(choice, last));
        if (choice->thinks || choice->held.len == 0) {
            choice->settled = true;
            return GN_OK;
        }
    }
    choice->settled = true;
    gn_status status = add_piece(choice, GN_CHAT_TEXT, choice->held.data, choice->held.len);
    gn_buf_clear(&choice->held);
    return status;
}

/* An event of the tools' reader as a delta. */
static gn_status call_delta(gn_chat_choice *choice, const gn_toolcall_event *event,
                            gn_chat_delta *out)
{
    out->text = event->text;
    out->len = event->len;
    switch (event->type) {
    case GN_TOOLCALL_TEXT: out->type = GN_CHAT_TEXT; return GN_OK;
    case GN_TOOLCALL_ARGUMENTS:
        out->type = GN_CHAT_ARGUMENTS;
        out->call_index = choice->n_calls - 1;
        return GN_OK;
    case GN_TOOLCALL_BEGIN: break;
    }
    gn_buf_clear(&choice->name);
    GN_TRY(gn_buf_append(&choice->name, event->text, event->len));
    (void)snprintf(choice->id, sizeof choice->id, "call_%s%d", choice->id_stem, choice->n_calls);
    out->type = GN_CHAT_CALL;
    out->text = NULL;
    out->len = 0;
    out->id = choice->id;
    out->name = choice->name.data;
    out->call_index = choice->n_calls++;
    return GN_OK;
}

gn_status gn_chat_choice_take(gn_chat_choice *choice, gn_chat_delta *out, bool *any)
{
    gn_toolcall_event event;
    *any = true;
    for (;;) {
        if (choice->reading && gn_toolcall_reader_take(choice->tools, &event)) {
            return call_delta(choice, &event, out);
        }
        choice->reading = false;
        if (choice->n_taken == choice->n_pieces) {
            if (choice->tools == NULL || !choice->last || choice->flushed) {
                *any = false;
                return GN_OK;
            }
            GN_TRY(gn_toolcall_reader_push(choice->tools, "", 0, true));
            choice->flushed = true;
            choice->reading = true;
            continue;
        }
        const gn_chat_piece *piece = &choice->pieces[choice->n_taken++];
        const char *text = choice->text.data + piece->begin;
        if (choice->tools == NULL || piece->type != GN_CHAT_TEXT) {
            out->type = piece->type;
            out->text = text;
            out->len = piece->len;
            return GN_OK;
        }
        GN_TRY(gn_toolcall_reader_push(choice->tools, text, piece->len, false));
        choice->reading = true;
    }
}

void gn_chat_choice_fini(gn_chat_choice *choice)
{
    gn_request_release(choice->request);
    gn_toolcall_reader_destroy(choice->tools);
    gn_buf_fini(&choice->held);
    gn_buf_fini(&choice->text);
    gn_buf_fini(&choice->name);
}
