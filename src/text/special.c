#include "text/special.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/uchar.h"

gn_status gn_special_build(gn_special *special, const gn_special_item *items, size_t n)
{
    *special = (gn_special){0};
    if (n == 0) {
        return GN_OK;
    }
    gn_status status = GN_OK;
    gn_trie_item *texts = gn_alloc_array(n, sizeof *texts);
    special->ids = gn_alloc_array(n, sizeof *special->ids);
    special->flags = gn_alloc(n);
    if (texts == NULL || special->ids == NULL || special->flags == NULL) {
        status = gn_alloc_failed();
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        if (items[i].text.len == 0 || items[i].text.len > GN_SPECIAL_MAX_LEN) {
            status = gn_base_fail(GN_E_FORMAT,
                                  "added token %d: found %zu bytes of text, expected 1 to %d",
                                  items[i].text.value, items[i].text.len, GN_SPECIAL_MAX_LEN);
            goto done;
        }
        special->ids[i] = items[i].text.value;
        special->flags[i] = (uint8_t)items[i].flags;
        texts[i] = items[i].text;
        texts[i].value = (int32_t)i;
    }
    special->n = n;
    status = gn_trie_build(&special->trie, texts, n);
done:
    gn_free(texts);
    if (status != GN_OK) {
        gn_special_fini(special);
    }
    return status;
}

void gn_special_fini(gn_special *special)
{
    if (special != NULL) {
        gn_trie_fini(&special->trie);
        gn_free(special->ids);
        gn_free(special->flags);
        *special = (gn_special){0};
    }
}

/* The code point that ends at text[at), or 0 at the start. */
static uint32_t char_before(const char *text, size_t at, size_t *start)
{
    uint32_t cp = 0;
    size_t i = at;
    while (i > 0 && at - i < 4) {
        i--;
        if (((unsigned char)text[i] & 0xc0) != 0x80) {
            break;
        }
    }
    if (i == at || gn_utf8_decode(text + i, at - i, &cp) != at - i) {
        *start = at;
        return 0;
    }
    *start = i;
    return cp;
}

static bool inside_word(const char *text, size_t len, size_t start, size_t end)
{
    size_t at;
    uint32_t cp = char_before(text, start, &at);
    if (at != start && gn_uchar_is_word(cp)) {
        return true;
    }
    return end < len && gn_utf8_decode(text + end, len - end, &cp) != 0 && gn_uchar_is_word(cp);
}

/* The longest token that starts at text[at), as its index, or -1. */
static int32_t longest_at(const gn_special *special, const char *text, size_t len, size_t at,
                          bool control, size_t *end)
{
    int32_t best = -1;
    uint32_t node = 0;
    for (size_t i = at; i < len; i++) {
        node = gn_trie_step(&special->trie, node, (uint8_t)text[i]);
        if (node == 0) {
            break;
        }
        int32_t value = special->trie.nodes[node].value;
        if (value >= 0 && (control || !(special->flags[value] & GN_SPECIAL_CONTROL))) {
            best = value;
            *end = i + 1;
        }
    }
    return best;
}

gn_special_match gn_special_find(const gn_special *special, const char *text, size_t len,
                                 size_t from, bool control)
{
    for (size_t at = from; special->n != 0 && at < len; at++) {
        size_t end = at;
        int32_t i = longest_at(special, text, len, at, control, &end);
        if (i < 0) {
            continue;
        }
        unsigned flags = special->flags[i];
        size_t start = at;
        if ((flags & GN_SPECIAL_SINGLE_WORD) && inside_word(text, len, start, end)) {
            /* The library's search does not look inside what it has found and rejected. */
            at = end - 1;
            continue;
        }
        if (flags & GN_SPECIAL_LSTRIP) {
            size_t before = start;
            while (start > from && gn_uchar_is_space(char_before(text, start, &before)) &&
                   before >= from) {
                start = before;
            }
        }
        uint32_t cp;
        while ((flags & GN_SPECIAL_RSTRIP) && end < len) {
            size_t n = gn_utf8_decode(text + end, len - end, &cp);
            if (n == 0 || !gn_uchar_is_space(cp)) {
                break;
            }
            end += n;
        }
        return (gn_special_match){special->ids[i], start, end};
    }
    return (gn_special_match){-1, len, len};
}
