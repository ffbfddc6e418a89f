/* Statements, and what both halves of the parser share: tokens, nodes and names. */
#include "text/jinja_parse.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/jinja_parser.h"

#include <stdio.h>
#include <string.h>

#define MAX_SOURCE_BYTES (16u << 20)
#define MAX_TREE_BYTES   ((size_t)1 << 30)

/* ---- tokens ---- */

const gn_jtoken *gn_jparser_peek(const gn_jparser *p, size_t ahead)
{
    const gn_jtoken *token = &p->tokens[p->pos];
    for (; ahead > 0 && token->type != GN_JT_EOF; ahead--) {
        token++;
    }
    return token;
}

bool gn_jparser_at(const gn_jparser *p, gn_jtok type)
{
    return p->tokens[p->pos].type == type;
}

bool gn_jparser_at_name(const gn_jparser *p, const char *name)
{
    const gn_jtoken *token = &p->tokens[p->pos];
    return token->type == GN_JT_NAME && strlen(name) == token->len &&
           memcmp(token->text, name, token->len) == 0;
}

bool gn_jparser_skip(gn_jparser *p, gn_jtok type)
{
    bool at = gn_jparser_at(p, type);
    p->pos += at;
    return at;
}

bool gn_jparser_skip_name(gn_jparser *p, const char *name)
{
    bool at = gn_jparser_at_name(p, name);
    p->pos += at;
    return at;
}

gn_status gn_jparser_fail(const gn_jparser *p, const char *expected)
{
    const gn_jtoken *token = &p->tokens[p->pos];
    int len = token->len < 60 ? (int)token->len : 60;
    if (token->type == GN_JT_NAME) {
        return gn_base_fail(GN_E_FORMAT, "line %u, column %u: found '%.*s', expected %s",
                            token->line, token->column, len, token->text, expected);
    }
    return gn_base_fail(GN_E_FORMAT, "line %u, column %u: found %s, expected %s", token->line,
                        token->column, gn_jinja_token_name(token->type), expected);
}

gn_status gn_jparser_expect(gn_jparser *p, gn_jtok type)
{
    return gn_jparser_skip(p, type) ? GN_OK : gn_jparser_fail(p, gn_jinja_token_name(type));
}

gn_status gn_jparser_enter(gn_jparser *p)
{
    if (p->depth >= GN_JINJA_MAX_PARSE_DEPTH) {
        const gn_jtoken *token = &p->tokens[p->pos];
        return gn_base_fail(GN_E_LIMIT, "line %u, column %u: nested deeper than %u levels",
                            token->line, token->column, GN_JINJA_MAX_PARSE_DEPTH);
    }
    p->depth++;
    return GN_OK;
}

void gn_jparser_leave(gn_jparser *p)
{
    p->depth--;
}

/* ---- nodes and names ---- */

void *gn_jparser_alloc(gn_jparser *p, size_t n, size_t bytes)
{
    return gn_arena_calloc(&p->program->arena, n, bytes);
}

gn_status gn_jparser_node(gn_jparser *p, gn_jkind kind, uint32_t line, gn_jnode **out)
{
    gn_jnode *node = gn_jparser_alloc(p, 1, sizeof *node);
    if (node == NULL) {
        return gn_alloc_failed();
    }
    node->kind = (uint8_t)kind;
    node->line = line;
    *out = node;
    return GN_OK;
}

gn_status gn_jparser_push(gn_jparser *p, gn_jnodes *list, gn_jnode *node)
{
    if (list->n == list->cap) {
        size_t cap = list->cap == 0 ? 2 : list->cap * 2;
        gn_jnode **items = gn_jparser_alloc(p, cap, sizeof *items);
        if (items == NULL) {
            return gn_alloc_failed();
        }
        if (list->n != 0) {
            memcpy(items, list->items, list->n * sizeof *items);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = node;
    return GN_OK;
}

gn_status gn_jparser_str(gn_jparser *p, const char *s, size_t len, const gn_jstr **out)
{
    *out = gn_jinja_str_in(&p->program->arena, s != NULL ? s : "", len);
    return *out != NULL ? GN_OK : gn_alloc_failed();
}

gn_status gn_jparser_name_id(gn_jparser *p, const char *s, size_t len, uint32_t *id)
{
    const uint32_t *known = gn_map_find(&p->name_ids, s, len);
    if (known != NULL) {
        *id = *known;
        return GN_OK;
    }
    gn_jprogram *program = p->program;
    if (program->n_names == p->names_cap) {
        size_t cap = p->names_cap == 0 ? 32 : p->names_cap * 2;
        const gn_jstr **names = gn_jparser_alloc(p, cap, sizeof *names);
        if (names == NULL) {
            return gn_alloc_failed();
        }
        if (program->n_names != 0) {
            memcpy(names, program->names, program->n_names * sizeof *names);
        }
        program->names = names;
        p->names_cap = cap;
    }
    const gn_jstr *name;
    GN_TRY(gn_jparser_str(p, s, len, &name));
    *id = (uint32_t)program->n_names;
    GN_TRY(gn_map_add(&p->name_ids, name->data, name->len, *id, NULL, NULL));
    program->names[program->n_names++] = name;
    return GN_OK;
}

/* ---- targets ---- */

static gn_status check_target(gn_jparser *p, const gn_jnode *node, bool in_for)
{
    if (node->kind == GN_JN_TUPLE) {
        for (size_t i = 0; i < node->u.list.n; i++) {
            GN_TRY(check_target(p, node->u.list.items[i], in_for));
        }
        return GN_OK;
    }
    if (node->kind == GN_JN_NAME && in_for && node->u.name == p->program->id_loop) {
        return gn_jparser_fail(p, "no assignment to the loop variable");
    }
    if (node->kind != GN_JN_NAME && node->kind != GN_JN_NSREF) {
        return gn_jparser_fail(p, "a name to assign to");
    }
    return GN_OK;
}

static gn_status parse_target(gn_jparser *p, bool namespaces, const char *end_name, gn_jnode **out)
{
    gn_jtuple_rule rule = {.targets = true, .namespaces = namespaces, .end_name = end_name};
    unsigned uses = p->uses;
    GN_TRY(gn_jparser_tuple(p, rule, out));
    p->uses = uses;
    return check_target(p, *out, end_name != NULL || p->for_depth != 0);
}

static gn_status parse_name(gn_jparser *p, uint32_t *id, const gn_jstr **name)
{
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    GN_TRY(gn_jparser_expect(p, GN_JT_NAME));
    if (name != NULL) {
        GN_TRY(gn_jparser_str(p, token->text, token->len, name));
    }
    return gn_jparser_name_id(p, token->text, token->len, id);
}

/* ---- statements ---- */

/* The rest of an opening tag, and the body up to one of `ends`, which stays current. */
static gn_status parse_block(gn_jparser *p, const char *const *ends, gn_jnodes *out)
{
    (void)gn_jparser_skip(p, GN_JT_COLON);
    GN_TRY(gn_jparser_expect(p, GN_JT_BLOCK_END));
    return gn_jparser_body(p, ends, out);
}

/* The same in a scope of its own, up to the only end, which is skipped. */
static gn_status parse_inner(gn_jparser *p, const char *end, gn_jnodes *out)
{
    const char *const ends[] = {end, NULL};
    bool soft = p->soft;
    p->soft = false;
    GN_TRY(parse_block(p, ends, out));
    p->soft = soft;
    p->pos++;
    return GN_OK;
}

static gn_status parse_if(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    gn_jnode *node = NULL;
    size_t cap = 0;
    bool soft = p->soft;
    p->soft = true;
    GN_TRY(gn_jparser_node(p, GN_JN_IF, line, &node));
    for (bool more = true; more;) {
        if (node->u.branch.n == cap) {
            cap = cap == 0 ? 2 : cap * 2;
            gn_jbranch *wider = gn_jparser_alloc(p, cap, sizeof *wider);
            if (wider == NULL) {
                return gn_alloc_failed();
            }
            if (node->u.branch.n != 0) {
                memcpy(wider, node->u.branch.branches, node->u.branch.n * sizeof *wider);
            }
            node->u.branch.branches = wider;
        }
        gn_jbranch *branch = &node->u.branch.branches[node->u.branch.n++];
        bool is_else = node->u.branch.n > 1 && gn_jparser_at_name(p, "else");
        if (node->u.branch.n > 1) {
            p->pos++;
        }
        if (is_else) {
            GN_TRY(parse_block(p, ends + 2, &branch->body));
            break;
        }
        GN_TRY(gn_jparser_tuple(p, (gn_jtuple_rule){.no_condexpr = true}, &branch->test));
        GN_TRY(parse_block(p, ends, &branch->body));
        more = !gn_jparser_at_name(p, "endif");
    }
    p->pos++;
    p->soft = soft;
    *out = node;
    return GN_OK;
}

static gn_status parse_for(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    gn_jnode *node = NULL;
    gn_jfor *loop = gn_jparser_alloc(p, 1, sizeof *loop);
    if (loop == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_jparser_node(p, GN_JN_FOR, line, &node));
    GN_TRY(parse_target(p, false, "in", &loop->target));
    if (!gn_jparser_skip_name(p, "in")) {
        return gn_jparser_fail(p, "'in'");
    }
    gn_jtuple_rule rule = {.no_condexpr = true, .end_name = "recursive"};
    GN_TRY(gn_jparser_tuple(p, rule, &loop->iter));
    bool soft = p->soft;
    p->soft = false;
    if (gn_jparser_skip_name(p, "if")) {
        GN_TRY(gn_jparser_expr(p, true, &loop->test));
    }
    loop->recursive = gn_jparser_skip_name(p, "recursive");
    p->loop_depth++;
    p->for_depth++;
    GN_TRY(parse_block(p, ends, &loop->body));
    p->loop_depth--;
    if (gn_jparser_skip_name(p, "else")) {
        GN_TRY(parse_block(p, (const char *const[]){"endfor", NULL}, &loop->other));
    }
    p->for_depth--;
    p->pos++;
    p->soft = soft;
    node->u.loop = loop;
    *out = node;
    return GN_OK;
}

static gn_jnodes *new_nodes(gn_jparser *p)
{
    return gn_jparser_alloc(p, 1, sizeof(gn_jnodes));
}

static gn_status parse_set(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    gn_jnode *target;
    gn_jnode *node = NULL;
    GN_TRY(parse_target(p, true, NULL, &target));
    if (gn_jparser_skip(p, GN_JT_ASSIGN)) {
        GN_TRY(gn_jparser_node(p, GN_JN_SET, line, &node));
        node->u.set.target = target;
        *out = node;
        return gn_jparser_tuple(p, (gn_jtuple_rule){0}, &node->u.set.value);
    }
    GN_TRY(gn_jparser_node(p, GN_JN_SET_BLOCK, line, &node));
    node->u.block.target = target;
    bool soft = p->soft;
    p->soft = false;
    GN_TRY(gn_jparser_filters(p, NULL, false, &node->u.block.filter));
    p->soft = soft;
    node->u.block.body = new_nodes(p);
    if (node->u.block.body == NULL) {
        return gn_alloc_failed();
    }
    *out = node;
    return parse_inner(p, "endset", node->u.block.body);
}

static gn_status parse_params(gn_jparser *p, gn_jsignature *sig)
{
    GN_TRY(gn_jparser_expect(p, GN_JT_LPAREN));
    bool soft = p->soft;
    p->soft = false;
    while (!gn_jparser_at(p, GN_JT_RPAREN)) {
        if (sig->n_params != 0) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
        }
        uint32_t *params = gn_jparser_alloc(p, sig->n_params + 1, sizeof *params);
        if (params == NULL) {
            return gn_alloc_failed();
        }
        if (sig->n_params != 0) {
            memcpy(params, sig->params, sig->n_params * sizeof *params);
        }
        sig->params = params;
        GN_TRY(parse_name(p, &params[sig->n_params], NULL));
        for (size_t i = 0; i < sig->n_params; i++) {
            if (params[i] == params[sig->n_params]) {
                return gn_jparser_fail(p, "each parameter once");
            }
        }
        sig->n_params++;
        if (gn_jparser_skip(p, GN_JT_ASSIGN)) {
            gn_jnode *value;
            GN_TRY(gn_jparser_expr(p, true, &value));
            GN_TRY(gn_jparser_push(p, &sig->defaults, value));
        } else if (sig->defaults.n != 0) {
            return gn_jparser_fail(p, "a default, as the parameter before has one");
        }
        if (sig->n_params > 64) {
            return gn_jparser_fail(p, "at most 64 parameters");
        }
    }
    p->soft = soft;
    p->pos++;
    return GN_OK;
}

static bool has_param(const gn_jsignature *sig, uint32_t id)
{
    for (size_t i = 0; i < sig->n_params; i++) {
        if (sig->params[i] == id) {
            return true;
        }
    }
    return false;
}

/* The body of a macro or call block: breaks do not reach out of it, and what it uses makes its signature. */
static gn_status parse_macro_body(gn_jparser *p, const char *end, gn_jsignature *sig)
{
    unsigned uses = p->uses;
    unsigned loop_depth = p->loop_depth;
    p->uses = 0;
    p->loop_depth = 0;
    GN_TRY(parse_inner(p, end, &sig->body));
    p->loop_depth = loop_depth;
    const gn_jprogram *program = p->program;
    sig->has_caller_param = has_param(sig, program->id_caller);
    sig->uses_caller = (p->uses & GN_JP_USES_CALLER) != 0 && !sig->has_caller_param;
    sig->uses_kwargs = (p->uses & GN_JP_USES_KWARGS) != 0 && !has_param(sig, program->id_kwargs);
    sig->uses_varargs = (p->uses & GN_JP_USES_VARARGS) != 0 && !has_param(sig, program->id_varargs);
    bool needs_default = (p->uses & GN_JP_USES_CALLER) != 0 && sig->has_caller_param;
    for (size_t i = 0; needs_default && i + sig->defaults.n < sig->n_params; i++) {
        if (sig->params[i] == program->id_caller) {
            return gn_jparser_fail(p, "a default for the parameter 'caller'");
        }
    }
    p->uses |= uses;
    return GN_OK;
}

static gn_status parse_macro(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    gn_jnode *node = NULL;
    gn_jsignature *sig = gn_jparser_alloc(p, 1, sizeof *sig);
    if (sig == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_jparser_node(p, GN_JN_MACRO, line, &node));
    GN_TRY(parse_name(p, &node->u.macro.name, &sig->name));
    GN_TRY(parse_params(p, sig));
    GN_TRY(parse_macro_body(p, "endmacro", sig));
    node->u.macro.signature = sig;
    *out = node;
    return GN_OK;
}

static gn_status parse_call_block(gn_jparser *p, uint32_t line, bool generation, gn_jnode **out)
{
    gn_jnode *node = NULL;
    gn_jsignature *sig = gn_jparser_alloc(p, 1, sizeof *sig);
    if (sig == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_jparser_node(p, GN_JN_CALL_BLOCK, line, &node));
    if (!generation) {
        if (gn_jparser_at(p, GN_JT_LPAREN)) {
            GN_TRY(parse_params(p, sig));
        }
        GN_TRY(gn_jparser_expr(p, true, &node->u.call_block.call));
        if (node->u.call_block.call->kind != GN_JN_CALL) {
            return gn_jparser_fail(p, "a call before it");
        }
    }
    GN_TRY(parse_macro_body(p, generation ? "endgeneration" : "endcall", sig));
    node->u.call_block.signature = sig;
    *out = node;
    return GN_OK;
}

static gn_status parse_filter_block(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_FILTER_BLOCK, line, &node));
    bool soft = p->soft;
    p->soft = false;
    GN_TRY(gn_jparser_filters(p, NULL, true, &node->u.block.filter));
    p->soft = soft;
    node->u.block.body = new_nodes(p);
    if (node->u.block.body == NULL) {
        return gn_alloc_failed();
    }
    *out = node;
    return parse_inner(p, "endfilter", node->u.block.body);
}

static gn_status new_with(gn_jparser *p, gn_jkind kind, uint32_t line, gn_jnode **out)
{
    GN_TRY(gn_jparser_node(p, kind, line, out));
    (*out)->u.with.targets = new_nodes(p);
    (*out)->u.with.values = new_nodes(p);
    (*out)->u.with.body = new_nodes(p);
    bool made = (*out)->u.with.targets != NULL && (*out)->u.with.values != NULL &&
                (*out)->u.with.body != NULL;
    return made ? GN_OK : gn_alloc_failed();
}

static gn_status parse_with(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    gn_jnode *node = NULL;
    GN_TRY(new_with(p, GN_JN_WITH, line, &node));
    while (!gn_jparser_at(p, GN_JT_BLOCK_END)) {
        gn_jnode *target;
        gn_jnode *value;
        if (node->u.with.targets->n != 0) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
        }
        GN_TRY(parse_target(p, false, NULL, &target));
        GN_TRY(gn_jparser_expect(p, GN_JT_ASSIGN));
        GN_TRY(gn_jparser_expr(p, true, &value));
        GN_TRY(gn_jparser_push(p, node->u.with.targets, target));
        GN_TRY(gn_jparser_push(p, node->u.with.values, value));
    }
    *out = node;
    return parse_inner(p, "endwith", node->u.with.body);
}

/* block and autoescape: their body with names of its own. Escaping is never on, whatever is asked. */
static gn_status parse_scope(gn_jparser *p, uint32_t line, bool is_block, gn_jnode **out)
{
    gn_jnode *node = NULL;
    GN_TRY(new_with(p, GN_JN_SCOPE, line, &node));
    *out = node;
    if (!is_block) {
        gn_jnode *ignored;
        GN_TRY(gn_jparser_expr(p, true, &ignored));
        return parse_inner(p, "endautoescape", node->u.with.body);
    }
    const gn_jtoken *name = gn_jparser_peek(p, 0);
    GN_TRY(gn_jparser_expect(p, GN_JT_NAME));
    bool added;
    GN_TRY(gn_map_add(&p->blocks, name->text, name->len, 0, &added, NULL));
    if (!added) {
        return gn_jparser_fail(p, "each block once");
    }
    (void)gn_jparser_skip_name(p, "scoped");
    (void)gn_jparser_skip_name(p, "required");
    unsigned loop_depth = p->loop_depth;
    p->loop_depth = 0;
    GN_TRY(parse_inner(p, "endblock", node->u.with.body));
    p->loop_depth = loop_depth;
    const gn_jtoken *again = gn_jparser_peek(p, 0);
    if (again->type == GN_JT_NAME && again->len == name->len &&
        memcmp(again->text, name->text, name->len) == 0) {
        p->pos++;
    }
    return GN_OK;
}

static gn_status parse_print(gn_jparser *p, gn_jnodes *out)
{
    bool more = false;
    while (!gn_jparser_at(p, GN_JT_BLOCK_END)) {
        gn_jnode *node = NULL;
        if (more) {
            GN_TRY(gn_jparser_expect(p, GN_JT_COMMA));
        }
        GN_TRY(gn_jparser_node(p, GN_JN_PRINT, gn_jparser_peek(p, 0)->line, &node));
        GN_TRY(gn_jparser_expr(p, true, &node->u.operand));
        GN_TRY(gn_jparser_push(p, out, node));
        more = true;
    }
    return GN_OK;
}

/* include, import, from, extends: kept as a node that fails when it is reached. */
static gn_status parse_load(gn_jparser *p, uint32_t line, gn_jnode **out)
{
    while (!gn_jparser_at(p, GN_JT_BLOCK_END) && !gn_jparser_at(p, GN_JT_EOF)) {
        p->pos++;
    }
    return gn_jparser_node(p, GN_JN_LOAD, line, out);
}

static gn_status parse_statement(gn_jparser *p, gn_jnodes *out)
{
    const gn_jtoken *tag = gn_jparser_peek(p, 0);
    gn_jnode *node = NULL;
    if (gn_jparser_skip_name(p, "if")) {
        GN_TRY(parse_if(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "for")) {
        GN_TRY(parse_for(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "set")) {
        GN_TRY(parse_set(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "macro")) {
        GN_TRY(parse_macro(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "call")) {
        GN_TRY(parse_call_block(p, tag->line, false, &node));
    } else if (gn_jparser_skip_name(p, "generation")) {
        GN_TRY(parse_call_block(p, tag->line, true, &node));
    } else if (gn_jparser_skip_name(p, "filter")) {
        GN_TRY(parse_filter_block(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "with")) {
        GN_TRY(parse_with(p, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "block")) {
        GN_TRY(parse_scope(p, tag->line, true, &node));
    } else if (gn_jparser_skip_name(p, "autoescape")) {
        GN_TRY(parse_scope(p, tag->line, false, &node));
    } else if (gn_jparser_at_name(p, "break") || gn_jparser_at_name(p, "continue")) {
        bool is_break = gn_jparser_at_name(p, "break");
        if (p->loop_depth == 0) {
            return gn_jparser_fail(p, "a loop around it");
        }
        p->pos++;
        GN_TRY(gn_jparser_node(p, is_break ? GN_JN_BREAK : GN_JN_CONTINUE, tag->line, &node));
    } else if (gn_jparser_skip_name(p, "print")) {
        return parse_print(p, out);
    } else if (gn_jparser_skip_name(p, "include") || gn_jparser_skip_name(p, "import") ||
               gn_jparser_skip_name(p, "from") || gn_jparser_skip_name(p, "extends")) {
        GN_TRY(parse_load(p, tag->line, &node));
    } else {
        return gn_jparser_fail(p, "a tag that is known here");
    }
    return gn_jparser_push(p, out, node);
}

static bool at_end(const gn_jparser *p, const char *const *ends)
{
    for (; ends != NULL && *ends != NULL; ends++) {
        if (gn_jparser_at_name(p, *ends)) {
            return true;
        }
    }
    return false;
}

static gn_status parse_data(gn_jparser *p, gn_jnodes *out)
{
    const gn_jtoken *token = gn_jparser_peek(p, 0);
    gn_jnode *node = NULL;
    const gn_jstr *text;
    GN_TRY(gn_jparser_node(p, GN_JN_DATA, token->line, &node));
    GN_TRY(gn_jparser_str(p, token->text, token->len, &text));
    node->u.value = gn_jstring(text);
    p->pos++;
    return gn_jparser_push(p, out, node);
}

static gn_status parse_output(gn_jparser *p, gn_jnodes *out)
{
    gn_jnode *node = NULL;
    GN_TRY(gn_jparser_node(p, GN_JN_PRINT, gn_jparser_peek(p, 0)->line, &node));
    p->pos++;
    GN_TRY(gn_jparser_tuple(p, (gn_jtuple_rule){0}, &node->u.operand));
    GN_TRY(gn_jparser_push(p, out, node));
    return gn_jparser_expect(p, GN_JT_VAR_END);
}

gn_status gn_jparser_body(gn_jparser *p, const char *const *ends, gn_jnodes *out)
{
    GN_TRY(gn_jparser_enter(p));
    while (!gn_jparser_at(p, GN_JT_EOF)) {
        if (gn_jparser_at(p, GN_JT_DATA)) {
            GN_TRY(parse_data(p, out));
        } else if (gn_jparser_at(p, GN_JT_VAR_BEGIN)) {
            GN_TRY(parse_output(p, out));
        } else {
            GN_TRY(gn_jparser_expect(p, GN_JT_BLOCK_BEGIN));
            if (at_end(p, ends)) {
                gn_jparser_leave(p);
                return GN_OK;
            }
            GN_TRY(parse_statement(p, out));
            GN_TRY(gn_jparser_expect(p, GN_JT_BLOCK_END));
        }
    }
    gn_jparser_leave(p);
    if (ends != NULL) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "'{%% %s %%}'", ends[0]);
        return gn_jparser_fail(p, expected);
    }
    return GN_OK;
}

static gn_status parse_tokens(gn_jparser *p)
{
    gn_jprogram *program = p->program;
    GN_TRY(gn_jparser_name_id(p, "caller", 6, &program->id_caller));
    GN_TRY(gn_jparser_name_id(p, "kwargs", 6, &program->id_kwargs));
    GN_TRY(gn_jparser_name_id(p, "varargs", 7, &program->id_varargs));
    GN_TRY(gn_jparser_name_id(p, "loop", 4, &program->id_loop));
    GN_TRY(gn_jparser_body(p, NULL, &program->body));
    if (p->n_unknown != 0) {
        int len = p->unknown.len < 60 ? (int)p->unknown.len : 60;
        return gn_base_fail(GN_E_FORMAT,
                            "line %u, column %u: found '%.*s', expected a known filter or test",
                            p->unknown.line, p->unknown.column, len, p->unknown.text);
    }
    return GN_OK;
}

gn_status gn_jinja_parse(const char *source, size_t len, gn_jprogram *out)
{
    *out = (gn_jprogram){0};
    gn_arena_init(&out->arena, MAX_TREE_BYTES);
    GN_REQUIRE(len <= MAX_SOURCE_BYTES, GN_E_LIMIT,
               "template: found %zu bytes, expected at most %u", len, MAX_SOURCE_BYTES);
    GN_REQUIRE(gn_utf8_valid(source, len), GN_E_FORMAT, "template: the text is not valid UTF-8");
    gn_jtoken *tokens;
    size_t n_tokens;
    GN_TRY(gn_jinja_lex(&out->arena, source, len, &tokens, &n_tokens));
    gn_jparser p = {.program = out, .tokens = tokens};
    gn_status status = parse_tokens(&p);
    gn_map_fini(&p.name_ids);
    gn_map_fini(&p.blocks);
    gn_free(tokens);
    return status;
}

void gn_jinja_program_fini(gn_jprogram *program)
{
    if (program != NULL) {
        gn_arena_fini(&program->arena);
    }
}
