/* Tool calls in the text of a model: how a model writes them, a grammar that holds it to that, and the way back from the
 * text to calls. A call is a JSON object with a name and arguments in every format here; formats differ in what stands
 * around it:
 *
 *     hermes    <tool_call>\n{"name": …, "arguments": …}\n</tool_call>   Hermes, Qwen 2.5 and 3, and all others whose format
 *                                                                       is not known: they are told how in a system message
 *     mistral   [TOOL_CALLS][{"name": …, "arguments": …}, …]
 *     llama3    {"name": …, "parameters": …}                            as the whole answer, one call
 *     granite   <|tool_call|>[{"name": …, "arguments": …}, …]
 *     nemotron  <TOOLCALL>[{"name": …, "arguments": …}, …]</TOOLCALL>
 *     firefunction   functools[{"name": …, "arguments": …}, …]
 *
 * The grammar fixes the order of the two members, so that the name is known before the arguments come. */
#ifndef GN_AGENT_TOOLCALL_H
#define GN_AGENT_TOOLCALL_H

#include "base/buf.h"
#include "base/json.h"
#include "ganglion/grammar.h"

#include <jansson.h>

typedef struct gn_tool_format {
    const char *name;
    const char *marker;  /* a template with this in it writes calls so */
    const char *trigger; /* a call begins with it */
    bool at_start;       /* only at the start of an answer */
    bool many;           /* more than one call may stand in an answer */
    const char *open, *between, *close;
    const char *arguments; /* the name of that member */
    uint32_t
        id_len; /* ids of calls have so many letters and digits, or the template refuses; 0: any */
    bool told;  /* the template does not know tools: a system message tells the model */
} gn_tool_format;

/* The format of a model by its chat template (NULL: it has none). Static storage. */
const gn_tool_format *gn_toolcall_format(const char *chat_template);

/* --- the grammar --- */

typedef struct gn_toolcall_rules {
    const json_t *tools;    /* OpenAI's form */
    const gn_json *allowed; /* array of names; NULL: all */
    bool required;          /* at least one call, and nothing else */
    bool parallel;          /* more than one */
    bool thinks;            /* the answer begins inside of its reasoning */
} gn_toolcall_rules;

/* What an answer may be: text, calls of the tools with arguments that fulfil their schema, or both. Reasoning may
 * come first. Codes as gn_grammar_from_schema(); *pointer: into the tool's parameters, with the tool's name first. GN_E_ARG: no tool
 * is allowed. */
GN_MUST_USE gn_status gn_toolcall_grammar(const gn_tool_format *format,
                                          const gn_toolcall_rules *rules, gn_grammar **out,
                                          char **pointer);

/* --- from text to calls --- */

typedef enum gn_toolcall_event_type {
    GN_TOOLCALL_TEXT,     /* text that is no call */
    GN_TOOLCALL_BEGIN,    /* a call of `name` begins */
    GN_TOOLCALL_ARGUMENTS /* a piece of its arguments, JSON text */
} gn_toolcall_event_type;

typedef struct gn_toolcall_event {
    gn_toolcall_event_type type;
    const char *text; /* not NUL-terminated; of BEGIN the name */
    size_t len;
} gn_toolcall_event;

/* Reads an answer piece by piece. What may be the beginning of a call is held back; what turns out to be none is text. */
typedef struct gn_toolcall_reader gn_toolcall_reader;

GN_MUST_USE gn_status gn_toolcall_reader_create(const gn_tool_format *format,
                                                gn_toolcall_reader **out);
void gn_toolcall_reader_destroy(gn_toolcall_reader *reader);
/* More text, whole UTF-8 sequences; `last`: nothing follows. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_toolcall_reader_push(gn_toolcall_reader *reader, const char *text,
                                              size_t len, bool last);
/* The next event of what was pushed, or false; what it points to lives until the next push. */
bool gn_toolcall_reader_take(gn_toolcall_reader *reader, gn_toolcall_event *out);

/* --- the conversation --- */

/* Messages as the template wants them, a new array: arguments as objects; where the template does not know tools, what
 * they are in a system message, calls and results as text. Malformed calls and results become text. NULL: no
 * memory. */
json_t *gn_toolcall_messages(const gn_tool_format *format, const json_t *messages,
                             const json_t *tools);

#endif
