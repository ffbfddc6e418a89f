/* Expressions: one switch over the kinds of node. Every nested evaluation counts a level of depth, so that
 * no template can exhaust the stack, and a step, so that none can run without end. */
#include "text/jinja_eval.h"

#include <string.h>

static const char *const OP_SIGNS[] = {
    [GN_JOP_ADD] = "+",       [GN_JOP_SUB] = "-", [GN_JOP_MUL] = "*",         [GN_JOP_DIV] = "/",
    [GN_JOP_FLOORDIV] = "//", [GN_JOP_MOD] = "%", [GN_JOP_POW] = "**",        [GN_JOP_EQ] = "==",
    [GN_JOP_NE] = "!=",       [GN_JOP_LT] = "<",  [GN_JOP_LE] = "<=",         [GN_JOP_GT] = ">",
    [GN_JOP_GE] = ">=",       [GN_JOP_IN] = "in", [GN_JOP_NOT_IN] = "not in",
};

gn_jval gn_jinja_lookup(const gn_jrun *run, uint32_t name)
{
    for (const gn_jframe *frame = run->frame; frame != NULL; frame = frame->parent) {
        for (uint32_t i = frame->n; i > 0; i--) {
            if (frame->vars[i - 1].name == name) {
                return frame->vars[i - 1].value;
            }
        }
    }
    return run->globals[name];
}

static gn_status eval_list(gn_jrun *run, const gn_jnodes *nodes, gn_jtype type, gn_jval *out)
{
    gn_jval list = {0};
    GN_TRY(gn_jinja_list_new(run, type, nodes->n, &list));
    for (size_t i = 0; i < nodes->n; i++) {
        GN_TRY(gn_jinja_eval(run, nodes->items[i], &list.u.list->items[i]));
        list.u.list->n = i + 1;
    }
    *out = list;
    return GN_OK;
}

static gn_status eval_dict(gn_jrun *run, const gn_jnodes *nodes, gn_jval *out)
{
    gn_jval dict;
    GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, nodes->n / 2, &dict));
    for (size_t i = 0; i + 1 < nodes->n; i += 2) {
        gn_jval key;
        gn_jval value;
        GN_TRY(gn_jinja_eval(run, nodes->items[i], &key));
        GN_TRY(gn_jinja_eval(run, nodes->items[i + 1], &value));
        GN_TRY(gn_jinja_dict_set(run, dict.u.dict, key, value));
    }
    *out = dict;
    return GN_OK;
}

static gn_status eval_math(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    const gn_jnodes *operands = &node->u.chain.operands;
    gn_jval left;
    GN_TRY(gn_jinja_eval(run, operands->items[0], &left));
    for (size_t i = 1; i < operands->n; i++) {
        gn_jval right;
        GN_TRY(gn_jinja_eval(run, operands->items[i], &right));
        run->line = node->line;
        GN_TRY(gn_jinja_binary(run, OP_SIGNS[node->u.chain.ops[i - 1]], left, right, &left));
    }
    *out = left;
    return GN_OK;
}

static gn_status compare_once(gn_jrun *run, gn_jop op, gn_jval a, gn_jval b, bool *out)
{
    int c = 0;
    if (op == GN_JOP_EQ || op == GN_JOP_NE) {
        GN_TRY(gn_jinja_equal(run, a, b, out));
        *out = *out == (op == GN_JOP_EQ);
        return GN_OK;
    }
    if (op == GN_JOP_IN || op == GN_JOP_NOT_IN) {
        GN_TRY(gn_jinja_contains(run, b, a, out));
        *out = *out == (op == GN_JOP_IN);
        return GN_OK;
    }
    GN_TRY(gn_jinja_compare(run, a, b, OP_SIGNS[op], &c));
    switch (op) {
    case GN_JOP_LT: *out = c == -1; break;
    case GN_JOP_LE: *out = c == -1 || c == 0; break;
    case GN_JOP_GT: *out = c == 1; break;
    default: *out = c == 1 || c == 0; break;
    }
    return GN_OK;
}

static gn_status eval_compare(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    const gn_jnodes *operands = &node->u.chain.operands;
    gn_jval left;
    bool holds = true;
    GN_TRY(gn_jinja_eval(run, operands->items[0], &left));
    for (size_t i = 1; i < operands->n && holds; i++) {
        gn_jval right;
        GN_TRY(gn_jinja_eval(run, operands->items[i], &right));
        run->line = node->line;
        GN_TRY(compare_once(run, (gn_jop)node->u.chain.ops[i - 1], left, right, &holds));
        left = right;
    }
    *out = gn_jbool(holds);
    return GN_OK;
}

/* The first operand that decides, or the last one. */
static gn_status eval_logic(gn_jrun *run, const gn_jnodes *operands, bool until, gn_jval *out)
{
    for (size_t i = 0; i < operands->n; i++) {
        GN_TRY(gn_jinja_eval(run, operands->items[i], out));
        if (gn_jinja_truth(*out) == until) {
            break;
        }
    }
    return GN_OK;
}

static gn_status eval_concat(gn_jrun *run, const gn_jnodes *operands, gn_jval *out)
{
    gn_jval parts;
    GN_TRY(eval_list(run, operands, GN_J_LIST, &parts));
    const gn_jstr *text;
    GN_TRY(gn_jinja_to_str(run, parts.u.list->items[0], &text));
    gn_jval sum = gn_jstring(text);
    for (size_t i = 1; i < operands->n; i++) {
        GN_TRY(gn_jinja_to_str(run, parts.u.list->items[i], &text));
        GN_TRY(gn_jinja_concat(run, sum.u.s, text, &sum));
    }
    *out = sum;
    return GN_OK;
}

static gn_status eval_cond(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval test;
    GN_TRY(gn_jinja_eval(run, node->u.cond.test, &test));
    if (gn_jinja_truth(test)) {
        return gn_jinja_eval(run, node->u.cond.yes, out);
    }
    if (node->u.cond.no != NULL) {
        return gn_jinja_eval(run, node->u.cond.no, out);
    }
    return gn_jinja_undefined_hint(
        run, "the inline if-expression evaluated to false and no else section was defined", out);
}

static gn_status eval_slice(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval of;
    gn_jval part[3] = {gn_jnone(), gn_jnone(), gn_jnone()};
    GN_TRY(gn_jinja_eval(run, node->u.slice.of, &of));
    for (size_t i = 0; i < 3; i++) {
        if (node->u.slice.part[i] != NULL) {
            GN_TRY(gn_jinja_eval(run, node->u.slice.part[i], &part[i]));
        }
    }
    run->line = node->line;
    return gn_jinja_slice(run, of, part, out);
}

static gn_status add_dyn_pos(gn_jrun *run, gn_jval v, gn_jargs *args)
{
    gn_jlist *items;
    GN_TRY(gn_jinja_items(run, v, &items));
    gn_jval *pos = gn_jinja_alloc(run, args->n_pos + items->n, sizeof *pos);
    if (pos == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    memcpy(pos, args->pos, args->n_pos * sizeof *pos);
    memcpy(pos + args->n_pos, items->items, items->n * sizeof *pos);
    args->pos = pos;
    args->n_pos += items->n;
    return gn_jinja_step(run, args->n_pos);
}

static gn_status add_dyn_kw(gn_jrun *run, gn_jval v, size_t n_extra, gn_jargs *args)
{
    if (v.type != GN_J_DICT) {
        return gn_jinja_fail(run, "** needs a dict, found %s",
                             gn_jinja_type_name((gn_jtype)v.type));
    }
    const gn_jdict *dict = v.u.dict;
    gn_jkw *kw = gn_jinja_alloc(run, args->n_kw + dict->n + n_extra, sizeof *kw);
    if (kw == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    memcpy(kw, args->kw, args->n_kw * sizeof *kw);
    for (size_t i = 0; i < dict->n; i++) {
        gn_jval key = dict->entries[i].key;
        if (key.type != GN_J_STRING) {
            return gn_jinja_fail(run, "keywords must be strings");
        }
        for (size_t k = 0; k < args->n_kw; k++) {
            if (gn_jis_str(key, kw[k].name->data, kw[k].name->len)) {
                return gn_jinja_fail(run, "two values for keyword argument '%.100s'",
                                     kw[k].name->data);
            }
        }
        GN_TRY(gn_jinja_step(run, 1 + args->n_kw));
        kw[args->n_kw + i] = (gn_jkw){.name = key.u.s, .value = dict->entries[i].value};
    }
    args->kw = kw;
    args->n_kw += dict->n;
    return GN_OK;
}

/* n_extra: room to leave for more keyword arguments. */
gn_status gn_jinja_eval_args(gn_jrun *run, const gn_jcallargs *args, size_t n_extra, gn_jargs *out)
{
    *out = (gn_jargs){0};
    if (args == NULL) {
        return GN_OK;
    }
    out->pos = gn_jinja_alloc(run, args->pos.n, sizeof *out->pos);
    out->kw = out->pos != NULL ? gn_jinja_alloc(run, args->kw.n + n_extra, sizeof *out->kw) : NULL;
    if (out->kw == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t i = 0; i < args->pos.n; i++) {
        GN_TRY(gn_jinja_eval(run, args->pos.items[i], &out->pos[i]));
    }
    out->n_pos = args->pos.n;
    for (size_t i = 0; i < args->kw.n; i++) {
        out->kw[i].name = args->kw_names[i];
        GN_TRY(gn_jinja_eval(run, args->kw.items[i], &out->kw[i].value));
    }
    out->n_kw = args->kw.n;
    gn_jval v;
    if (args->dyn_pos != NULL) {
        GN_TRY(gn_jinja_eval(run, args->dyn_pos, &v));
        GN_TRY(add_dyn_pos(run, v, out));
    }
    if (args->dyn_kw != NULL) {
        GN_TRY(gn_jinja_eval(run, args->dyn_kw, &v));
        GN_TRY(add_dyn_kw(run, v, n_extra, out));
    }
    return GN_OK;
}

static gn_status eval_call(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval callee;
    gn_jargs args;
    GN_TRY(gn_jinja_eval(run, node->u.call.callee, &callee));
    GN_TRY(gn_jinja_eval_args(run, node->u.call.args, 0, &args));
    run->line = node->line;
    return gn_jinja_call(run, callee, &args, out);
}

gn_status gn_jinja_eval_filter(gn_jrun *run, const gn_jnode *node, const gn_jval *text,
                               gn_jval *out)
{
    gn_jval in;
    gn_jargs args;
    GN_TRY(gn_jinja_enter(run));
    GN_TRY(gn_jinja_step(run, 1));
    const gn_jnode *of = node->u.filter.of;
    if (of == NULL) { /* the innermost filter of a block works on the block's text */
        in = *text;
    } else if (text != NULL && of->kind == GN_JN_FILTER) {
        GN_TRY(gn_jinja_eval_filter(run, of, text, &in));
    } else {
        GN_TRY(gn_jinja_eval(run, of, &in));
    }
    GN_TRY(gn_jinja_eval_args(run, node->u.filter.args, 0, &args));
    run->line = node->line;
    if (node->u.filter.filter == NULL) {
        return gn_jinja_fail(run, "there is no filter '%.100s'", node->u.filter.name->data);
    }
    GN_TRY(node->u.filter.filter->apply(run, in, &args, out));
    gn_jinja_leave(run);
    return GN_OK;
}

static gn_status eval_test(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval in;
    gn_jargs args;
    bool holds = false;
    GN_TRY(gn_jinja_eval(run, node->u.test.of, &in));
    GN_TRY(gn_jinja_eval_args(run, node->u.test.args, 0, &args));
    run->line = node->line;
    if (node->u.test.test == NULL) {
        return gn_jinja_fail(run, "there is no test '%.100s'", node->u.test.name->data);
    }
    GN_TRY(node->u.test.test->apply(run, in, &args, &holds));
    *out = gn_jbool(holds);
    return GN_OK;
}

static gn_status eval_access(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval of;
    if (node->kind == GN_JN_ATTR) {
        GN_TRY(gn_jinja_eval(run, node->u.attr.of, &of));
        run->line = node->line;
        return gn_jinja_getattr(run, of, node->u.attr.name, out);
    }
    gn_jval key;
    GN_TRY(gn_jinja_eval(run, node->u.item.of, &of));
    GN_TRY(gn_jinja_eval(run, node->u.item.key, &key));
    run->line = node->line;
    return gn_jinja_getitem(run, of, key, out);
}

static gn_status eval_unary(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    gn_jval v;
    GN_TRY(gn_jinja_eval(run, node->u.operand, &v));
    if (node->kind == GN_JN_NOT) {
        *out = gn_jbool(!gn_jinja_truth(v));
        return GN_OK;
    }
    if (v.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, v);
    }
    if (!gn_jinja_is_number(v)) {
        return gn_jinja_fail(run, "bad operand for a sign: %s",
                             gn_jinja_type_name((gn_jtype)v.type));
    }
    if (node->kind == GN_JN_NEG) {
        return gn_jinja_negate(run, v, out);
    }
    *out = v.type == GN_J_BOOL ? gn_jint(v.u.b) : v;
    return GN_OK;
}

static gn_status eval_deep(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    switch ((gn_jkind)node->kind) {
    case GN_JN_LIST: return eval_list(run, &node->u.list, GN_J_LIST, out);
    case GN_JN_TUPLE: return eval_list(run, &node->u.list, GN_J_TUPLE, out);
    case GN_JN_DICT: return eval_dict(run, &node->u.list, out);
    case GN_JN_MATH:
    case GN_JN_POW: return eval_math(run, node, out);
    case GN_JN_COMPARE: return eval_compare(run, node, out);
    case GN_JN_AND: return eval_logic(run, &node->u.list, false, out);
    case GN_JN_OR: return eval_logic(run, &node->u.list, true, out);
    case GN_JN_CONCAT: return eval_concat(run, &node->u.list, out);
    case GN_JN_NEG:
    case GN_JN_POS:
    case GN_JN_NOT: return eval_unary(run, node, out);
    case GN_JN_COND: return eval_cond(run, node, out);
    case GN_JN_ATTR:
    case GN_JN_ITEM: return eval_access(run, node, out);
    case GN_JN_SLICE: return eval_slice(run, node, out);
    case GN_JN_CALL: return eval_call(run, node, out);
    case GN_JN_FILTER: return gn_jinja_eval_filter(run, node, NULL, out);
    case GN_JN_TEST: return eval_test(run, node, out);
    default: return gn_jinja_fail(run, "this is no expression");
    }
}

gn_status gn_jinja_eval(gn_jrun *run, const gn_jnode *node, gn_jval *out)
{
    GN_TRY(gn_jinja_step(run, 1));
    if (node->kind == GN_JN_CONST) {
        *out = node->u.value;
        return GN_OK;
    }
    if (node->kind == GN_JN_NAME) {
        *out = gn_jinja_lookup(run, node->u.name);
        return GN_OK;
    }
    GN_TRY(gn_jinja_enter(run));
    run->line = node->line;
    GN_TRY(eval_deep(run, node, out));
    gn_jinja_leave(run);
    return GN_OK;
}
