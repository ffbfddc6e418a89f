/* Tests: what may stand behind `is`, and be named to select and reject. */
#include "text/jinja_lib.h"

#include <string.h>

static gn_status none_wanted(gn_jrun *run, const gn_jargs *args)
{
    return gn_jinja_bind(run, "this test", args, NULL, 0, 0, NULL);
}

static gn_status one_wanted(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    return gn_jinja_bind(run, "this test", args, NULL, 1, 1, out);
}

/* Tests that depend on the value's type alone. */
#define TYPE_TEST(name, condition)                                                                 \
    static gn_status name(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)               \
    {                                                                                              \
        GN_TRY(none_wanted(run, args));                                                            \
        *out = (condition);                                                                        \
        return GN_OK;                                                                              \
    }
TYPE_TEST(test_defined, in.type != GN_J_UNDEFINED)
TYPE_TEST(test_undefined, in.type == GN_J_UNDEFINED)
TYPE_TEST(test_none, in.type == GN_J_NONE)
TYPE_TEST(test_boolean, in.type == GN_J_BOOL)
TYPE_TEST(test_true, in.type == GN_J_BOOL && in.u.b)
TYPE_TEST(test_false, in.type == GN_J_BOOL && !in.u.b)
TYPE_TEST(test_integer, in.type == GN_J_INT)
TYPE_TEST(test_float, in.type == GN_J_FLOAT)
TYPE_TEST(test_number, gn_jinja_is_number(in))
TYPE_TEST(test_string, in.type == GN_J_STRING)
TYPE_TEST(test_mapping, in.type == GN_J_DICT)
TYPE_TEST(test_iterable, gn_jinja_is_iterable(in) || in.type == GN_J_LOOP)
TYPE_TEST(test_sequence, gn_jinja_has_length(in) && in.type != GN_J_VIEW)
TYPE_TEST(test_callable, gn_jinja_is_callable(in))
TYPE_TEST(test_escaped, gn_jis_markup(in))
#undef TYPE_TEST

static gn_status test_odd_even(gn_jrun *run, gn_jval in, const gn_jargs *args, int64_t rest,
                               bool *out)
{
    gn_jval r;
    GN_TRY(none_wanted(run, args));
    if (in.type == GN_J_STRING) {
        return gn_jinja_fail(run, "a string is neither odd nor even");
    }
    GN_TRY(gn_jinja_binary(run, "%", in, gn_jint(2), &r));
    return gn_jinja_equal(run, r, gn_jint(rest), out);
}

static gn_status test_odd(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    return test_odd_even(run, in, args, 1, out);
}

static gn_status test_even(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    return test_odd_even(run, in, args, 0, out);
}

static gn_status test_divisibleby(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    static const char *const names[] = {"num"};
    gn_jval by;
    gn_jval r;
    GN_TRY(gn_jinja_bind(run, "divisibleby", args, names, 1, 1, &by));
    GN_TRY(gn_jinja_binary(run, "%", in, by, &r));
    return gn_jinja_equal(run, r, gn_jint(0), out);
}

static gn_status ask_case(gn_jrun *run, gn_jval in, const gn_jargs *args, const char *method,
                          bool *out)
{
    const gn_jstr *s;
    gn_jval bound;
    gn_jval result;
    bool found;
    gn_jstr name = {.data = method, .len = strlen(method)};
    GN_TRY(none_wanted(run, args));
    GN_TRY(gn_jinja_to_str(run, in, &s));
    GN_TRY(gn_jinja_str_attribute(run, gn_jstring(s), &name, &bound, &found));
    GN_TRY(gn_jinja_call(run, bound, args, &result));
    *out = result.u.b;
    return GN_OK;
}

static gn_status test_lower(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    return ask_case(run, in, args, "islower", out);
}

static gn_status test_upper(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    return ask_case(run, in, args, "isupper", out);
}

static gn_status want_hashable(gn_jrun *run, const gn_jargs *args, gn_jval in)
{
    GN_TRY(none_wanted(run, args));
    if (!gn_jinja_hashable(in)) {
        return gn_jinja_fail(run, "a %s cannot be a name", gn_jinja_type_name((gn_jtype)in.type));
    }
    return GN_OK;
}

static gn_status test_filter(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    GN_TRY(want_hashable(run, args, in));
    *out = in.type == GN_J_STRING && gn_jinja_find_filter(in.u.s->data, in.u.s->len) != NULL;
    return GN_OK;
}

static gn_status test_test(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    GN_TRY(want_hashable(run, args, in));
    *out = in.type == GN_J_STRING && gn_jinja_find_test(in.u.s->data, in.u.s->len) != NULL;
    return GN_OK;
}

/* Python's `is`: the same object. Small values are the same where they are equal and of one type. */
static gn_status test_sameas(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    static const char *const names[] = {"other"};
    gn_jval other;
    GN_TRY(gn_jinja_bind(run, "sameas", args, names, 1, 1, &other));
    *out = false;
    if (in.type != other.type || in.type == GN_J_UNDEFINED) {
        return GN_OK;
    }
    if (in.type <= GN_J_FLOAT) {
        return gn_jinja_equal(run, in, other, out);
    }
    *out = in.u.dict == other.u.dict;
    return GN_OK;
}

static gn_status test_in(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    static const char *const names[] = {"seq"};
    gn_jval seq;
    GN_TRY(gn_jinja_bind(run, "in", args, names, 1, 1, &seq));
    return gn_jinja_contains(run, seq, in, out);
}

static gn_status test_eq(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    gn_jval other;
    GN_TRY(one_wanted(run, args, &other));
    return gn_jinja_equal(run, in, other, out);
}

static gn_status test_ne(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    GN_TRY(test_eq(run, in, args, out));
    *out = !*out;
    return GN_OK;
}

static gn_status ordered(gn_jrun *run, gn_jval in, const gn_jargs *args, const char *op, int *out)
{
    gn_jval other;
    GN_TRY(one_wanted(run, args, &other));
    return gn_jinja_compare(run, in, other, op, out);
}

static gn_status test_gt(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    int c;
    GN_TRY(ordered(run, in, args, ">", &c));
    *out = c == 1;
    return GN_OK;
}

static gn_status test_ge(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    int c;
    GN_TRY(ordered(run, in, args, ">=", &c));
    *out = c == 1 || c == 0;
    return GN_OK;
}

static gn_status test_lt(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    int c;
    GN_TRY(ordered(run, in, args, "<", &c));
    *out = c == -1;
    return GN_OK;
}

static gn_status test_le(gn_jrun *run, gn_jval in, const gn_jargs *args, bool *out)
{
    int c;
    GN_TRY(ordered(run, in, args, "<=", &c));
    *out = c == -1 || c == 0;
    return GN_OK;
}

static const gn_jtest TESTS[] = {
    {"!=", test_ne},
    {"<", test_lt},
    {"<=", test_le},
    {"==", test_eq},
    {">", test_gt},
    {">=", test_ge},
    {"boolean", test_boolean},
    {"callable", test_callable},
    {"defined", test_defined},
    {"divisibleby", test_divisibleby},
    {"eq", test_eq},
    {"equalto", test_eq},
    {"escaped", test_escaped},
    {"even", test_even},
    {"false", test_false},
    {"filter", test_filter},
    {"float", test_float},
    {"ge", test_ge},
    {"greaterthan", test_gt},
    {"gt", test_gt},
    {"in", test_in},
    {"integer", test_integer},
    {"iterable", test_iterable},
    {"le", test_le},
    {"lessthan", test_lt},
    {"lower", test_lower},
    {"lt", test_lt},
    {"mapping", test_mapping},
    {"ne", test_ne},
    {"none", test_none},
    {"number", test_number},
    {"odd", test_odd},
    {"sameas", test_sameas},
    {"sequence", test_sequence},
    {"string", test_string},
    {"test", test_test},
    {"true", test_true},
    {"undefined", test_undefined},
    {"upper", test_upper},
};

const gn_jtest *gn_jinja_find_test(const char *name, size_t len)
{
    for (size_t i = 0; i < GN_COUNTOF(TESTS); i++) {
        if (strlen(TESTS[i].name) == len && memcmp(TESTS[i].name, name, len) == 0) {
            return &TESTS[i];
        }
    }
    return NULL;
}
