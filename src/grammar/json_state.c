/* Objects and arrays while they are matched. A member may come only if what must still come afterwards can come
 * within the bounds, so no choice leads to a dead end; the least length of that rest is found by the same
 * count, and a shortest completion follows it. Where a minimum has to be filled with members that are not required,
 * they are taken in the order they are written, not the cheapest first. */
#include "grammar/ir_impl.h"

#include <string.h>

static bool bit(const uint64_t *bits, uint32_t i)
{
    return bits != NULL && (bits[i / 64] >> (i % 64) & 1) != 0;
}

static bool behind(const ir_object *o, ir_place p, uint32_t i)
{
    if (o->ordered) {
        return i < p.at;
    }
    return !o->members[i].is_free && bit(p.seen, i);
}

void gn_grammar_ir_measure_style(gn_ir_builder *b)
{
    for (uint32_t i = 0; i < b->n_objects; i++) {
        ir_object *o = &b->objects[i];
        o->ordered = o->ordered && !o->has_needs;
        o->open_len = 1 + gn_grammar_re_min_len(b->pool, o->style.open_pad);
        o->comma_len = gn_grammar_re_min_len(b->pool, o->style.comma);
        o->close_len = 1 + gn_grammar_re_min_len(b->pool, o->style.close_pad);
    }
    for (uint32_t i = 0; i < b->n_arrays; i++) {
        ir_array *a = &b->arrays[i];
        a->open_len = 1 + gn_grammar_re_min_len(b->pool, a->style.open_pad);
        a->comma_len = gn_grammar_re_min_len(b->pool, a->style.comma);
        a->close_len = 1 + gn_grammar_re_min_len(b->pool, a->style.close_pad);
    }
}

/* ---- Objects ----------------------------------------------------------------------------------------- */

/* Bits of the members that must stand because they are required, or needed by one that stands. */
static void find_required(const ir_object *o, ir_place p)
{
    memset(o->work, 0, (o->n_members / 64 + 1) * sizeof *o->work);
    for (uint32_t i = 0; i < o->n_members; i++) {
        if (o->members[i].required) {
            o->work[i / 64] |= (uint64_t)1 << (i % 64);
        }
    }
    for (bool more = o->has_needs; more;) {
        more = false;
        for (uint32_t i = 0; i < o->n_members; i++) {
            const gn_ir_member *m = &o->members[i];
            if (m->n_needs == 0 || (!bit(o->work, i) && !bit(p.seen, i))) {
                continue;
            }
            for (size_t k = 0; k < m->n_needs; k++) {
                uint64_t *word = &o->work[m->needs[k] / 64];
                uint64_t one = (uint64_t)1 << (m->needs[k] % 64);
                more |= (*word & one) == 0;
                *word |= one;
            }
        }
    }
}

/* Bytes of `need` further members that are not required. */
static uint64_t fill(const ir_object *o, ir_place p, uint32_t need)
{
    uint64_t again = IR_NEVER; /* the cheapest that may come again and again */
    for (uint32_t i = 0; i < o->n_members; i++) {
        if (o->members[i].is_free && !behind(o, p, i) && o->cost[i] < again) {
            again = o->cost[i];
        }
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < o->n_members && need > 0; i++) {
        const gn_ir_member *m = &o->members[i];
        if (m->is_free || m->n_needs != 0 || bit(o->work, i) || behind(o, p, i) ||
            o->cost[i] == IR_NEVER || o->cost[i] > again) {
            continue;
        }
        sum = ir_add(sum, ir_add(o->cost[i], o->comma_len));
        need--;
    }
    if (need > 0) {
        sum = again == IR_NEVER ? IR_NEVER : ir_add(sum, ir_mul(ir_add(again, o->comma_len), need));
    }
    return sum;
}

uint64_t gn_grammar_ir_object_rest(const gn_ir_builder *b, const ir_object *o, ir_place p)
{
    (void)b;
    find_required(o, p);
    uint64_t sum = 0;
    uint64_t count = p.count;
    for (uint32_t i = 0; i < o->n_members; i++) {
        if (!bit(o->work, i)) {
            continue;
        }
        if (o->ordered ? i < p.at : bit(p.seen, i)) {
            continue;
        }
        sum = ir_add(sum, ir_add(o->cost[i], o->comma_len));
        count++;
    }
    if (sum == IR_NEVER || (o->max_props != GN_IR_MANY && count > o->max_props)) {
        return IR_NEVER;
    }
    if (count < o->min_props) {
        uint64_t more = fill(o, p, (uint32_t)(o->min_props - count));
        sum = ir_add(sum, more);
        count = o->min_props;
    }
    if (p.count == 0 && count > 0 && sum != IR_NEVER) {
        sum -= o->comma_len;
    }
    return ir_add(sum, o->close_len);
}

uint64_t gn_grammar_ir_object_len(const gn_ir_builder *b, ir_object *o)
{
    for (uint32_t i = 0; i < o->n_members; i++) {
        const gn_ir_member *m = &o->members[i];
        uint64_t key = ir_re_len(b->pool, m->key);
        uint64_t value = b->nodes[m->value].min_len;
        o->cost[i] = ir_add(ir_add(key, value), ir_re_len(b->pool, o->style.colon));
    }
    return ir_add(gn_grammar_ir_object_rest(b, o, (ir_place){0}), o->open_len);
}

ir_place gn_grammar_ir_object_after(const ir_object *o, ir_place p, uint32_t i, uint64_t *seen)
{
    if (o->ordered) {
        p.at = i + !o->members[i].is_free;
    } else if (!o->members[i].is_free) {
        seen[i / 64] |= (uint64_t)1 << (i % 64);
        p.seen = seen;
    }
    /* Counts beyond what the bounds tell apart are one. */
    uint32_t top = o->max_props != GN_IR_MANY ? o->max_props : o->min_props > 1 ? o->min_props : 1;
    p.count += p.count < top || p.count == 0;
    return p;
}

static bool may_come(const gn_ir_builder *b, const ir_object *o, ir_place p, uint32_t i,
                     bool simple)
{
    const gn_ir_member *m = &o->members[i];
    if (o->cost[i] == IR_NEVER || behind(o, p, i)) {
        return false;
    }
    if (simple) {
        return true;
    }
    ir_place next = p;
    bool added = false;
    uint64_t one = (uint64_t)1 << (i % 64);
    uint64_t *word = p.seen != NULL ? (uint64_t *)(uintptr_t)&p.seen[i / 64] : NULL;
    if (o->ordered) {
        for (uint32_t k = p.at; k < i; k++) { /* none that is required may be passed over */
            if (o->members[k].required) {
                return false;
            }
        }
        next.at = i + !m->is_free;
    } else if (!m->is_free && word != NULL && (*word & one) == 0) {
        *word |= one;
        added = true;
    }
    next.count++;
    bool ok = gn_grammar_ir_object_rest(b, o, next) != IR_NEVER;
    if (added) {
        *word &= ~one;
    }
    return ok;
}

/* What may come at a place of an object or array whose next members or items are `more`: behind the opening
 * bracket or a comma as the style has it, or the closing bracket where it may end. */
static gn_re around(gn_re_pool *pool, const gn_ir_json_style *style, const char brackets[2],
                    bool open, gn_re more, bool may_end)
{
    if (!open) {
        more = gn_grammar_re_cat(pool, style->comma, more);
    }
    gn_re close = GN_RE_NONE;
    if (may_end) {
        gn_re end = gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, brackets + 1, 1),
                                      gn_grammar_re_tag(pool, IR_TAG_CLOSE));
        close = gn_grammar_re_cat(pool, open ? GN_RE_EPS : style->close_pad, end);
    }
    gn_re both[2] = {more, close};
    gn_re next = gn_grammar_re_alt(pool, both, 2);
    if (!open) {
        return next;
    }
    gn_re start =
        gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, brackets, 1), style->open_pad);
    return gn_grammar_re_cat(pool, start, next);
}

gn_re gn_grammar_ir_object_next(const gn_ir_builder *b, const ir_object *o, ir_place p, bool open)
{
    gn_re_pool *pool = b->pool;
    find_required(o, p);
    bool must = false;
    for (uint32_t i = 0; i < o->n_members; i++) {
        must |= bit(o->work, i) && !(o->ordered ? i < p.at : bit(p.seen, i));
    }
    bool simple = !o->ordered && !o->has_needs && o->max_props == GN_IR_MANY;
    size_t mark = pool->scratch.n;
    bool full = o->max_props != GN_IR_MANY && p.count >= o->max_props;
    for (uint32_t i = 0; i < o->n_members && !full; i++) {
        if (may_come(b, o, p, i, simple)) {
            gn_re one = gn_grammar_re_cat(
                pool, o->members[i].key,
                gn_grammar_re_cat(pool, o->style.colon, gn_grammar_re_tag(pool, i)));
            (void)gn_grammar_re_push(pool, &pool->scratch, one);
        }
    }
    gn_re keys = gn_grammar_re_join(pool, RE_ALT, mark);
    return around(pool, &o->style, "{}", open, keys, !must && p.count >= o->min_props);
}

/* ---- Arrays ------------------------------------------------------------------------------------------ */

static uint64_t node_len(const gn_ir_builder *b, gn_ir node)
{
    return node == GN_IR_NONE ? IR_NEVER : b->nodes[node].min_len;
}

static uint64_t unique_rest(const gn_ir_builder *b, const ir_array *a, ir_place p)
{
    uint64_t sum = 0;
    uint32_t count = p.count;
    for (uint32_t i = 0; i < a->n_unique && count < a->min_items; i++) {
        uint64_t len = ir_re_len(b->pool, a->unique[i]);
        if (bit(p.seen, i) || len == IR_NEVER) {
            continue;
        }
        sum = ir_add(sum, ir_add(len, count > 0 ? a->comma_len : 0));
        count++;
    }
    return count < a->min_items ? IR_NEVER : ir_add(sum, a->close_len);
}

uint64_t gn_grammar_ir_array_rest(const gn_ir_builder *b, const ir_array *a, ir_place p)
{
    if (a->unique != NULL) {
        return unique_rest(b, a, p);
    }
    uint64_t sum = 0;
    uint32_t at = p.at;
    uint32_t count = p.count;
    while (at < a->min_items || count < a->min_matching) {
        if (a->max_items != GN_IR_MANY && at >= a->max_items) {
            return IR_NEVER;
        }
        bool in_prefix = at < a->n_prefix;
        uint64_t plain = node_len(b, in_prefix ? a->prefix[at] : a->items);
        uint64_t matching = node_len(b, in_prefix ? a->prefix_matching[at] : a->matching);
        if (a->max_matching != GN_IR_MANY && count >= a->max_matching) {
            matching = IR_NEVER;
        }
        if (!in_prefix && matching == IR_NEVER && count < a->min_matching) {
            return IR_NEVER; /* no later item can count either */
        }
        bool take = matching != IR_NEVER && (count < a->min_matching || plain == IR_NEVER);
        uint64_t one = take ? matching : plain;
        if (one == IR_NEVER) {
            return IR_NEVER;
        }
        /* Behind the prefix all steps of one kind are equal. */
        uint64_t n = 1;
        if (!in_prefix && at > 0 && take && count < a->min_matching) {
            n = a->min_matching - count;
        } else if (!in_prefix && at > 0 && count >= a->min_matching) {
            n = a->min_items - at;
            if (take && a->max_matching != GN_IR_MANY && n > a->max_matching - count) {
                n = a->max_matching - count;
            }
        }
        if (a->max_items != GN_IR_MANY && n > a->max_items - at) {
            n = a->max_items - at;
        }
        sum = ir_add(sum, ir_mul(ir_add(one, at > 0 ? a->comma_len : 0), n));
        at += (uint32_t)n;
        count += take ? (uint32_t)n : 0;
    }
    return ir_add(sum, a->close_len);
}

uint64_t gn_grammar_ir_array_len(const gn_ir_builder *b, const ir_array *a)
{
    return ir_add(gn_grammar_ir_array_rest(b, a, (ir_place){0}), a->open_len);
}

ir_place gn_grammar_ir_array_after(const ir_array *a, ir_place p, bool matching)
{
    uint32_t top = a->n_prefix > a->min_items ? a->n_prefix : a->min_items;
    top = a->max_items != GN_IR_MANY ? a->max_items : top + 1;
    uint32_t top_matching = a->max_matching != GN_IR_MANY ? a->max_matching : a->min_matching;
    p.at += p.at < top;
    p.count += matching && p.count < top_matching;
    return p;
}

void gn_grammar_ir_array_forms(const gn_ir_builder *b, const ir_array *a, ir_place p, gn_ir *plain,
                               gn_ir *matching)
{
    bool in_prefix = p.at < a->n_prefix;
    *plain = in_prefix ? a->prefix[p.at] : a->items;
    *matching = in_prefix ? a->prefix_matching[p.at] : a->matching;
    if (node_len(b, *plain) == IR_NEVER ||
        gn_grammar_ir_array_rest(b, a, gn_grammar_ir_array_after(a, p, false)) == IR_NEVER) {
        *plain = GN_IR_NONE;
    }
    if (node_len(b, *matching) == IR_NEVER ||
        (a->max_matching != GN_IR_MANY && p.count >= a->max_matching) ||
        gn_grammar_ir_array_rest(b, a, gn_grammar_ir_array_after(a, p, true)) == IR_NEVER) {
        *matching = GN_IR_NONE;
    }
}

static gn_re unique_items(const gn_ir_builder *b, const ir_array *a, ir_place p)
{
    gn_re_pool *pool = b->pool;
    size_t mark = pool->scratch.n;
    for (uint32_t i = 0; i < a->n_unique; i++) {
        if (!bit(p.seen, i)) {
            gn_re one = gn_grammar_re_cat(pool, a->unique[i], gn_grammar_re_tag(pool, i));
            (void)gn_grammar_re_push(pool, &pool->scratch, one);
        }
    }
    return gn_grammar_re_join(pool, RE_ALT, mark);
}

gn_re gn_grammar_ir_array_next(const gn_ir_builder *b, const ir_array *a, ir_place p, bool open)
{
    gn_re_pool *pool = b->pool;
    gn_re more = GN_RE_NONE;
    uint32_t n_items = a->unique != NULL ? p.count : p.at;
    if (a->max_items == GN_IR_MANY || n_items < a->max_items) {
        gn_ir plain = GN_IR_NONE;
        gn_ir matching = GN_IR_NONE;
        if (a->unique != NULL) {
            more = unique_items(b, a, p);
        } else {
            gn_grammar_ir_array_forms(b, a, p, &plain, &matching);
        }
        if (plain != GN_IR_NONE || matching != GN_IR_NONE) {
            more = gn_grammar_re_tag(pool, 0);
        }
    }
    bool enough = n_items >= a->min_items && (a->unique != NULL || p.count >= a->min_matching);
    return around(pool, &a->style, "[]", open, more, enough);
}
