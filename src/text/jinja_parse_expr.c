/* Expressions, by recursive descent in Jinja's order of precedence: if-else, or, and, not, comparison, + -,
 * ~, * / // %, **, sign, and then subscripts, calls, filters and tests behind a primary. Depth is counted
 * wherever the descent comes round again. */
#include "text/jinja_parser.h"

#include "base/alloc.h"

#include <string.h>

static gn_status parse_unary(gn_jparser *p, bool with_filter, gn_jnode **out);
static gn_status parse_primary(gn_jparser *p, bool namespaces, gn_jnode **out);
static gn_status parse_call_args(gn_jparser *p, gn_jcallargs **out);

static uint32_t line_here(const gn_jparser *p)
{
    return gn_jparser_peek(p, 0)->line;
}

/* ---- operators ---- */

typedef gn_status (*parse_fn)(gn_jparser *p, gn_jnode **out);

static bool math_op(gn_jtok type, unsigned level, gn_jop *op)
{
    switch (type) {
    case GN_JT_ADD: *op = GN_JOP_ADD; return level == 1;
    case GN_JT_SUB: *op = GN_JOP_SUB; return level == 1;
    case GN_JT_MUL: *op = GN_JOP_MUL; return level == 2;
    case GN_JT_DIV: *op = GN_JOP_DIV; return level == 2;
    case GN_JT_FLOORDIV: *op = GN_JOP_FLOORDIV; return level == 2;
    case GN_JT_MOD: *op = GN_JOP_MOD; return level == 2;
    case GN_JT_POW: *op = GN_JOP_POW; return level == 3;
    default: return false;
    }
}

/* Is the parser at a comparison operator? Skips it. */
static bool skip_compare_op(gn_jparser *p, gn_jop *op)
{
    static const gn_jop ops[] = {
        [0] = GN_JOP_EQ,
        [GN_JT_NE - GN_JT_EQ] = GN_JOP_NE,
        [GN_JT_LT - GN_JT_EQ] = GN_JOP_LT,
        [GN_JT_LE - GN_JT_EQ] = GN_JOP_LE,
        [GN_JT_GT - GN_JT_EQ] = GN_JOP_GT,
        [GN_JT_GE - GN_JT_EQ] = GN_JOP_GE,
    };
    gn_jtok type = gn_jparser_peek(p, 0)->type;
    if (type >= GN_JT_EQ && type <= GN_JT_GE) {
        *op = ops[type - GN_JT_EQ];
        p->pos++;
        return true;
    }
    if (gn_jparser_skip_name(p, "in")) {
        *op = GN_JOP_IN;
        return true;
    }
    const gn_jtoken *next = gn_jparser_peek(p, 1);
    if (gn_jparser_at_name(p, "not") && next->type == GN_JT_NAME && next->len == 2 &&
        memcmp(next->text, "in", 2) == 0) {
        *op = GN_JOP_NOT_IN;
        p->pos += 2;
        return true;
    }
    return false;
}

static bool skip_chain_op(gn_jparser *p, unsigned level, gn_jop *op)
{
    if (level == 0) {
        return skip_compare_op(p, op);
    }
    if (math_op(gn_jparser_peek(p, 0)->type, level, op)) {
        p->pos++;
        return true;
    }
    return false;
}

/* operand (op operand)*: the operand itself where there is no operator. Level 0 compares. */
static gn_status parse_chain(gn_jparser *p, unsigned level, parse_fn operand, gn_jnode **out)
{
    uint32_t line = line_here(p);
    gn_jnode *first = NULL;
    gn_jop op;
    GN_TRY(operand(p, &first));
    if (!skip_chain_op(p, level, &op)) {
        *out = first;
        return GN_OK;
    }
    gn_jnode *node = NULL;
    gn_jkind kind = level == 0 ? GN_JN_COMPARE : level == 3 ? GN_JN_POW : GN_JN_MATH;
    GN_TRY(gn_jparser_node(p, kind, line, &node));
    gn_jnodes *operands = &node->u.chain.operands;
    GN_TRY(gn_jparser_push(p, operands, first));
    size_t cap = 0;
    do {
        if (operands->n > cap) {
            size_t wider = cap == 0 ? 4 : cap * 2;
            uint8_t *ops = gn_jparser_alloc(p, wider, 1);
            if (ops == NULL) {
                return gn_alloc_failed();
            }
            if (cap != 0) {
                memcpy(ops, node->u.chain.ops, cap);
            }
            node->u.chain.ops = ops;
            cap = wider;
        }
        node->u.chain.ops[operands->n - 1] = (uint8_t)op;
        gn_jnode *next = NULL;
        GN_TRY(operand(p, &next));
        GN_TRY(gn_jparser_push(p, operands, next));
    } while (skip_chain_op(p, level, &op));
    *out = node;
    return GN_OK;
}

static gn_status parse_pow_operand(gn_jparser *p, gn_jnode **out)
{
    return parse_unary(p, true, out);
}

static gn_status parse_pow(gn_jparser *p, gn_jnode **out)
{
    return parse_chain(p, 3, parse_pow_operand, out);
}

static gn_status parse_product(gn_jparser *p, gn_jnode **out)
{
    return parse_chain(p, 2, parse_pow, out);
}

static gn_status parse_concat(gn_jparser *p, gn_jnode **out)
{
    uint32_t line = line_here(p);
    gn_jnode *first = NULL;
    GN_TRY(parse_product(p, &first));
    if (!gn_jparser_at(p, GN_JT_TILDE)) {
        *out = first;
        return GN_OK;
    }
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_CONCAT, line, &node));
    GN_TRY(gn_jparser_push(p, &node->u.list, first));
    while (gn_jparser_skip(p, GN_JT_TILDE)) {
        gn_jnode *next = NULL;
        GN_TRY(parse_product(p, &next));
        GN_TRY(gn_jparser_push(p, &node->u.list, next));
    }
    *out = node;
    return GN_OK;
}

static gn_status parse_sum(gn_jparser *p, gn_jnode **out)
{
    return parse_chain(p, 1, parse_concat, out);
}

static gn_status parse_not(gn_jparser *p, gn_jnode **out)
{
    if (!gn_jparser_at_name(p, "not")) {
        return parse_chain(p, 0, parse_sum, out);
    }
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_enter(p));
    GN_TRY(gn_jparser_node(p, GN_JN_NOT, line_here(p), &node));
    p->pos++;
    GN_TRY(parse_not(p, &node->u.operand));
    gn_jparser_leave(p);
    *out = node;
    return GN_OK;
}

/* operand (WORD operand)* as one list. */
static gn_status parse_logic(gn_jparser *p, const char *word, gn_jkind kind, parse_fn operand,
                             gn_jnode **out)
{
    uint32_t line = line_here(p);
    gn_jnode *first = NULL;
    GN_TRY(operand(p, &first));
    if (!gn_jparser_at_name(p, word)) {
        *out = first;
        return GN_OK;
    }
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, kind, line, &node));
    GN_TRY(gn_jparser_push(p, &node->u.list, first));
    while (gn_jparser_skip_name(p, word)) {
        gn_jnode *next = NULL;
        GN_TRY(operand(p, &next));
        GN_TRY(gn_jparser_push(p, &node->u.list, next));
    }
    *out = node;
    return GN_OK;
}

static gn_status parse_and(gn_jparser *p, gn_jnode **out)
{
    return parse_logic(p, "and", GN_JN_AND, parse_not, out);
}

static gn_status parse_or(gn_jparser *p, gn_jnode **out)
{
    return parse_logic(p, "or", GN_JN_OR, parse_and, out);
}

static gn_status parse_cond(gn_jparser *p, gn_jnode **out)
{
    uint32_t line = line_here(p);
    size_t n_unknown = p->n_unknown;
    gn_jnode *node = NULL;
    GN_TRY(parse_or(p, &node));
    while (gn_jparser_skip_name(p, "if")) {
        gn_jnode *cond;
        GN_TRY(gn_jparser_node(p, GN_JN_COND, line, &cond));
        cond->u.cond.yes = node;
        GN_TRY(parse_or(p, &cond->u.cond.test));
        if (gn_jparser_skip_name(p, "else")) {
            GN_TRY(gn_jparser_expr(p, true, &cond->u.cond.no));
        }
        node = cond;
        line = line_here(p);
        p->n_unknown = n_unknown; /* what an inline if holds may be unknown until it is reached */
    }
    *out = node;
    return GN_OK;
}

gn_status gn_jparser_expr(gn_jparser *p, bool condexpr, gn_jnode **out)
{
    GN_TRY(gn_jparser_enter(p));
    GN_TRY(condexpr ? parse_cond(p, out) : parse_or(p, out));
    gn_jparser_leave(p);
    return GN_OK;
}

/* ---- primaries ---- */

static gn_status parse_name(gn_jparser *p, bool namespaces, gn_jnode **out)
{
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    bool is_true = gn_jparser_at_name(p, "true") || gn_jparser_at_name(p, "True");
    bool is_false = gn_jparser_at_name(p, "false") || gn_jparser_at_name(p, "False");
    bool is_none = gn_jparser_at_name(p, "none") || gn_jparser_at_name(p, "None");
    gn_jnode *node = NULL;
    p->pos++;
    if (is_true || is_false || is_none) {
        GN_TRY(gn_jparser_node(p, GN_JN_CONST, token->line, &node));
        node->u.value = is_none ? gn_jnone() : gn_jbool(is_true);
        *out = node;
        return GN_OK;
    }
    uint32_t id;
    GN_TRY(gn_jparser_name_id(p, token->text, token->len, &id));
    if (namespaces && gn_jparser_skip(p, GN_JT_DOT)) {
        const gn_jtoken *attr = gn_jparser_peek(p, 0);
        GN_TRY(gn_jparser_expect(p, GN_JT_NAME));
        GN_TRY(gn_jparser_node(p, GN_JN_NSREF, token->line, &node));
        node->u.nsref.name = id;
        GN_TRY(gn_jparser_str(p, attr->text, attr->len, &node->u.nsref.attr));
        *out = node;
        return GN_OK;
    }
    p->uses |= id == p->program->id_caller    ? GN_JP_USES_CALLER
               : id == p->program->id_kwargs  ? GN_JP_USES_KWARGS
               : id == p->program->id_varargs ? GN_JP_USES_VARARGS
                                              : 0;
    GN_TRY(gn_jparser_node(p, GN_JN_NAME, token->line, &node));
    node->u.name = id;
    *out = node;
    return GN_OK;
}

static gn_status parse_strings(gn_jparser *p, gn_jnode **out)
{
    const gn_jtoken *first = gn_jparser_peek(p, 0);
    gn_buf text = {0};
    gn_status status = GN_OK;
    while (status == GN_OK && gn_jparser_at(p, GN_JT_STRING)) {
        const gn_jtoken *token = gn_jparser_peek(p, 0);
        status = gn_buf_append(&text, token->text, token->len);
        p->pos++;
    }
    gn_jnode *node = NULL;
    const gn_jstr *str = NULL;
    if (status == GN_OK) {
        status = gn_jparser_node(p, GN_JN_CONST, first->line, &node);
    }
    if (status == GN_OK) {
        status = gn_jparser_str(p, text.data, text.len, &str);
    }
    if (status == GN_OK) {
        node->u.value = gn_jstring(str);
        *out = node;
    }
    gn_buf_fini(&text);
    return status;
}

static gn_status parse_list(gn_jparser *p, gn_jnode **out)
{
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_LIST, line_here(p), &node));
    p->pos++;
    while (!gn_jparser_at(p, GN_JT_RBRACKET)) {
        if (node->u.list.n != 0) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
            if (gn_jparser_at(p, GN_JT_RBRACKET)) {
                break;
            }
        }
        gn_jnode *item;
        GN_TRY(gn_jparser_expr(p, true, &item));
        GN_TRY(gn_jparser_push(p, &node->u.list, item));
    }
    *out = node;
    return gn_jparser_expect(p, GN_JT_RBRACKET);
}

static gn_status parse_dict(gn_jparser *p, gn_jnode **out)
{
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_DICT, line_here(p), &node));
    p->pos++;
    while (!gn_jparser_at(p, GN_JT_RBRACE)) {
        if (node->u.list.n != 0) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
            if (gn_jparser_at(p, GN_JT_RBRACE)) {
                break;
            }
        }
        gn_jnode *key;
        gn_jnode *value;
        GN_TRY(gn_jparser_expr(p, true, &key));
        GN_TRY(gn_jparser_expect(p, GN_JT_COLON));
        GN_TRY(gn_jparser_expr(p, true, &value));
        GN_TRY(gn_jparser_push(p, &node->u.list, key));
        GN_TRY(gn_jparser_push(p, &node->u.list, value));
    }
    *out = node;
    return gn_jparser_expect(p, GN_JT_RBRACE);
}

static gn_status parse_primary(gn_jparser *p, bool namespaces, gn_jnode **out)
{
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    gn_jnode *node = NULL;
    switch (token->type) {
    case GN_JT_NAME: return parse_name(p, namespaces, out);
    case GN_JT_STRING: return parse_strings(p, out);
    case GN_JT_INT:
    case GN_JT_FLOAT:
        GN_TRY(gn_jparser_node(p, GN_JN_CONST, token->line, &node));
        node->u.value = token->type == GN_JT_INT ? gn_jint(token->i) : gn_jfloat(token->f);
        p->pos++;
        *out = node;
        return GN_OK;
    case GN_JT_LPAREN:
        p->pos++;
        GN_TRY(gn_jparser_tuple(p, (gn_jtuple_rule){.parentheses = true}, out));
        return gn_jparser_expect(p, GN_JT_RPAREN);
    case GN_JT_LBRACKET: return parse_list(p, out);
    case GN_JT_LBRACE: return parse_dict(p, out);
    default: return gn_jparser_fail(p, "an expression");
    }
}

static bool at_tuple_end(const gn_jparser *p, const char *end_name)
{
    return gn_jparser_at(p, GN_JT_VAR_END) || gn_jparser_at(p, GN_JT_BLOCK_END) ||
           gn_jparser_at(p, GN_JT_RPAREN) || (end_name != NULL && gn_jparser_at_name(p, end_name));
}

gn_status gn_jparser_tuple(gn_jparser *p, gn_jtuple_rule rule, gn_jnode **out)
{
    uint32_t line = line_here(p);
    gn_jnodes items = {0};
    bool is_tuple = false;
    while (!at_tuple_end(p, rule.end_name)) {
        gn_jnode *item;
        GN_TRY(gn_jparser_enter(p));
        GN_TRY(rule.targets ? parse_primary(p, rule.namespaces, &item)
                            : gn_jparser_expr(p, !rule.no_condexpr, &item));
        gn_jparser_leave(p);
        GN_TRY(gn_jparser_push(p, &items, item));
        if (!gn_jparser_skip(p, GN_JT_COMMA)) {
            break;
        }
        is_tuple = true;
    }
    if (!is_tuple && items.n == 1) {
        *out = items.items[0];
        return GN_OK;
    }
    if (!is_tuple && !rule.parentheses) {
        return gn_jparser_fail(p, "an expression");
    }
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_TUPLE, line, &node));
    node->u.list = items;
    *out = node;
    return GN_OK;
}

/* ---- behind a primary ---- */

/* One subscript: an expression, or a slice of `of`, which *slice then is. */
static gn_status parse_subscript_part(gn_jparser *p, gn_jnode *of, gn_jnode **expr,
                                      gn_jnode **slice)
{
    gn_jnode *part[3] = {NULL, NULL, NULL};
    uint32_t line = line_here(p);
    *slice = NULL;
    if (!gn_jparser_at(p, GN_JT_COLON)) {
        GN_TRY(gn_jparser_expr(p, true, &part[0]));
        if (!gn_jparser_at(p, GN_JT_COLON)) {
            *expr = part[0];
            return GN_OK;
        }
    }
    p->pos++;
    for (size_t k = 1; k < 3; k++) {
        bool empty = gn_jparser_at(p, GN_JT_COLON) || gn_jparser_at(p, GN_JT_RBRACKET) ||
                     gn_jparser_at(p, GN_JT_COMMA);
        if (!empty) {
            GN_TRY(gn_jparser_expr(p, true, &part[k]));
        }
        if (k == 1 && !gn_jparser_skip(p, GN_JT_COLON)) {
            break;
        }
    }
    GN_TRY(gn_jparser_node(p, GN_JN_SLICE, line, slice));
    (*slice)->u.slice.of = of;
    memcpy((*slice)->u.slice.part, part, sizeof part);
    return GN_OK;
}

static gn_status parse_brackets(gn_jparser *p, gn_jnode *of, uint32_t line, gn_jnode **out)
{
    gn_jnodes keys = {0};
    gn_jnode *slice = NULL;
    while (!gn_jparser_at(p, GN_JT_RBRACKET)) {
        if (keys.n != 0 || slice != NULL) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
            if (slice != NULL) {
                return gn_jparser_fail(p, "']' behind a slice");
            }
        }
        gn_jnode *key = NULL;
        GN_TRY(parse_subscript_part(p, of, &key, &slice));
        if (slice == NULL) {
            GN_TRY(gn_jparser_push(p, &keys, key));
        } else if (keys.n != 0) {
            return gn_jparser_fail(p, "no slice in a list of subscripts");
        }
    }
    p->pos++;
    if (slice != NULL) {
        *out = slice;
        return GN_OK;
    }
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_ITEM, line, &node));
    node->u.item.of = of;
    if (keys.n == 1) {
        node->u.item.key = keys.items[0];
    } else {
        GN_TRY(gn_jparser_node(p, GN_JN_TUPLE, line, &node->u.item.key));
        node->u.item.key->u.list = keys;
    }
    *out = node;
    return GN_OK;
}

static gn_status parse_dot(gn_jparser *p, gn_jnode *of, uint32_t line, gn_jnode **out)
{
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    gn_jnode *node = NULL;
    if (token->type == GN_JT_NAME) {
        GN_TRY(gn_jparser_node(p, GN_JN_ATTR, line, &node));
        node->u.attr.of = of;
        GN_TRY(gn_jparser_str(p, token->text, token->len, &node->u.attr.name));
    } else if (token->type == GN_JT_INT) {
        GN_TRY(gn_jparser_node(p, GN_JN_ITEM, line, &node));
        node->u.item.of = of;
        GN_TRY(gn_jparser_node(p, GN_JN_CONST, line, &node->u.item.key));
        node->u.item.key->u.value = gn_jint(token->i);
    } else {
        return gn_jparser_fail(p, "a name or an integer");
    }
    p->pos++;
    *out = node;
    return GN_OK;
}

static gn_status parse_call(gn_jparser *p, gn_jnode *callee, gn_jnode **out)
{
    gn_jnode *node = NULL;
    gn_jcallargs *args;
    GN_TRY(gn_jparser_node(p, GN_JN_CALL, line_here(p), &node));
    GN_TRY(parse_call_args(p, &args));
    node->u.call.callee = callee;
    node->u.call.args = args;
    *out = node;
    return GN_OK;
}

static gn_status parse_postfix(gn_jparser *p, gn_jnode *node, gn_jnode **out)
{
    for (;;) {
        uint32_t line = line_here(p);
        if (gn_jparser_skip(p, GN_JT_DOT)) {
            GN_TRY(parse_dot(p, node, line, &node));
        } else if (gn_jparser_skip(p, GN_JT_LBRACKET)) {
            GN_TRY(parse_brackets(p, node, line, &node));
        } else if (gn_jparser_at(p, GN_JT_LPAREN)) {
            GN_TRY(parse_call(p, node, &node));
        } else {
            *out = node;
            return GN_OK;
        }
    }
}

static gn_status push_kw(gn_jparser *p, gn_jcallargs *args, const gn_jtoken *name, gn_jnode *value)
{
    const gn_jstr **names = gn_jparser_alloc(p, args->kw.n + 1, sizeof *names);
    if (names == NULL) {
        return gn_alloc_failed();
    }
    if (args->kw.n != 0) {
        memcpy(names, args->kw_names, args->kw.n * sizeof *names);
    }
    GN_TRY(gn_jparser_str(p, name->text, name->len, &names[args->kw.n]));
    for (size_t i = 0; i < args->kw.n; i++) {
        if (names[i]->len == name->len && memcmp(names[i]->data, name->text, name->len) == 0) {
            return gn_jparser_fail(p, "each keyword argument once");
        }
    }
    args->kw_names = names;
    return gn_jparser_push(p, &args->kw, value);
}

static gn_status parse_call_arg(gn_jparser *p, gn_jcallargs *args)
{
    gn_jnode *value;
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    if (token->type == GN_JT_MUL && args->dyn_pos == NULL && args->dyn_kw == NULL) {
        p->pos++;
        return gn_jparser_expr(p, true, &args->dyn_pos);
    }
    if (token->type == GN_JT_POW && args->dyn_kw == NULL) {
        p->pos++;
        return gn_jparser_expr(p, true, &args->dyn_kw);
    }
    if (token->type == GN_JT_NAME && gn_jparser_peek(p, 1)->type == GN_JT_ASSIGN &&
        args->dyn_kw == NULL) {
        p->pos += 2;
        GN_TRY(gn_jparser_expr(p, true, &value));
        return push_kw(p, args, token, value);
    }
    if (args->dyn_pos != NULL || args->dyn_kw != NULL || args->kw.n != 0) {
        return gn_jparser_fail(p, "positional arguments before keyword arguments");
    }
    GN_TRY(gn_jparser_expr(p, true, &value));
    return gn_jparser_push(p, &args->pos, value);
}

static gn_status parse_call_args(gn_jparser *p, gn_jcallargs **out)
{
    gn_jcallargs *args = gn_jparser_alloc(p, 1, sizeof *args);
    if (args == NULL) {
        return gn_alloc_failed();
    }
    *args = (gn_jcallargs){0};
    GN_TRY(gn_jparser_expect(p, GN_JT_LPAREN));
    bool more = false;
    while (!gn_jparser_at(p, GN_JT_RPAREN)) {
        if (more) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
            if (gn_jparser_at(p, GN_JT_RPAREN)) {
                break;
            }
        }
        GN_TRY(parse_call_arg(p, args));
        more = true;
    }
    *out = args;
    return gn_jparser_expect(p, GN_JT_RPAREN);
}

static void note_unknown(gn_jparser *p, const gn_jtoken *token)
{
    if (!p->soft) {
        if (p->n_unknown++ == 0) {
            p->unknown = *token;
        }
    }
}

/* name(.name)* of a filter or test. */
static gn_status parse_dotted(gn_jparser *p, const gn_jstr **out)
{
    const gn_jtoken *first = gn_jparser_peek(p, 0);
    GN_TRY(gn_jparser_expect(p, GN_JT_NAME));
    const gn_jtoken *last = first;
    while (gn_jparser_skip(p, GN_JT_DOT)) {
        last = gn_jparser_peek(p, 0);
        GN_TRY(gn_jparser_expect(p, GN_JT_NAME));
    }
    return gn_jparser_str(p, first->text, (size_t)(last->text + last->len - first->text), out);
}

gn_status gn_jparser_filters(gn_jparser *p, gn_jnode *of, bool start, gn_jnode **out)
{
    while (start || gn_jparser_skip(p, GN_JT_PIPE)) {
        start = false;
        const gn_jtoken *token = gn_jparser_peek(p, 0);
        gn_jnode *node = NULL;
        const gn_jstr *name;
        gn_jcallargs *args = NULL;
        GN_TRY(gn_jparser_node(p, GN_JN_FILTER, token->line, &node));
        GN_TRY(parse_dotted(p, &name));
        if (gn_jparser_at(p, GN_JT_LPAREN)) {
            GN_TRY(parse_call_args(p, &args));
        }
        node->u.filter.of = of;
        node->u.filter.name = name;
        node->u.filter.filter = gn_jinja_find_filter(name->data, name->len);
        node->u.filter.args = args;
        if (node->u.filter.filter == NULL) {
            note_unknown(p, token);
        }
        of = node;
    }
    *out = of;
    return GN_OK;
}

static bool at_test_argument(const gn_jparser *p)
{
    switch (gn_jparser_peek(p, 0)->type) {
    case GN_JT_NAME:
        return !gn_jparser_at_name(p, "else") && !gn_jparser_at_name(p, "or") &&
               !gn_jparser_at_name(p, "and");
    case GN_JT_STRING:
    case GN_JT_INT:
    case GN_JT_FLOAT:
    case GN_JT_LBRACKET:
    case GN_JT_LBRACE: return true;
    default: return false;
    }
}

static gn_status parse_test(gn_jparser *p, gn_jnode *of, gn_jnode **out)
{
    uint32_t line = line_here(p);
    p->pos++;
    bool negated = gn_jparser_skip_name(p, "not");
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    gn_jnode *node = NULL;
    gn_jcallargs *args = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_TEST, line, &node));
    node->u.test.of = of;
    GN_TRY(parse_dotted(p, &node->u.test.name));
    if (gn_jparser_at(p, GN_JT_LPAREN)) {
        GN_TRY(parse_call_args(p, &args));
    } else if (at_test_argument(p)) {
        if (gn_jparser_at_name(p, "is")) {
            return gn_jparser_fail(p, "one test: tests with 'is' cannot be chained");
        }
        gn_jnode *arg;
        args = gn_jparser_alloc(p, 1, sizeof *args);
        if (args == NULL) {
            return gn_alloc_failed();
        }
        *args = (gn_jcallargs){0};
        GN_TRY(parse_primary(p, false, &arg));
        GN_TRY(parse_postfix(p, arg, &arg));
        GN_TRY(gn_jparser_push(p, &args->pos, arg));
    }
    node->u.test.args = args;
    node->u.test.test = gn_jinja_find_test(node->u.test.name->data, node->u.test.name->len);
    if (node->u.test.test == NULL) {
        note_unknown(p, token);
    }
    *out = node;
    if (negated) {
        GN_TRY(gn_jparser_node(p, GN_JN_NOT, line, out));
        (*out)->u.operand = node;
    }
    return GN_OK;
}

static gn_status parse_filter_expr(gn_jparser *p, gn_jnode *node, gn_jnode **out)
{
    for (;;) {
        if (gn_jparser_at(p, GN_JT_PIPE)) {
            GN_TRY(gn_jparser_filters(p, node, false, &node));
        } else if (gn_jparser_at_name(p, "is")) {
            GN_TRY(parse_test(p, node, &node));
        } else if (gn_jparser_at(p, GN_JT_LPAREN)) {
            GN_TRY(parse_call(p, node, &node));
        } else {
            *out = node;
            return GN_OK;
        }
    }
}

static gn_status parse_unary(gn_jparser *p, bool with_filter, gn_jnode **out)
{
    gn_jnode *node = NULL;
    bool negative = gn_jparser_at(p, GN_JT_SUB);
    if (negative || gn_jparser_at(p, GN_JT_ADD)) {
        GN_TRY(gn_jparser_node(p, negative ? GN_JN_NEG : GN_JN_POS, line_here(p), &node));
        p->pos++;
        GN_TRY(gn_jparser_enter(p));
        GN_TRY(parse_unary(p, false, &node->u.operand));
        gn_jparser_leave(p);
    } else {
        GN_TRY(parse_primary(p, false, &node));
    }
    GN_TRY(parse_postfix(p, node, &node));
    return with_filter ? parse_filter_expr(p, node, out) : (*out = node, GN_OK);
}
