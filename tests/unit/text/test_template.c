/* text/template: what it renders, and that no template and no context can run away with it: bombs of depth,
 * output, memory and steps, and everything unterminated, each end in one clear line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/alloc.h"
#include "text/template.h"

static gn_status render_limited(const char *source, const char *context,
                                const gn_template_limits *limits, gn_buf *out)
{
    gn_template *tmpl = NULL;
    gn_status status = gn_template_parse(source, strlen(source), &tmpl);
    if (status != GN_OK) {
        return status;
    }
    json_error_t error;
    json_t *json = json_loads(context, 0, &error);
    assert_non_null(json);
    status = gn_template_render(tmpl, json, 0, limits, out);
    json_decref(json);
    gn_template_destroy(tmpl);
    return status;
}

static gn_status render(const char *source, const char *context, gn_buf *out)
{
    return render_limited(source, context, NULL, out);
}

static void expect_text(const char *source, const char *context, const char *want)
{
    gn_buf out = {0};
    gn_status status = render(source, context, &out);
    if (status != GN_OK) {
        fail_msg("%s: %s", source, gn_error_message());
    }
    assert_string_equal(out.data != NULL ? out.data : "", want);
    gn_buf_fini(&out);
}

static void expect_failure(const char *source, gn_status want, const char *part)
{
    long live = gn_alloc_live();
    gn_buf out = {0};
    gn_status status = render(source, "{\"n\": 7}", &out);
    if (status != want || strstr(gn_error_message(), part) == NULL) {
        fail_msg("%.60s: found %s \"%s\", expected %s with \"%s\"", source, gn_status_name(status),
                 gn_error_message(), gn_status_name(want), part);
    }
    assert_null(strchr(gn_error_message(), '\n'));
    assert_int_equal(out.len, 0);
    gn_buf_fini(&out);
    assert_int_equal(gn_alloc_live(), live);
}

static void test_chatml(void **state)
{
    (void)state;
    expect_text("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m['content'] + "
                "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
                "{{ '<|im_start|>assistant\\n' }}{% endif %}",
                "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                "\"add_generation_prompt\": true}",
                "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

static void test_values_print_as_python_does(void **state)
{
    (void)state;
    expect_text("{{ x }}", "{\"x\": [1, 2.0, 1e22, null, true, \"it's\", {\"a\": -0.0}]}",
                "[1, 2.0, 1e+22, None, True, \"it's\", {'a': -0.0}]");
    expect_text("{{ x|tojson }}", "{\"x\": {\"z\": 1, \"a\": [\"é\", 0.1]}}",
                "{\"z\": 1, \"a\": [\"é\", 0.1]}");
}

static void test_line_is_named(void **state)
{
    (void)state;
    expect_failure("a\nb\n{{ nope.x }}", GN_E_FORMAT, "line 3: 'nope' is undefined");
    expect_failure("a\n{% if %}", GN_E_FORMAT, "line 2, column 7: found '%}', expected");
    expect_failure("{% for x in y %}\n\n", GN_E_FORMAT, "expected '{% endfor %}'");
    expect_failure("{{ 1|nofilter }}", GN_E_FORMAT, "expected a known filter or test");
    expect_failure("{{ n.append(1) }}", GN_E_FORMAT, "has no attribute 'append'");
    expect_failure("{{ [].append(1) }}", GN_E_FORMAT, "unsafe");
}

static void test_raise(void **state)
{
    (void)state;
    expect_failure("{{ raise_exception('only ' ~ n ~ ' here') }}", GN_E_REFUSED, "only 7 here");
    expect_failure("{{ raise_exception('a\\nb') }}", GN_E_REFUSED, "a\\x0ab");
}

static void test_unterminated(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{{",
        "{{ x",
        "{{ 'x",
        "{{ 'x\\",
        "{{ (1",
        "{{ [1,",
        "{{ {",
        "{{ x|",
        "{{ x.",
        "{{ x[",
        "{{ f(",
        "{%",
        "{% if",
        "{% if x %}",
        "{% for",
        "{% for i in",
        "{% set x %}",
        "{% macro m(",
        "{# x",
        "{% raw %} x",
        "{% call m() %}",
        "{% filter x %}",
        "{{ x is",
        "{{ 1 +",
        "{% raw",
        "{% block b %}",
        "{% with %}",
        "{% generation %}",
        "{{ x if",
        "{{ -",
    };
    for (size_t i = 0; i < GN_COUNTOF(sources); i++) {
        expect_failure(sources[i], GN_E_FORMAT, "line 1, column ");
    }
    expect_failure("\xff{{ x }}", GN_E_FORMAT, "not valid UTF-8");
}

/* open × n, inner, close × n */
static char *nest(const char *open, const char *inner, const char *close, size_t n)
{
    gn_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(gn_buf_puts(&text, open), GN_OK);
    }
    assert_int_equal(gn_buf_puts(&text, inner), GN_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(gn_buf_puts(&text, close), GN_OK);
    }
    return gn_buf_take(&text);
}

static void expect_nest_fails(const char *before, const char *open, const char *inner,
                              const char *close, const char *after, gn_status want)
{
    char *middle = nest(open, inner, close, 20000);
    gn_buf text = {0};
    assert_int_equal(gn_buf_puts(&text, before), GN_OK);
    assert_int_equal(gn_buf_puts(&text, middle), GN_OK);
    assert_int_equal(gn_buf_puts(&text, after), GN_OK);
    expect_failure(text.data, want, "nested");
    gn_buf_fini(&text);
    gn_free(middle);
}

static void test_deep_nesting(void **state)
{
    (void)state;
    expect_nest_fails("{{ ", "(", "1", ")", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ ", "[", "1", "]", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ ", "{1:", "1", "}", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ ", "- ", "1", "", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ ", "not ", "1", "", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ ", "1 if n else ", "1", "", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ 1", "", "", " if n", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ n", "", "", "|string", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ n", "", "", ".real", " }}", GN_E_LIMIT);
    expect_nest_fails("{{ n", "", "", "[0:1]", " }}", GN_E_LIMIT);
    expect_nest_fails("", "{% if n %}", "x", "{% endif %}", "", GN_E_LIMIT);
    expect_nest_fails("", "{% for i in [1] %}", "x", "{% endfor %}", "", GN_E_LIMIT);
    expect_nest_fails("", "{% set x %}", "x", "{% endset %}", "", GN_E_LIMIT);
    expect_nest_fails("{% set ", "(", "x", ",)", " = 1 %}", GN_E_LIMIT);
}

static void test_long_is_not_deep(void **state)
{
    (void)state;
    char *sum = nest("", "{{ 1", " + 1", 20000);
    gn_buf text = {0};
    gn_buf out = {0};
    assert_int_equal(gn_buf_printf(&text, "%s }}", sum), GN_OK);
    assert_int_equal(render(text.data, "{}", &out), GN_OK);
    assert_string_equal(out.data, "20001");
    gn_buf_fini(&text);
    gn_buf_fini(&out);
    gn_free(sum);
}

static const char *const BOMBS[] = {
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f() %}{% for i in [1] %}{% if 1 %}{% set x %}{{ [f()]|join }}{% endset %}{% endif %}"
    "{% endfor %}{% endmacro %}{{ f() }}",
    "{% macro f() %}{{ caller is string }}{% call f() %}x{% endcall %}{% endmacro %}{{ f() }}",
    "{% macro f(a=f()) %}x{% endmacro %}{{ f() }}",
    "{% for i in [[1]] recursive %}{{ loop(i and [i]) }}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}"
    "{{ ns.x }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}"
    "{{ ns.x|tojson }}",
    "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
    "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}",
};

static void test_recursion_bombs(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_COUNTOF(BOMBS); i++) {
        expect_failure(BOMBS[i], GN_E_LIMIT, "nested deeper");
    }
}

static void *run_bombs(void *ctx)
{
    gn_status *worst = ctx;
    for (size_t i = 0; i < GN_COUNTOF(BOMBS); i++) {
        gn_buf out = {0};
        gn_status status = render(BOMBS[i], "{}", &out);
        *worst = status != GN_E_LIMIT ? status : *worst;
        gn_buf_fini(&out);
    }
    char *deep = nest("(", "1", ")", 20000);
    gn_template *tmpl = NULL;
    gn_buf text = {0};
    if (gn_buf_printf(&text, "{{ %s }}", deep) != GN_OK ||
        gn_template_parse(text.data, text.len, &tmpl) != GN_E_LIMIT) {
        *worst = GN_E_STATE;
    }
    gn_buf_fini(&text);
    gn_free(deep);
    return NULL;
}

/* The deepest evaluation allowed fits into 2 MiB of stack, with the sanitizers' larger frames too. */
static void test_small_stack(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    gn_status worst = GN_E_LIMIT;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)2 << 20), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_bombs, &worst), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    assert_int_equal(worst, GN_E_LIMIT);
}

static void test_output_and_memory_bombs(void **state)
{
    (void)state;
    expect_failure("{% for i in range(100000) %}{% for j in range(100000) %}xxxxxxxxxxxxxxxx"
                   "{% endfor %}{% endfor %}",
                   GN_E_LIMIT, "");
    expect_failure("{% set ns = namespace(x='aa') %}{% for i in range(99) %}"
                   "{% set ns.x = ns.x + ns.x %}{% endfor %}",
                   GN_E_LIMIT, "bytes");
    expect_failure("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
                   "{% set ns.x = ns.x + ns.x %}{% endfor %}",
                   GN_E_LIMIT, "");
    expect_failure("{{ 'a' * 9223372036854775807 }}", GN_E_LIMIT, "");
    expect_failure("{{ 'ab' * 9223372036854775807 }}", GN_E_LIMIT, "");
    expect_failure("{{ [1, 2] * 9223372036854775807 }}", GN_E_LIMIT, "");
    expect_failure("{{ 'x'.ljust(9223372036854775807) }}", GN_E_LIMIT, "");
    expect_failure("{{ 'x'.zfill(9223372036854775807) }}", GN_E_LIMIT, "");
    expect_failure("{{ 'x'|center(9223372036854775807) }}", GN_E_LIMIT, "");
    expect_failure("{{ 'x'|indent(9223372036854775807, true) }}", GN_E_LIMIT, "");
    expect_failure("{{ '\\t'.expandtabs(9223372036854775807) }}", GN_E_LIMIT, "");
    expect_failure("{{ [1]|tojson(indent=9223372036854775807) }}", GN_E_LIMIT, "");
    expect_failure("{{ '%2147483647d' % 1 }}", GN_E_LIMIT, "");
    expect_failure("{{ '{:2147483647}'.format(1) }}", GN_E_LIMIT, "");
    expect_failure("{{ '%.2147483647f' % 1 }}", GN_E_LIMIT, "precision");
    expect_failure("{{ [1]|batch(9223372036854775807, 1)|list }}", GN_E_LIMIT, "");
    expect_failure("{{ [1]|slice(9223372036854775807)|list }}", GN_E_LIMIT, "");
    expect_failure("{{ ('a' * 1000000).replace('', 'b' * 1000000) }}", GN_E_LIMIT, "");
    expect_failure("{{ range(100001) }}", GN_E_FORMAT, "100000");
    expect_failure("{{ range(9223372036854775807) }}", GN_E_FORMAT, "100000");
    expect_failure("{{ range(-9223372036854775807, 9223372036854775807, 1) }}", GN_E_FORMAT, "");
}

static void test_overflow(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{{ 9223372036854775807 + 1 }}",
        "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}",
        "{{ 2 ** 63 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1)|abs }}",
        "{{ 99999999999999999999 }}",
        "{{ 10 ** 400 }}",
        "{{ '99999999999999999999'|int }}",
    };
    for (size_t i = 0; i < GN_COUNTOF(sources); i++) {
        expect_failure(sources[i], GN_E_FORMAT, "64 bits");
    }
    expect_text("{{ (-9223372036854775807 - 1) % -1 }}", "{}", "0");
    expect_text("{{ 'abc'[9223372036854775807:] }}{{ 'abc'[-9223372036854775807:] }}"
                "{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807] }}",
                "{}", "abcac");
}

static void test_limits_are_kept(void **state)
{
    (void)state;
    gn_buf out = {0};
    assert_int_equal(gn_buf_puts(&out, "before"), GN_OK);
    gn_template_limits steps = {.max_steps = 1000};
    assert_int_equal(render_limited("{% for i in range(9999) %}{% endfor %}", "{}", &steps, &out),
                     GN_E_LIMIT);
    assert_non_null(strstr(gn_error_message(), "steps"));
    gn_template_limits output = {.max_output = 10};
    assert_int_equal(render_limited("0123456789", "{}", &output, &out), GN_OK);
    assert_int_equal(render_limited("0123456789a", "{}", &output, &out), GN_E_LIMIT);
    gn_template_limits memory = {.max_memory = 10000};
    assert_int_equal(render_limited("{{ 'x' * 20000 }}", "{}", &memory, &out), GN_E_LIMIT);
    assert_non_null(strstr(gn_error_message(), "10000 bytes"));
    assert_string_equal(out.data, "before0123456789");
    gn_buf_fini(&out);
}

static void test_context_must_be_an_object(void **state)
{
    (void)state;
    gn_buf out = {0};
    assert_int_equal(render("x", "[]", &out), GN_E_ARG);
    char *deep = nest("[", "1", "]", 2000);
    gn_buf context = {0};
    assert_int_equal(gn_buf_printf(&context, "{\"x\": %s}", deep), GN_OK);
    assert_int_equal(render("{{ x }}", context.data, &out), GN_E_LIMIT);
    gn_buf_fini(&context);
    gn_buf_fini(&out);
    gn_free(deep);
}

static int fail_at(void *ctx)
{
    long *left = ctx;
    return (*left)-- == 0;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char source[] =
        "{% macro m(a, b=1) %}{{ a }}{{ caller() }}{% endmacro %}{% call m('x') %}y{% endcall %}"
        "{% for k, v in d|dictsort %}{{ k ~ v|tojson(indent=1) }}{% endfor %}{{ '%5s' % d.a }}"
        "{{ d.a|string|upper|replace('A', 'b') }}{% set x %}{{ 'long ' * 2000 }}{% endset %}{{ x "
        "}}";
    static const char context[] = "{\"d\": {\"b\": [1, 2, {\"c\": null}], \"a\": \"text\"}}";
    long live = gn_alloc_live();
    gn_status status = GN_E_NOMEM;
    for (long n = 0; status != GN_OK; n++) {
        long left = n;
        gn_buf out = {0};
        gn_alloc_set_fault(fail_at, &left);
        status = render(source, context, &out);
        gn_alloc_set_fault(NULL, NULL);
        gn_buf_fini(&out);
        assert_true(status == GN_OK || status == GN_E_NOMEM);
        assert_int_equal(gn_alloc_live(), live);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chatml),
        cmocka_unit_test(test_values_print_as_python_does),
        cmocka_unit_test(test_line_is_named),
        cmocka_unit_test(test_raise),
        cmocka_unit_test(test_unterminated),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_long_is_not_deep),
        cmocka_unit_test(test_recursion_bombs),
        cmocka_unit_test(test_small_stack),
        cmocka_unit_test(test_output_and_memory_bombs),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_limits_are_kept),
        cmocka_unit_test(test_context_must_be_an_object),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
