/* Statements: output, branches, loops, assignments, macros and blocks. A block that captures its output lets
 * it grow at the end of the one output buffer and cuts it off again. */
#include "text/jinja_eval.h"

#include <string.h>

/* The `loop` variable of a running for. It pulls items one at a time, because a loop's filter may depend on
 * what the body changes; asking for the length pulls the rest ahead. */
struct gn_jloop {
    const gn_jfor *node;
    gn_jframe *outer;
    gn_jcursor cursor;
    bool filtered; /* the items left have passed the loop's filter */
    bool has_after;
    bool has_before;
    bool has_length;
    bool has_changed;
    gn_jval after;
    gn_jval current;
    gn_jval before;
    gn_jval changed; /* tuple: what changed() saw last */
    int64_t index0;
    int64_t length;
    int64_t depth0;
};

/* ---- frames ---- */

gn_status gn_jinja_frame_new(gn_jrun *run, gn_jframe *parent, gn_jframe **out)
{
    gn_jframe *frame = gn_jinja_alloc(run, 1, sizeof *frame);
    if (frame == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *frame = (gn_jframe){.parent = parent};
    *out = frame;
    return GN_OK;
}

gn_status gn_jinja_frame_set(gn_jrun *run, gn_jframe *frame, uint32_t name, gn_jval v)
{
    for (uint32_t i = 0; i < frame->n; i++) {
        if (frame->vars[i].name == name) {
            frame->vars[i].value = v;
            return GN_OK;
        }
    }
    if (frame->n == frame->cap) {
        uint32_t cap = frame->cap == 0 ? 4 : frame->cap * 2;
        gn_jvar *vars = gn_jinja_alloc(run, cap, sizeof *vars);
        if (vars == NULL) {
            return gn_jinja_alloc_failed(run);
        }
        if (frame->n != 0) {
            memcpy(vars, frame->vars, frame->n * sizeof *vars);
        }
        frame->vars = vars;
        frame->cap = cap;
    }
    frame->vars[frame->n++] = (gn_jvar){.name = name, .value = v};
    return GN_OK;
}

static gn_status assign_tuple(gn_jrun *run, const gn_jnodes *targets, gn_jval v)
{
    gn_jlist *items;
    if (!gn_jinja_is_iterable(v)) {
        return gn_jinja_fail(run, "cannot unpack a %s", gn_jinja_type_name((gn_jtype)v.type));
    }
    GN_TRY(gn_jinja_items(run, v, &items));
    if (items->n != targets->n) {
        return gn_jinja_fail(run, "found %zu values to unpack, expected %zu", items->n, targets->n);
    }
    for (size_t i = 0; i < targets->n; i++) {
        GN_TRY(gn_jinja_assign(run, targets->items[i], items->items[i]));
    }
    return GN_OK;
}

gn_status gn_jinja_assign(gn_jrun *run, const gn_jnode *target, gn_jval v)
{
    if (target->kind == GN_JN_NAME) {
        return gn_jinja_frame_set(run, run->frame, target->u.name, v);
    }
    if (target->kind == GN_JN_TUPLE) {
        GN_TRY(gn_jinja_enter(run));
        GN_TRY(assign_tuple(run, &target->u.list, v));
        gn_jinja_leave(run);
        return GN_OK;
    }
    gn_jval ns = gn_jinja_lookup(run, target->u.nsref.name);
    const gn_jstr *attr = target->u.nsref.attr;
    if (ns.type != GN_J_NAMESPACE) {
        return gn_jinja_fail(run, "cannot assign attribute on non-namespace object");
    }
    if (attr->data[0] == '_') {
        return gn_jinja_fail(run, "a namespace cannot hold the name '%.100s'", attr->data);
    }
    return gn_jinja_dict_set(run, ns.u.dict, gn_jstring(attr), v);
}

/* ---- macros ---- */

gn_status gn_jinja_macro_new(gn_jrun *run, const gn_jsignature *signature, gn_jval *out)
{
    gn_jmacro *macro = gn_jinja_alloc(run, 1, sizeof *macro);
    if (macro == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *macro = (gn_jmacro){.signature = signature, .frame = run->frame};
    for (gn_jframe *frame = run->frame; frame != NULL && !frame->captured; frame = frame->parent) {
        frame->captured = true;
    }
    *out = (gn_jval){.type = GN_J_MACRO, .u.macro = macro};
    return GN_OK;
}

static bool same_name(const gn_jstr *a, const gn_jstr *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Take the keyword argument `name` out of args. */
static bool take_kw(gn_jargs *args, const gn_jstr *name, gn_jval *out)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        if (same_name(args->kw[i].name, name)) {
            *out = args->kw[i].value;
            memmove(&args->kw[i], &args->kw[i + 1], (args->n_kw - i - 1) * sizeof *args->kw);
            args->n_kw--;
            return true;
        }
    }
    return false;
}

static gn_status set_specials(gn_jrun *run, const gn_jsignature *sig, gn_jframe *frame,
                              gn_jargs *args)
{
    const gn_jprogram *program = run->program;
    gn_jval v;
    /* A parameter named caller is the caller, unless a position filled it. */
    if (sig->uses_caller) {
        if (!take_kw(args, program->names[program->id_caller], &v) || v.type == GN_J_NONE) {
            GN_TRY(gn_jinja_undefined_hint(run, "No caller defined", &v));
        }
        GN_TRY(gn_jinja_frame_set(run, frame, program->id_caller, v));
    }
    if (sig->uses_kwargs) {
        GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, args->n_kw, &v));
        for (size_t i = 0; i < args->n_kw; i++) {
            GN_TRY(
                gn_jinja_dict_set(run, v.u.dict, gn_jstring(args->kw[i].name), args->kw[i].value));
        }
        GN_TRY(gn_jinja_frame_set(run, frame, program->id_kwargs, v));
    } else if (args->n_kw != 0) {
        return gn_jinja_fail(run, "macro '%.100s' takes no keyword argument '%.100s'",
                             sig->name != NULL ? sig->name->data : "caller",
                             args->kw[0].name->data);
    }
    size_t extra = args->n_pos > sig->n_params ? args->n_pos - sig->n_params : 0;
    if (sig->uses_varargs) {
        GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, extra, &v));
        for (size_t i = 0; i < extra; i++) {
            GN_TRY(gn_jinja_list_push(run, v.u.list, args->pos[sig->n_params + i]));
        }
        GN_TRY(gn_jinja_frame_set(run, frame, program->id_varargs, v));
    } else if (extra != 0) {
        return gn_jinja_fail(run, "macro '%.100s' takes not more than %zu argument(s)",
                             sig->name != NULL ? sig->name->data : "caller", sig->n_params);
    }
    return GN_OK;
}

static gn_status set_params(gn_jrun *run, const gn_jsignature *sig, gn_jframe *frame,
                            gn_jargs *args, bool *missing)
{
    const gn_jprogram *program = run->program;
    for (size_t i = 0; i < sig->n_params; i++) {
        gn_jval v = {.type = GN_J_UNDEFINED, .u.s = program->names[sig->params[i]]};
        missing[i] = false;
        if (i < args->n_pos) {
            v = args->pos[i];
        } else {
            missing[i] = !take_kw(args, program->names[sig->params[i]], &v);
        }
        GN_TRY(gn_jinja_frame_set(run, frame, sig->params[i], v));
    }
    return GN_OK;
}

static gn_status set_defaults(gn_jrun *run, const gn_jsignature *sig, gn_jframe *frame,
                              const bool *missing)
{
    size_t first = sig->n_params - sig->defaults.n;
    for (size_t i = first; i < sig->n_params; i++) {
        if (missing[i]) {
            gn_jval v;
            GN_TRY(gn_jinja_eval(run, sig->defaults.items[i - first], &v));
            GN_TRY(gn_jinja_frame_set(run, frame, sig->params[i], v));
        }
    }
    return GN_OK;
}

gn_status gn_jinja_macro_call(gn_jrun *run, const gn_jmacro *macro, const gn_jargs *args,
                              gn_jval *out)
{
    const gn_jsignature *sig = macro->signature;
    gn_jframe *frame = NULL;
    gn_jargs rest = *args;
    GN_TRY(gn_jinja_enter(run));
    GN_TRY(gn_jinja_frame_new(run, macro->frame, &frame));
    bool *missing = gn_jinja_alloc(run, sig->n_params, sizeof *missing);
    if (missing == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    GN_TRY(set_params(run, sig, frame, &rest, missing));
    GN_TRY(set_specials(run, sig, frame, &rest));
    gn_jframe *caller = run->frame;
    uint32_t line = run->line;
    size_t mark = run->out->len;
    run->frame = frame;
    GN_TRY(set_defaults(run, sig, frame, missing));
    GN_TRY(gn_jinja_exec(run, &sig->body));
    run->frame = caller;
    run->line = line;
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    gn_jinja_leave(run);
    return GN_OK;
}

/* ---- loops ---- */

/* The next item that passes the loop's filter. */
static gn_status pull(gn_jrun *run, gn_jloop *loop, gn_jval *out, bool *more)
{
    const gn_jnode *test = loop->filtered ? NULL : loop->node->test;
    for (;;) {
        GN_TRY(gn_jinja_next(run, &loop->cursor, out, more));
        if (!*more || test == NULL) {
            return GN_OK;
        }
        gn_jframe *frame = NULL;
        gn_jframe *saved = run->frame;
        gn_jval holds;
        GN_TRY(gn_jinja_frame_new(run, loop->outer, &frame));
        run->frame = frame;
        GN_TRY(gn_jinja_assign(run, loop->node->target, *out));
        GN_TRY(gn_jinja_eval(run, test, &holds));
        run->frame = saved;
        if (gn_jinja_truth(holds)) {
            return GN_OK;
        }
    }
}

static gn_status peek(gn_jrun *run, gn_jloop *loop, bool *more)
{
    if (!loop->has_after) {
        GN_TRY(pull(run, loop, &loop->after, &loop->has_after));
    }
    *more = loop->has_after;
    return GN_OK;
}

static gn_status advance(gn_jrun *run, gn_jloop *loop, bool *more)
{
    gn_jval item = loop->after;
    *more = loop->has_after;
    if (!loop->has_after) {
        GN_TRY(pull(run, loop, &item, more));
    }
    loop->has_after = false;
    if (*more) {
        loop->has_before = loop->index0 >= 0;
        loop->before = loop->current;
        loop->current = item;
        loop->index0++;
    }
    return GN_OK;
}

static gn_status loop_length(gn_jrun *run, gn_jloop *loop, int64_t *out)
{
    if (!loop->has_length) {
        bool filter = loop->node->test != NULL && !loop->filtered;
        if (!filter && gn_jinja_has_length(loop->cursor.over)) {
            size_t n;
            GN_TRY(gn_jinja_length(run, loop->cursor.over, &n));
            loop->length = (int64_t)n;
        } else {
            gn_jval rest;
            GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &rest));
            for (;;) {
                gn_jval item;
                bool more;
                GN_TRY(pull(run, loop, &item, &more));
                if (!more) {
                    break;
                }
                GN_TRY(gn_jinja_list_push(run, rest.u.list, item));
            }
            loop->cursor = (gn_jcursor){.over = rest};
            loop->filtered = true;
            loop->length = (int64_t)rest.u.list->n + loop->index0 + 1 + loop->has_after;
        }
        loop->has_length = true;
    }
    *out = loop->length;
    return GN_OK;
}

static gn_status loop_turn(gn_jrun *run, gn_jloop *loop, gn_jval self, gn_jframe **frame)
{
    if ((*frame)->captured) {
        GN_TRY(gn_jinja_frame_new(run, loop->outer, frame));
    }
    (*frame)->n = 0;
    run->frame = *frame;
    GN_TRY(gn_jinja_frame_set(run, *frame, run->program->id_loop, self));
    GN_TRY(gn_jinja_assign(run, loop->node->target, loop->current));
    return gn_jinja_exec(run, &loop->node->body);
}

static gn_status run_loop(gn_jrun *run, const gn_jfor *node, gn_jframe *outer, gn_jval over,
                          int64_t depth0)
{
    gn_jloop *loop = gn_jinja_alloc(run, 1, sizeof *loop);
    if (loop == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *loop = (gn_jloop){.node = node, .outer = outer, .index0 = -1, .depth0 = depth0};
    GN_TRY(gn_jinja_iterate(run, over, &loop->cursor));
    gn_jval self = {.type = GN_J_LOOP, .u.loop = loop};
    gn_jframe *saved = run->frame;
    gn_jframe *frame = NULL;
    GN_TRY(gn_jinja_frame_new(run, outer, &frame));
    run->frame = outer;
    for (;;) {
        bool more;
        GN_TRY(advance(run, loop, &more));
        if (!more) {
            break;
        }
        GN_TRY(loop_turn(run, loop, self, &frame));
        run->frame = outer;
        int flow = run->flow;
        run->flow = GN_JFLOW_NONE;
        if (flow == GN_JFLOW_BREAK) {
            break;
        }
    }
    if (loop->index0 < 0 && node->other.n != 0) {
        GN_TRY(gn_jinja_frame_new(run, outer, &run->frame));
        GN_TRY(gn_jinja_exec(run, &node->other));
    }
    run->frame = saved;
    return GN_OK;
}

gn_status gn_jinja_exec_for(gn_jrun *run, const gn_jfor *node)
{
    gn_jval over;
    GN_TRY(gn_jinja_eval(run, node->iter, &over));
    return run_loop(run, node, run->frame, over, 0);
}

gn_status gn_jinja_loop_call(gn_jrun *run, gn_jloop *loop, const gn_jargs *args, gn_jval *out)
{
    if (!loop->node->recursive) {
        return gn_jinja_fail(run, "the loop must be 'recursive' to be called");
    }
    if (args->n_pos != 1 || args->n_kw != 0) {
        return gn_jinja_fail(run, "loop() takes one argument");
    }
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_enter(run));
    GN_TRY(run_loop(run, loop->node, loop->outer, args->pos[0], loop->depth0 + 1));
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    gn_jinja_leave(run);
    return GN_OK;
}

static gn_status loop_cycle(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    if (args->n_pos == 0 || args->n_kw != 0) {
        return gn_jinja_fail(run, "no items for cycling given");
    }
    *out = args->pos[(size_t)self.u.loop->index0 % args->n_pos];
    return GN_OK;
}

static gn_status loop_changed(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jloop *loop = self.u.loop;
    gn_jval seen;
    bool same = false;
    if (args->n_kw != 0) {
        return gn_jinja_fail(run, "changed() takes no keyword arguments");
    }
    GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, args->n_pos, &seen));
    for (size_t i = 0; i < args->n_pos; i++) {
        GN_TRY(gn_jinja_list_push(run, seen.u.list, args->pos[i]));
    }
    if (loop->has_changed) {
        GN_TRY(gn_jinja_equal(run, loop->changed, seen, &same));
    }
    loop->has_changed = true;
    loop->changed = seen;
    *out = gn_jbool(!same);
    return GN_OK;
}

static gn_status loop_neighbour(gn_jrun *run, gn_jloop *loop, bool next, gn_jval *out)
{
    bool there = loop->has_before;
    if (next) {
        GN_TRY(peek(run, loop, &there));
    }
    if (!there) {
        return gn_jinja_undefined_hint(
            run, next ? "there is no next item" : "there is no previous item", out);
    }
    *out = next ? loop->after : loop->before;
    return GN_OK;
}

gn_status gn_jinja_loop_attribute(gn_jrun *run, gn_jloop *loop, const gn_jstr *name, gn_jval *out,
                                  bool *found)
{
    static const char *const names[] = {"index0", "index",  "revindex0", "revindex", "first",
                                        "last",   "length", "previtem",  "nextitem", "depth",
                                        "depth0", "cycle",  "changed"};
    size_t which = 0;
    while (which < GN_COUNTOF(names) && strcmp(names[which], name->data) != 0) {
        which++;
    }
    *found = which < GN_COUNTOF(names);
    gn_jval self = {.type = GN_J_LOOP, .u.loop = loop};
    int64_t length = 0;
    bool more = false;
    if (which == 2 || which == 3 || which == 6) {
        GN_TRY(loop_length(run, loop, &length));
    }
    if (which == 5) {
        GN_TRY(peek(run, loop, &more));
    }
    switch (which) {
    case 0: *out = gn_jint(loop->index0); break;
    case 1: *out = gn_jint(loop->index0 + 1); break;
    case 2: *out = gn_jint(length - loop->index0 - 1); break;
    case 3: *out = gn_jint(length - loop->index0); break;
    case 4: *out = gn_jbool(loop->index0 == 0); break;
    case 5: *out = gn_jbool(!more); break;
    case 6: *out = gn_jint(length); break;
    case 7:
    case 8: return loop_neighbour(run, loop, which == 8, out);
    case 9: *out = gn_jint(loop->depth0 + 1); break;
    case 10: *out = gn_jint(loop->depth0); break;
    case 11: return gn_jinja_bind_method(run, self, "cycle", loop_cycle, out);
    case 12: return gn_jinja_bind_method(run, self, "changed", loop_changed, out);
    default: break;
    }
    return GN_OK;
}

/* ---- statements ---- */

static gn_status exec_if(gn_jrun *run, const gn_jnode *node)
{
    for (size_t i = 0; i < node->u.branch.n; i++) {
        const gn_jbranch *branch = &node->u.branch.branches[i];
        gn_jval test = gn_jbool(true);
        if (branch->test != NULL) {
            GN_TRY(gn_jinja_eval(run, branch->test, &test));
        }
        if (gn_jinja_truth(test)) {
            return gn_jinja_exec(run, &branch->body);
        }
    }
    return GN_OK;
}

static gn_status check_namespaces(gn_jrun *run, const gn_jnode *target)
{
    if (target->kind == GN_JN_NSREF &&
        gn_jinja_lookup(run, target->u.nsref.name).type != GN_J_NAMESPACE) {
        return gn_jinja_fail(run, "cannot assign attribute on non-namespace object");
    }
    return GN_OK;
}

/* Run a body in a frame of its own and take its output. *done false: a break or continue passes through. */
static gn_status capture(gn_jrun *run, const gn_jnodes *body, gn_jval *text, bool *done)
{
    gn_jframe *outer = run->frame;
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_frame_new(run, outer, &run->frame));
    GN_TRY(gn_jinja_exec(run, body));
    run->frame = outer;
    *done = run->flow == GN_JFLOW_NONE;
    return gn_jinja_str_captured(run, mark, text);
}

static gn_status exec_capturing(gn_jrun *run, const gn_jnode *node)
{
    gn_jval text;
    bool done;
    GN_TRY(capture(run, node->u.block.body, &text, &done));
    if (!done) {
        return GN_OK;
    }
    run->line = node->line;
    if (node->u.block.filter != NULL) {
        GN_TRY(gn_jinja_eval_filter(run, node->u.block.filter, &text, &text));
    }
    if (node->kind == GN_JN_FILTER_BLOCK) {
        return gn_jinja_write(run, text);
    }
    return gn_jinja_assign(run, node->u.block.target, text);
}

static gn_status exec_call_block(gn_jrun *run, const gn_jnode *node)
{
    gn_jval caller;
    gn_jval result;
    GN_TRY(gn_jinja_macro_new(run, node->u.call_block.signature, &caller));
    const gn_jnode *call = node->u.call_block.call;
    if (call == NULL) {
        GN_TRY(gn_jinja_call(run, caller, &(gn_jargs){0}, &result));
        return gn_jinja_write(run, result);
    }
    gn_jval callee;
    gn_jargs args;
    GN_TRY(gn_jinja_eval(run, call->u.call.callee, &callee));
    GN_TRY(gn_jinja_eval_args(run, call->u.call.args, 1, &args));
    const gn_jstr *name = run->program->names[run->program->id_caller];
    for (size_t i = 0; i < args.n_kw; i++) {
        if (same_name(args.kw[i].name, name)) {
            return gn_jinja_fail(run, "a call block has its own 'caller'");
        }
    }
    args.kw[args.n_kw++] = (gn_jkw){.name = name, .value = caller};
    run->line = node->line;
    GN_TRY(gn_jinja_call(run, callee, &args, &result));
    return gn_jinja_write(run, result);
}

static gn_status exec_with(gn_jrun *run, const gn_jnode *node)
{
    gn_jframe *outer = run->frame;
    gn_jframe *frame = NULL;
    GN_TRY(gn_jinja_frame_new(run, outer, &frame));
    for (size_t i = 0; i < node->u.with.targets->n; i++) {
        gn_jval v;
        run->frame = outer;
        GN_TRY(gn_jinja_eval(run, node->u.with.values->items[i], &v));
        run->frame = frame;
        GN_TRY(gn_jinja_assign(run, node->u.with.targets->items[i], v));
    }
    run->frame = frame;
    GN_TRY(gn_jinja_exec(run, node->u.with.body));
    run->frame = outer;
    return GN_OK;
}

static gn_status exec_set(gn_jrun *run, const gn_jnode *node)
{
    gn_jval v;
    GN_TRY(check_namespaces(run, node->u.set.target));
    GN_TRY(gn_jinja_eval(run, node->u.set.value, &v));
    run->line = node->line;
    return gn_jinja_assign(run, node->u.set.target, v);
}

static gn_status exec_macro(gn_jrun *run, const gn_jnode *node)
{
    gn_jval macro;
    GN_TRY(gn_jinja_macro_new(run, node->u.macro.signature, &macro));
    return gn_jinja_frame_set(run, run->frame, node->u.macro.name, macro);
}

static gn_status exec_print(gn_jrun *run, const gn_jnode *node)
{
    gn_jval v;
    GN_TRY(gn_jinja_eval(run, node->u.operand, &v));
    run->line = node->line;
    return gn_jinja_write(run, v);
}

static gn_status exec_node(gn_jrun *run, const gn_jnode *node)
{
    switch ((gn_jkind)node->kind) {
    case GN_JN_DATA:
        return gn_jinja_write_bytes(run, node->u.value.u.s->data, node->u.value.u.s->len);
    case GN_JN_PRINT: return exec_print(run, node);
    case GN_JN_IF: return exec_if(run, node);
    case GN_JN_FOR: return gn_jinja_exec_for(run, node->u.loop);
    case GN_JN_SET: return exec_set(run, node);
    case GN_JN_SET_BLOCK:
    case GN_JN_FILTER_BLOCK: return exec_capturing(run, node);
    case GN_JN_MACRO: return exec_macro(run, node);
    case GN_JN_CALL_BLOCK: return exec_call_block(run, node);
    case GN_JN_WITH:
    case GN_JN_SCOPE: return exec_with(run, node);
    case GN_JN_BREAK: run->flow = GN_JFLOW_BREAK; return GN_OK;
    case GN_JN_CONTINUE: run->flow = GN_JFLOW_CONTINUE; return GN_OK;
    default: return gn_jinja_fail(run, "a chat template cannot load other templates");
    }
}

gn_status gn_jinja_exec(gn_jrun *run, const gn_jnodes *body)
{
    GN_TRY(gn_jinja_enter(run));
    for (size_t i = 0; i < body->n && run->flow == GN_JFLOW_NONE; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        run->line = body->items[i]->line;
        GN_TRY(exec_node(run, body->items[i]));
    }
    gn_jinja_leave(run);
    return GN_OK;
}
