/* Python's methods of str that ask what its characters are: isalpha() and its kin. */
#include "text/jinja_lib.h"

#include "base/utf8.h"
#include "text/jinja_lex.h"

#include <string.h>
#include <utf8proc.h>

typedef struct method_row {
    const char *name;
    gn_status (*call)(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out);
} method_row;

static size_t next_cp(const gn_jstr *s, size_t at, uint32_t *cp)
{
    *cp = 0;
    size_t used = gn_utf8_decode(s->data + at, s->len - at, cp);
    return at + (used != 0 ? used : 1);
}

static gn_status none_wanted(gn_jrun *run, const gn_jargs *args)
{
    return gn_jinja_bind(run, "str", args, NULL, 0, 0, NULL);
}

static bool category_in(uint32_t cp, utf8proc_category_t first, utf8proc_category_t last)
{
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)cp);
    return cat >= first && cat <= last;
}

static bool is_alpha(uint32_t cp)
{
    return category_in(cp, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

static bool is_decimal(uint32_t cp)
{
    return category_in(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND);
}

/* Superscripts, subscripts and circled digits are digits that are not decimals. */
static bool is_digit(uint32_t cp)
{
    return is_decimal(cp) || cp == 0xb2 || cp == 0xb3 || cp == 0xb9 ||
           (cp >= 0x1369 && cp <= 0x1371) || cp == 0x19da || cp == 0x2070 ||
           (cp >= 0x2074 && cp <= 0x2079) || (cp >= 0x2080 && cp <= 0x2089) ||
           (cp >= 0x2460 && cp <= 0x2468) || (cp >= 0x2474 && cp <= 0x247c) ||
           (cp >= 0x2488 && cp <= 0x2490) || cp == 0x24ea || (cp >= 0x24f5 && cp <= 0x24fd) ||
           cp == 0x24ff || (cp >= 0x2776 && cp <= 0x277e) || (cp >= 0x2780 && cp <= 0x2788) ||
           (cp >= 0x278a && cp <= 0x2792);
}

static bool is_numeric(uint32_t cp)
{
    static const uint32_t ideographs[] = {
        0x3405, 0x3483, 0x382a, 0x3b4d, 0x4e00, 0x4e03, 0x4e07, 0x4e09, 0x4e5d, 0x4e8c,
        0x4e94, 0x4e96, 0x4ebf, 0x4ec0, 0x4edf, 0x4ee8, 0x4f0d, 0x4f70, 0x5104, 0x5146,
        0x5169, 0x516b, 0x516d, 0x5341, 0x5343, 0x5344, 0x5345, 0x534c, 0x53c1, 0x53c2,
        0x53c3, 0x53c4, 0x56db, 0x58f1, 0x58f9, 0x5e7a, 0x5efe, 0x5eff, 0x5f0c, 0x5f0d,
        0x5f0e, 0x5f10, 0x62fe, 0x634c, 0x67d2, 0x6f06, 0x7396, 0x767e, 0x8086, 0x842c,
        0x8cae, 0x8cb3, 0x8d30, 0x9621, 0x9646, 0x964c, 0x9678, 0x96f6};
    if (category_in(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO)) {
        return true;
    }
    for (size_t i = 0; i < GN_COUNTOF(ideographs); i++) {
        if (ideographs[i] == cp) {
            return true;
        }
    }
    return false;
}

static bool is_alnum(uint32_t cp)
{
    return is_alpha(cp) || is_numeric(cp);
}

static bool is_ascii(uint32_t cp)
{
    return cp < 128;
}

static bool is_word(uint32_t cp)
{
    return is_alpha(cp) || is_numeric(cp) || cp == '_' ||
           category_in(cp, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC);
}

static gn_status all(gn_jrun *run, gn_jval self, const gn_jargs *args, bool (*is)(uint32_t),
                     bool empty, gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    bool holds = empty || s->len != 0;
    GN_TRY(none_wanted(run, args));
    GN_TRY(gn_jinja_step_bytes(run, s->len));
    for (size_t at = 0; at < s->len && holds;) {
        uint32_t cp;
        at = next_cp(s, at, &cp);
        holds = is(cp);
    }
    *out = gn_jbool(holds);
    return GN_OK;
}

#define ALL(name, is, empty)                                                                       \
    static gn_status name(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)          \
    {                                                                                              \
        return all(run, self, args, is, empty, out);                                               \
    }
ALL(str_isalpha, is_alpha, false)
ALL(str_isalnum, is_alnum, false)
ALL(str_isdecimal, is_decimal, false)
ALL(str_isdigit, is_digit, false)
ALL(str_isnumeric, is_numeric, false)
ALL(str_isspace, gn_jinja_is_space, false)
ALL(str_isascii, is_ascii, true)
ALL(str_isprintable, gn_jinja_is_printable, true)
#undef ALL

static gn_status str_isidentifier(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(all(run, self, args, is_word, false, out));
    if (out->u.b) {
        uint32_t first;
        (void)next_cp(self.u.s, 0, &first);
        *out = gn_jbool(is_alpha(first) || first == '_');
    }
    return GN_OK;
}

static gn_status one_case(gn_jrun *run, gn_jval self, const gn_jargs *args, bool upper,
                          gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    bool any = false;
    GN_TRY(none_wanted(run, args));
    GN_TRY(gn_jinja_step_bytes(run, s->len));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp;
        at = next_cp(s, at, &cp);
        bool wrong = upper ? gn_jinja_is_lower(cp) : gn_jinja_is_upper(cp);
        if (wrong || gn_jinja_is_titlecase(cp)) {
            *out = gn_jbool(false);
            return GN_OK;
        }
        any = any || (upper ? gn_jinja_is_upper(cp) : gn_jinja_is_lower(cp));
    }
    *out = gn_jbool(any);
    return GN_OK;
}

static gn_status str_islower(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return one_case(run, self, args, false, out);
}

static gn_status str_isupper(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return one_case(run, self, args, true, out);
}

static gn_status str_istitle(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    bool any = false;
    bool inside = false;
    GN_TRY(none_wanted(run, args));
    GN_TRY(gn_jinja_step_bytes(run, s->len));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp;
        at = next_cp(s, at, &cp);
        bool head = gn_jinja_is_upper(cp) || gn_jinja_is_titlecase(cp);
        bool tail = gn_jinja_is_lower(cp);
        if ((head && inside) || (tail && !inside)) {
            *out = gn_jbool(false);
            return GN_OK;
        }
        inside = head || tail;
        any = any || inside;
    }
    *out = gn_jbool(any);
    return GN_OK;
}

static const method_row METHODS[] = {
    {"isalnum", str_isalnum},     {"isalpha", str_isalpha},     {"isascii", str_isascii},
    {"isdecimal", str_isdecimal}, {"isdigit", str_isdigit},     {"isidentifier", str_isidentifier},
    {"islower", str_islower},     {"isnumeric", str_isnumeric}, {"isprintable", str_isprintable},
    {"isspace", str_isspace},     {"istitle", str_istitle},     {"isupper", str_isupper},
};

gn_status gn_jinja_str_question(gn_jrun *run, gn_jval self, const gn_jstr *name, gn_jval *out,
                                bool *found)
{
    for (size_t i = 0; i < GN_COUNTOF(METHODS); i++) {
        if (strcmp(METHODS[i].name, name->data) == 0) {
            *found = true;
            return gn_jinja_bind_method(run, self, METHODS[i].name, METHODS[i].call, out);
        }
    }
    *found = false;
    return GN_OK;
}
