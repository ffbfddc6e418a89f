/* A conversation in OpenAI's chat form, written message by message from another API's. Functions keep the first
 * failure (memory) in `status`, as the JSON writer does, so that a reader checks once at the end. One thread; a
 * gn_talk may not be moved. */
#ifndef GN_SERVE_TALK_H
#define GN_SERVE_TALK_H

#include "base/buf.h"
#include "base/json.h"
#include "base/json_write.h"

#include <jansson.h>

typedef struct gn_talk {
    gn_buf json; /* the array of messages, ended by gn_talk_end() */
    gn_json_out out;
    gn_status status;
    size_t n; /* messages, the open one included */
    /* The open message. */
    const char *role; /* NULL: none is open */
    gn_buf text;
    bool has_text;
    gn_buf reasoning;
    gn_buf calls; /* JSON values with commas between them */
    gn_buf about; /* members that only this message has, each with a comma before it */
} gn_talk;

void gn_talk_init(gn_talk *talk);
void gn_talk_fini(gn_talk *talk);

/* Begin a message of this role (a literal), ending the one before. */
void gn_talk_begin(gn_talk *talk, const char *role);
/* The same, but an open message of this role goes on: APIs whose turns come in pieces. */
void gn_talk_continue(gn_talk *talk, const char *role);
/* Begin the result of a tool call. id, name: NULL or a JSON string. */
void gn_talk_result(gn_talk *talk, const gn_json *id, const gn_json *name);

/* Pieces of the open message. Pieces of text stand on lines of their own. */
void gn_talk_text(gn_talk *talk, const char *s, size_t len);
void gn_talk_reasoning(gn_talk *talk, const char *s, size_t len);
/* arguments: JSON text, of which white space between values is dropped where `compact`. */
void gn_talk_call(gn_talk *talk, const gn_json *id, const gn_json *name, const char *arguments,
                  size_t len, bool compact);

/* End the last message and the array. The text stays in talk->json. */
GN_MUST_USE gn_status gn_talk_end(gn_talk *talk);

/* JSON text as jansson's value; give it back with json_decref(). GN_E_ARG: jansson can't hold it (a number out of
 * its range). */
GN_MUST_USE gn_status gn_talk_value(const char *json, size_t len, json_t **out);
/* The array of these strings, in `arena`. */
GN_MUST_USE gn_status gn_talk_names(gn_arena *arena, const gn_json *const *names, size_t n,
                                    const gn_json **out);
/* What a template is told about reasoning, in `arena`: enable_thinking (think: NULL where the request does not say)
 * and reasoning_effort (a string, or NULL), of which "none" is no thinking. *out is left as it is where both are
 * NULL. */
GN_MUST_USE gn_status gn_talk_thinking(gn_arena *arena, const bool *think, const gn_json *effort,
                                       const gn_json **out);
/* JSON text without white space between its values (so it is one line), appended to `buf`. */
GN_MUST_USE gn_status gn_talk_compact(gn_buf *buf, const char *json, size_t len);
/* A value as it stands in a request, as a member of a reply. */
void gn_talk_put(gn_json_out *out, const char *key, const gn_json *value);

#endif
