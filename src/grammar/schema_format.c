/* The formats of draft 2020-12 as regular expressions, from the grammars of the RFCs that they name. What an
 * expression can't say (that February ends early) is said where it is cheap: days of months are checked,
 * leap years are not, and neither are lengths of whole host names beyond their labels. */
#include "grammar/regex.h"
#include "grammar/schema_impl.h"

#include <string.h>

#define DATE                                                                                       \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-" \
    "9]|"                                                                                          \
    "30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP_YEAR "-02-29)"
#define LEAP_YEAR "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
#define ZONE      "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define CLOCK     "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?"
#define LABEL     "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define BYTE      "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4      BYTE "(?:\\." BYTE "){3}"
#define H16       "[0-9A-Fa-f]{1,4}"
#define LS32      "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                       \
    "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32      \
    "|(?:(?:" H16 ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16 ":){0,2}" H16             \
    ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|(?:(?:" H16       \
    ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16 "|(?:(?:" H16 ":){0,6}" H16   \
    ")?::)"
#define ATOM  "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define UNRES "A-Za-z0-9._~\\-"
#define SUB   "!$&'()*+,;="
#define PCT   "%[0-9A-Fa-f]{2}"
#define PCHAR "(?:[" UNRES SUB ":@]|" PCT ")"
#define TAIL  "(?:\\?(?:" PCHAR "|[/?])*)?(?:#(?:" PCHAR "|[/?])*)?"
#define HOST                                                                                       \
    "(?:\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[" UNRES SUB ":]+)\\]|(?:[" UNRES SUB "]|" PCT ")*)"
#define AUTHORITY "(?:(?:[" UNRES SUB ":]|" PCT ")*@)?" HOST "(?::[0-9]*)?"
#define HIER                                                                                       \
    "(?://" AUTHORITY "(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" PCHAR "+(?:/" PCHAR     \
    "*)*)?"
#define SCHEME   "[A-Za-z][A-Za-z0-9+.-]*:"
#define NO_COLON "(?:[" UNRES SUB "@]|" PCT ")"
#define RELATIVE                                                                                   \
    "(?://" AUTHORITY "(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" NO_COLON "+(?:/" PCHAR  \
    "*)*)?"
#define DURATION                                                                                   \
    "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:T" DTIME        \
    ")?|T" DTIME ")"
#define DTIME "(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"

typedef struct named {
    const char *name;
    const char *expression;
} named;

static const named formats[] = {
    {"date", DATE},
    {"time", CLOCK ZONE},
    {"date-time", DATE "[Tt]" CLOCK ZONE},
    {"duration", DURATION},
    {"email",
     ATOM "(?:\\." ATOM ")*@(?:" LABEL "(?:\\." LABEL ")*|\\[" IPV4 "\\]|\\[IPv6:" IPV6 "\\])"},
    {"hostname", LABEL "(?:\\." LABEL ")*"},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", SCHEME HIER TAIL},
    {"uri-reference", "(?:" SCHEME HIER TAIL "|" RELATIVE TAIL ")"},
    {"uuid", "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"},
    {"json-pointer", "(?:/(?:[^~/]|~[01])*)*"},
    {"relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)"},
};

gn_status gn_schema_format(gn_schema *s, const gn_json *name, bool *known, gn_re *out)
{
    *known = false;
    for (size_t i = 0; i < GN_COUNTOF(formats); i++) {
        if (gn_base_json_is(name, formats[i].name)) {
            *known = true;
            return gn_grammar_regex_parse(s->pool, formats[i].expression,
                                          strlen(formats[i].expression),
                                          GN_REGEX_JSON | GN_REGEX_DOTALL, out);
        }
    }
    return GN_OK;
}
