/* Evaluating the tree. After a failure the rendering is over: frames, depth and captured output are left
 * as they stand. */
#ifndef GN_TEXT_JINJA_EVAL_H
#define GN_TEXT_JINJA_EVAL_H

#include "text/jinja_ast.h"

typedef struct gn_jvar {
    uint32_t name;
    gn_jval value;
} gn_jvar;

/* The names of one scope. Loops reuse their frame from turn to turn unless a macro holds on to it. */
struct gn_jframe {
    gn_jframe *parent;
    gn_jvar *vars;
    uint32_t n;
    uint32_t cap;
    bool captured;
};

struct gn_jmacro {
    const gn_jsignature *signature;
    gn_jframe *frame; /* where it was defined */
};

enum { GN_JFLOW_NONE, GN_JFLOW_BREAK, GN_JFLOW_CONTINUE };

GN_MUST_USE gn_status gn_jinja_eval(gn_jrun *run, const gn_jnode *node, gn_jval *out);
GN_MUST_USE gn_status gn_jinja_eval_args(gn_jrun *run, const gn_jcallargs *args, size_t n_extra,
                                         gn_jargs *out);
GN_MUST_USE gn_status gn_jinja_eval_filter(gn_jrun *run, const gn_jnode *node, const gn_jval *text,
                                           gn_jval *out);
GN_MUST_USE gn_status gn_jinja_exec(gn_jrun *run, const gn_jnodes *body);

GN_MUST_USE gn_status gn_jinja_frame_new(gn_jrun *run, gn_jframe *parent, gn_jframe **out);
GN_MUST_USE gn_status gn_jinja_frame_set(gn_jrun *run, gn_jframe *frame, uint32_t name, gn_jval v);
gn_jval gn_jinja_lookup(const gn_jrun *run, uint32_t name);
/* Assign to a name, a tuple of targets, or an attribute of a namespace, in the innermost frame. */
GN_MUST_USE gn_status gn_jinja_assign(gn_jrun *run, const gn_jnode *target, gn_jval v);

/* A macro value, and what happens when it is called. */
GN_MUST_USE gn_status gn_jinja_macro_new(gn_jrun *run, const gn_jsignature *signature,
                                         gn_jval *out);
GN_MUST_USE gn_status gn_jinja_macro_call(gn_jrun *run, const gn_jmacro *macro,
                                          const gn_jargs *args, gn_jval *out);

/* The for statement, and loop(items) of a recursive one. */
GN_MUST_USE gn_status gn_jinja_exec_for(gn_jrun *run, const gn_jfor *loop);
GN_MUST_USE gn_status gn_jinja_loop_call(gn_jrun *run, gn_jloop *loop, const gn_jargs *args,
                                         gn_jval *out);

#endif
