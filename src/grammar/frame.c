#include "grammar/frame.h"

#include <string.h>

/* Any text in UTF-8. */
static gn_re any_text(gn_re_pool *pool)
{
    return gn_grammar_re_repeat(pool, gn_grammar_re_chars(pool, NULL, 0, true), 0, GN_RE_MANY);
}

static gn_re cat3(gn_re_pool *pool, gn_re a, gn_re b, gn_re c)
{
    return gn_grammar_re_cat(pool, a, gn_grammar_re_cat(pool, b, c));
}

/* Text without `s`, or where at_start text that does not begin with it. */
static gn_re text_without(gn_re_pool *pool, const char *s, bool at_start)
{
    gn_re any = any_text(pool);
    gn_re literal = gn_grammar_re_literal(pool, s, strlen(s));
    gn_re has = at_start ? gn_grammar_re_cat(pool, literal, any) : cat3(pool, any, literal, any);
    const gn_re both[] = {any, gn_grammar_re_not(pool, has)};
    return gn_grammar_re_and(pool, both, 2);
}

/* What is left of "<think>…</think>" and the blanks behind it. */
static gn_re thought(gn_re_pool *pool, bool open)
{
    static const char begin[] = "<think>";
    static const char end[] = "</think>";
    gn_re_set blanks = {0};
    gn_re_set_add(&blanks, '\n');
    gn_re_set_add(&blanks, ' ');
    gn_re tail = gn_grammar_re_repeat(pool, gn_grammar_re_set(pool, &blanks), 0, 2);
    gn_re body = cat3(pool, text_without(pool, end, false),
                      gn_grammar_re_literal(pool, end, sizeof end - 1), tail);
    if (open) {
        return body;
    }
    return gn_grammar_re_repeat(
        pool, gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, begin, sizeof begin - 1), body),
        0, 1);
}

static gn_ir items(gn_ir_builder *b, const gn_frame *frame, gn_ir item)
{
    gn_ir open = gn_grammar_ir_literal(b, frame->open, strlen(frame->open));
    gn_ir close = gn_grammar_ir_literal(b, frame->close, strlen(frame->close));
    gn_ir more = GN_IR_EPS;
    if (frame->most > 1) {
        const gn_ir next[] = {gn_grammar_ir_literal(b, frame->between, strlen(frame->between)),
                              item};
        uint32_t most = frame->most == GN_IR_MANY ? GN_IR_MANY : frame->most - 1;
        more = gn_grammar_ir_repeat(b, gn_grammar_ir_seq(b, next, 2), 0, most);
    }
    const gn_ir all[] = {open, item, more, close};
    gn_ir node = gn_grammar_ir_seq(b, all, 4);
    return frame->required ? node : gn_grammar_ir_repeat(b, node, 0, 1);
}

/* With a trigger that counts at the start alone, an answer is one or the other. */
static gn_ir body(gn_ir_builder *b, const gn_frame *frame, gn_ir item)
{
    gn_ir calls = items(b, frame, item);
    if (frame->trigger == NULL) {
        return calls;
    }
    gn_ir text =
        gn_grammar_ir_term(b, text_without(gn_grammar_ir_pool(b), frame->trigger, frame->at_start));
    const gn_ir both[] = {text, calls};
    return frame->at_start ? gn_grammar_ir_alt(b, both, 2) : gn_grammar_ir_seq(b, both, 2);
}

gn_ir gn_grammar_frame(gn_ir_builder *b, const gn_frame *frame, gn_ir item)
{
    gn_ir node = body(b, frame, item);
    if (frame->thought == GN_THOUGHT_NONE) {
        return node;
    }
    bool open = frame->thought == GN_THOUGHT_OPEN;
    const gn_ir both[] = {gn_grammar_ir_term(b, thought(gn_grammar_ir_pool(b), open)), node};
    return gn_grammar_ir_seq(b, both, 2);
}
