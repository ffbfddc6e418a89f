/* SentencePiece's precompiled_charsmap: a Darts-clone double array over the strings to replace,
 * whose values are offsets of NUL-terminated replacements. Every step of a walk is checked against
 * the array. */
#include "text/normalize_steps.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#define GRAPHEME_LIMIT 6 /* bytes; the library looks up shorter graphemes as a whole */

gn_status gn_norm_map_parse(const void *data, size_t size, gn_norm_map *map)
{
    *map = (gn_norm_map){0};
    uint32_t trie;
    GN_REQUIRE(size > sizeof trie, GN_E_FORMAT,
               "precompiled_charsmap: found %zu bytes, expected more than 4", size);
    memcpy(&trie, data, sizeof trie);
    size_t rest = size - sizeof trie;
    GN_REQUIRE(
        trie % 4 == 0 && trie >= 4 && trie < rest, GN_E_FORMAT,
        "precompiled_charsmap: found a trie of %u bytes in %zu, expected a multiple of 4 below",
        trie, rest);
    map->n_units = trie / 4;
    map->n_strings = rest - trie + 1;
    map->units = gn_alloc(trie);
    map->strings = gn_alloc(map->n_strings);
    if (map->units == NULL || map->strings == NULL) {
        return gn_alloc_failed();
    }
    memcpy(map->units, (const char *)data + 4, trie);
    memcpy(map->strings, (const char *)data + 4 + trie, map->n_strings - 1);
    map->strings[map->n_strings - 1] = '\0';
    return GN_OK;
}

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The replacement of an entry that s starts with, or NULL; *used: its length. */
static const char *look_up(const gn_norm_map *map, const char *s, size_t len, bool longest,
                           size_t *used)
{
    const char *found = NULL;
    uint32_t at = unit_offset(map->units[0]);
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)s[i];
        at ^= byte;
        if (byte == 0 || at >= map->n_units) {
            break;
        }
        uint32_t unit = map->units[at];
        if ((unit & (0x80000000u | 0xffu)) != byte) {
            break;
        }
        at ^= unit_offset(unit);
        if (at >= map->n_units) {
            break;
        }
        if ((unit >> 8) & 1) {
            uint32_t value = map->units[at] & 0x7fffffffu;
            if (value < map->n_strings) {
                found = map->strings + value;
                *used = i + 1;
            }
            if (!longest) {
                break;
            }
        }
    }
    return found;
}

gn_status gn_norm_map_apply(const gn_norm_map *map, const char *s, size_t len, gn_buf *out)
{
    for (size_t i = 0; i < len;) {
        size_t used = 0;
        const char *to = look_up(map, s + i, len - i, true, &used);
        if (to != NULL) {
            GN_TRY(gn_buf_puts(out, to));
        } else {
            uint32_t cp;
            used = gn_utf8_decode(s + i, len - i, &cp);
            used = used != 0 ? used : 1;
            GN_TRY(gn_buf_append(out, s + i, used));
        }
        i += used;
    }
    return GN_OK;
}

static gn_status apply_chars(const gn_norm_map *map, const char *s, size_t len, gn_buf *out)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = gn_utf8_decode(s + i, len - i, &cp);
        n = n != 0 ? n : 1;
        size_t used;
        const char *to = look_up(map, s + i, n, false, &used);
        GN_TRY(to != NULL ? gn_buf_puts(out, to) : gn_buf_append(out, s + i, n));
        i += n;
    }
    return GN_OK;
}

gn_status gn_norm_map_apply_hf(const gn_norm_map *map, const char *s, size_t len, gn_buf *out)
{
    utf8proc_int32_t state = 0;
    size_t start = 0;
    utf8proc_int32_t before = -1;
    for (size_t i = 0; i <= len;) {
        uint32_t cp = 0;
        size_t n = i < len ? gn_utf8_decode(s + i, len - i, &cp) : 1;
        bool ends =
            i == len ||
            (before >= 0 && utf8proc_grapheme_break_stateful(before, (utf8proc_int32_t)cp, &state));
        if (ends && i > start) {
            size_t used;
            const char *to = i - start < GRAPHEME_LIMIT
                                 ? look_up(map, s + start, i - start, false, &used)
                                 : NULL;
            GN_TRY(to != NULL ? gn_buf_puts(out, to) : apply_chars(map, s + start, i - start, out));
            start = i;
        }
        before = (utf8proc_int32_t)cp;
        i += n != 0 ? n : 1;
    }
    return GN_OK;
}
