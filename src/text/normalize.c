/* Each step reads one buffer and writes the other. Steps that look at single characters are loops
 * over code points; Unicode's normalization forms are in normalize_forms.c, SentencePiece's map in
 * charsmap.c. */
#include "text/normalize.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/normalize_steps.h"
#include "text/uchar.h"

#include <string.h>
#include <utf8proc.h>

static void step_fini(gn_norm_step *step)
{
    gn_pattern_destroy(step->pattern);
    gn_free(step->text);
    gn_free(step->map.units);
    gn_free(step->map.strings);
    *step = (gn_norm_step){0};
}

gn_status gn_norm_add(gn_norm *norm, gn_norm_step step)
{
    if (norm->n == GN_NORM_MAX_STEPS) {
        step_fini(&step);
        return gn_base_fail(GN_E_LIMIT, "normalizer: found over %d steps", GN_NORM_MAX_STEPS);
    }
    norm->steps[norm->n++] = step;
    return GN_OK;
}

gn_status gn_norm_add_kind(gn_norm *norm, gn_norm_kind kind)
{
    return gn_norm_add(norm, (gn_norm_step){.kind = kind});
}

gn_status gn_norm_add_replace(gn_norm *norm, const char *find, size_t find_len, bool literal,
                              const char *text, size_t text_len)
{
    gn_norm_step step = {.kind = GN_NORM_REPLACE, .text_len = text_len};
    GN_TRY(gn_pattern_compile(find, find_len, literal, &step.pattern));
    step.text = gn_strndup(text, text_len);
    if (step.text == NULL) {
        step_fini(&step);
        return gn_alloc_failed();
    }
    return gn_norm_add(norm, step);
}

gn_status gn_norm_add_prepend(gn_norm *norm, const char *text, size_t text_len)
{
    gn_norm_step step = {.kind = GN_NORM_PREPEND, .text_len = text_len};
    step.text = gn_strndup(text, text_len);
    if (step.text == NULL) {
        return gn_alloc_failed();
    }
    return gn_norm_add(norm, step);
}

gn_status gn_norm_add_charsmap(gn_norm *norm, const void *data, size_t size, bool hf)
{
    gn_norm_step step = {.kind = hf ? GN_NORM_CHARSMAP_HF : GN_NORM_CHARSMAP};
    gn_status status = gn_norm_map_parse(data, size, &step.map);
    if (status != GN_OK) {
        step_fini(&step);
        return status;
    }
    return gn_norm_add(norm, step);
}

void gn_norm_fini(gn_norm *norm)
{
    if (norm != NULL) {
        for (size_t i = 0; i < norm->n; i++) {
            step_fini(&norm->steps[i]);
        }
        *norm = (gn_norm){0};
    }
}

void gn_norm_work_fini(gn_norm_work *work)
{
    if (work != NULL) {
        gn_pattern_work_fini(&work->pattern);
        gn_buf_fini(&work->text[0]);
        gn_buf_fini(&work->text[1]);
        gn_free(work->cps);
    }
}

gn_status gn_norm_put(gn_buf *out, uint32_t cp)
{
    char s[4];
    return gn_buf_append(out, s, gn_utf8_encode(cp, s));
}

static gn_status lowercase(uint32_t cp, gn_buf *out)
{
    if (cp == 0x130) { /* the one letter whose lower case is two code points */
        return gn_buf_puts(out, "i\xcc\x87");
    }
    return gn_norm_put(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

static gn_status strip_accents(uint32_t cp, gn_buf *out)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    bool mark = c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
    return mark ? GN_OK : gn_norm_put(out, cp);
}

static gn_status strip_mn(uint32_t cp, gn_buf *out)
{
    return gn_uchar_is_mark_nonspacing(cp) ? GN_OK : gn_norm_put(out, cp);
}

static gn_status bert_clean(uint32_t cp, gn_buf *out)
{
    if (cp == 0 || cp == 0xfffd || gn_uchar_is_control(cp)) {
        return GN_OK;
    }
    return gn_norm_put(out, gn_uchar_is_space(cp) ? ' ' : cp);
}

static gn_status bert_cjk(uint32_t cp, gn_buf *out)
{
    if (!gn_uchar_is_cjk(cp)) {
        return gn_norm_put(out, cp);
    }
    GN_TRY(gn_buf_putc(out, ' '));
    GN_TRY(gn_norm_put(out, cp));
    return gn_buf_putc(out, ' ');
}

static gn_status nmt(uint32_t cp, gn_buf *out)
{
    if ((cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f ||
        cp == 0x8f || cp == 0x9f) {
        return GN_OK;
    }
    bool space = cp == 9 || cp == 0xa || cp == 0xc || cp == 0xd || cp == 0x1680 ||
                 (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
                 cp == 0xfeff || cp == 0xfffd;
    return gn_norm_put(out, space ? ' ' : cp);
}

static gn_status each(gn_status (*map)(uint32_t, gn_buf *), const char *s, size_t len, gn_buf *out)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = gn_utf8_decode(s + i, len - i, &cp);
        GN_TRY(map(cp, out));
        i += n != 0 ? n : 1;
    }
    return GN_OK;
}

static gn_status letters(const char *s, size_t len, gn_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        GN_TRY(gn_norm_put(out, gn_bpe_letter((uint8_t)s[i])));
    }
    return GN_OK;
}

static gn_status strip(const gn_norm_step *step, const char *s, size_t len, gn_buf *out)
{
    size_t start = 0;
    size_t end = len;
    uint32_t cp;
    while (step->left && start < end) {
        size_t n = gn_utf8_decode(s + start, end - start, &cp);
        if (n == 0 || !gn_uchar_is_space(cp)) {
            break;
        }
        start += n;
    }
    while (step->right && start < end) {
        size_t at = end - 1;
        while (at > start && ((unsigned char)s[at] & 0xc0) == 0x80) {
            at--;
        }
        if (gn_utf8_decode(s + at, end - at, &cp) == 0 || !gn_uchar_is_space(cp)) {
            break;
        }
        end = at;
    }
    return gn_buf_append(out, s + start, end - start);
}

static gn_status replace(const gn_norm_step *step, gn_norm_work *work, const char *s, size_t len,
                         gn_buf *out)
{
    size_t done = 0;
    size_t from = 0;
    while (from <= len) {
        gn_pattern_match m;
        GN_TRY(gn_pattern_find(step->pattern, &work->pattern, s, len, from, &m));
        if (!m.found) {
            break;
        }
        GN_TRY(gn_buf_append(out, s + done, m.start - done));
        GN_TRY(gn_buf_append(out, step->text, step->text_len));
        done = m.end;
        from = m.end;
        if (m.start == m.end) {
            uint32_t cp;
            size_t n = from < len ? gn_utf8_decode(s + from, len - from, &cp) : 1;
            from += n != 0 ? n : 1;
        }
    }
    return gn_buf_append(out, s + done, len - done);
}

static gn_status squeeze(const char *s, size_t len, gn_buf *out)
{
    bool space = true; /* drops those at the start */
    for (size_t i = 0; i < len; i++) {
        if (s[i] != ' ' || !space) {
            GN_TRY(gn_buf_putc(out, s[i]));
        }
        space = s[i] == ' ';
    }
    if (len != 0 && space && out->len != 0) {
        out->len--;
    }
    return GN_OK;
}

static gn_status apply(const gn_norm_step *step, gn_norm_work *work, const char *s, size_t len,
                       bool joined, gn_buf *out)
{
    switch (step->kind) {
    case GN_NORM_NFC:
    case GN_NORM_NFD:
    case GN_NORM_NFKC:
    case GN_NORM_NFKD: return gn_norm_form(step->kind, work, s, len, out);
    case GN_NORM_LOWERCASE: return each(lowercase, s, len, out);
    case GN_NORM_STRIP: return strip(step, s, len, out);
    case GN_NORM_STRIP_ACCENTS: return each(strip_accents, s, len, out);
    case GN_NORM_STRIP_MN: return each(strip_mn, s, len, out);
    case GN_NORM_REPLACE: return replace(step, work, s, len, out);
    case GN_NORM_PREPEND:
        if (len != 0 && !joined) {
            GN_TRY(gn_buf_append(out, step->text, step->text_len));
        }
        return gn_buf_append(out, s, len);
    case GN_NORM_BERT_CLEAN: return each(bert_clean, s, len, out);
    case GN_NORM_BERT_CJK: return each(bert_cjk, s, len, out);
    case GN_NORM_NMT: return each(nmt, s, len, out);
    case GN_NORM_CHARSMAP: return gn_norm_map_apply(&step->map, s, len, out);
    case GN_NORM_CHARSMAP_HF: return gn_norm_map_apply_hf(&step->map, s, len, out);
    case GN_NORM_SQUEEZE: return squeeze(s, len, out);
    case GN_NORM_LETTERS: return letters(s, len, out);
    }
    return GN_OK;
}

gn_status gn_norm_run(const gn_norm *norm, gn_norm_work *work, const char *text, size_t len,
                      bool joined, const char **out, size_t *out_len)
{
    for (size_t i = 0; i < norm->n; i++) {
        gn_buf *to = &work->text[i & 1];
        gn_buf_clear(to);
        GN_TRY(gn_buf_reserve(to, len));
        GN_TRY(apply(&norm->steps[i], work, text, len, joined, to));
        text = to->data;
        len = to->len;
    }
    *out = text;
    *out_len = len;
    return GN_OK;
}
