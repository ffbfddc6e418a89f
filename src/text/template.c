/* Chat templates: parsing once, and rendering with a budget. A rendering's values live in one arena; its
 * output grows in the caller's buffer, which is put back where it was if the rendering fails. */
#include "text/template.h"

#include "base/alloc.h"
#include "text/jinja_eval.h"
#include "text/jinja_parse.h"

#define DEFAULT_STEPS  50000000u
#define DEFAULT_OUTPUT ((size_t)64 << 20)
#define DEFAULT_MEMORY ((size_t)512 << 20)

struct gn_template {
    gn_jprogram program;
};

gn_status gn_template_parse(const char *source, size_t len, gn_template **out)
{
    gn_template *tmpl = gn_calloc(1, sizeof *tmpl);
    if (tmpl == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = gn_jinja_parse(source, len, &tmpl->program);
    if (status != GN_OK) {
        gn_template_destroy(tmpl);
        return status;
    }
    *out = tmpl;
    return GN_OK;
}

void gn_template_destroy(gn_template *tmpl)
{
    if (tmpl != NULL) {
        gn_jinja_program_fini(&tmpl->program);
        gn_free(tmpl);
    }
}

/* The value of every name that the template uses, before any assignment: from the context, else a global
 * function, else undefined. */
static gn_status set_globals(gn_jrun *run, const json_t *context)
{
    const gn_jprogram *program = run->program;
    gn_jval *globals = gn_jinja_alloc(run, program->n_names, sizeof *globals);
    if (globals == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t i = 0; i < program->n_names; i++) {
        const gn_jstr *name = program->names[i];
        const json_t *given = json_object_getn(context, name->data, name->len);
        const gn_jfunc *func = gn_jinja_find_global(name->data, name->len);
        globals[i] = (gn_jval){.type = GN_J_UNDEFINED, .sub = GN_J_UNDEF_NAME, .u.s = name};
        if (given != NULL) {
            GN_TRY(gn_jinja_from_json(run, given, &globals[i]));
        } else if (func != NULL) {
            globals[i] = (gn_jval){.type = GN_J_FUNC, .u.func = func};
        }
    }
    run->globals = globals;
    return GN_OK;
}

static gn_status render(gn_jrun *run, const json_t *context)
{
    run->line = 1;
    GN_TRY(set_globals(run, context));
    GN_TRY(gn_jinja_frame_new(run, NULL, &run->frame));
    return gn_jinja_exec(run, &run->program->body);
}

gn_status gn_template_render(const gn_template *tmpl, const json_t *context, time_t now,
                             const gn_template_limits *limits, gn_buf *out)
{
    GN_REQUIRE(json_is_object(context), GN_E_ARG, "template: the context is no JSON object");
    gn_template_limits given = limits != NULL ? *limits : (gn_template_limits){0};
    gn_jrun run = {
        .out = out,
        .out_base = out->len,
        .max_output = given.max_output != 0 ? given.max_output : DEFAULT_OUTPUT,
        .steps_left = given.max_steps != 0 ? given.max_steps : DEFAULT_STEPS,
        .now = now,
        .program = &tmpl->program,
    };
    gn_arena_init(&run.arena, given.max_memory != 0 ? given.max_memory : DEFAULT_MEMORY);
    gn_status status = render(&run, context);
    gn_arena_fini(&run.arena);
    if (status != GN_OK) {
        out->len = run.out_base;
    }
    if (out->data != NULL) {
        out->data[out->len] = '\0';
    }
    return status;
}
