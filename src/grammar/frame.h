/* Text around values: how tool calls stand in an answer. The grammar is
 *
 *     thought? free? (open item (between item)* close)?
 *
 * where the items are values of one grammar node, and the free text ends where `open` begins. */
#ifndef GN_GRAMMAR_FRAME_H
#define GN_GRAMMAR_FRAME_H

#include "grammar/ir.h"

typedef enum gn_frame_thought {
    GN_THOUGHT_NONE, /* no reasoning may come */
    GN_THOUGHT_MAY,  /* "<think>…</think>" may come first */
    GN_THOUGHT_OPEN  /* the answer begins inside of it */
} gn_frame_thought;

typedef struct gn_frame { /* strings are borrowed, NUL-terminated UTF-8 */
    const char *trigger;  /* free text may come that does not contain it; NULL: none */
    bool at_start;        /* free text may contain the trigger, but not begin with it */
    const char *open, *between, *close;
    bool required; /* at least one item */
    uint32_t most; /* items, at least 1; GN_IR_MANY: any number */
    gn_frame_thought thought;
} gn_frame;

/* GN_IR_NONE once the builder has failed. */
gn_ir gn_grammar_frame(gn_ir_builder *b, const gn_frame *frame, gn_ir item);

#endif
