/* Steps run depth first: each word a step cuts goes through the steps behind it, down to the
 * model, before the next is cut. So no list of words is kept, whatever the length of the text, and
 * a word is in the cache when the model sees it. The depth is the number of steps.
 *
 * A step yields matches and the text between them to a cutter, which joins them by the step's
 * rule; a cutter holds back at most one piece, as a match may still belong to it. */
#include "text/pretok.h"

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/uchar.h"

#include <string.h>

const char gn_pretok_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

gn_status gn_pretok_add(gn_pretok *pretok, gn_pretok_step step)
{
    if (pretok->n == GN_PRETOK_MAX_STEPS) {
        gn_pattern_destroy(step.pattern);
        return gn_base_fail(GN_E_LIMIT, "pre-tokenizer: found over %d steps", GN_PRETOK_MAX_STEPS);
    }
    pretok->steps[pretok->n++] = step;
    return GN_OK;
}

gn_status gn_pretok_add_split(gn_pretok *pretok, const char *regex, size_t len, bool literal,
                              gn_pretok_split split, bool invert)
{
    gn_pretok_step step = {.kind = GN_PRETOK_SPLIT, .split = split, .invert = invert};
    GN_TRY(gn_pattern_compile(regex, len, literal, &step.pattern));
    return gn_pretok_add(pretok, step);
}

void gn_pretok_fini(gn_pretok *pretok)
{
    if (pretok != NULL) {
        for (size_t i = 0; i < pretok->n; i++) {
            gn_pattern_destroy(pretok->steps[i].pattern);
        }
        *pretok = (gn_pretok){0};
    }
}

void gn_pretok_work_fini(gn_pretok_work *work)
{
    if (work != NULL) {
        gn_pattern_work_fini(&work->pattern);
        for (size_t i = 0; i < GN_PRETOK_MAX_STEPS; i++) {
            gn_buf_fini(&work->text[i]);
        }
    }
}

typedef struct walk {
    const gn_pretok *pretok;
    gn_pretok_work *work;
    gn_pretok_word *word;
    void *ctx;
} walk;

static gn_status run(const walk *w, size_t at, const char *text, size_t len, bool first);

typedef struct cutter {
    const walk *walk;
    const char *text;
    size_t next_step;
    gn_pretok_split split;
    bool first;     /* the text is the start of the whole input */
    bool holds;     /* [start, end) is held back */
    bool was_match; /* the last piece was a match */
    size_t start;
    size_t end;
} cutter;

static gn_status release(cutter *c)
{
    if (!c->holds) {
        return GN_OK;
    }
    c->holds = false;
    return run(c->walk, c->next_step, c->text + c->start, c->end - c->start,
               c->first && c->start == 0);
}

/* The next piece of the text, match or what lies between two. */
static gn_status cut(cutter *c, size_t start, size_t end, bool match)
{
    bool join = false;
    switch (c->split) {
    case GN_SPLIT_ISOLATED: break;
    case GN_SPLIT_REMOVED: break;
    case GN_SPLIT_CONTIGUOUS: join = c->holds && match == c->was_match; break;
    case GN_SPLIT_WITH_PREVIOUS: join = c->holds && match && !c->was_match; break;
    case GN_SPLIT_WITH_NEXT: join = c->holds && !match && c->was_match; break;
    }
    c->was_match = match;
    if (join) {
        c->end = end;
        return GN_OK;
    }
    GN_TRY(release(c));
    c->holds = !(match && c->split == GN_SPLIT_REMOVED);
    c->start = start;
    c->end = end;
    return GN_OK;
}

static gn_status split_pattern(const walk *w, const gn_pretok_step *step, cutter *c, size_t len)
{
    size_t done = 0; /* pieces up to here were cut */
    size_t from = 0;
    while (from <= len) {
        gn_pattern_match m;
        GN_TRY(gn_pattern_find(step->pattern, &w->work->pattern, c->text, len, from, &m));
        if (!m.found) {
            break;
        }
        if (m.start > done) {
            GN_TRY(cut(c, done, m.start, step->invert));
        }
        GN_TRY(cut(c, m.start, m.end, !step->invert));
        done = m.end;
        from = m.end;
        if (m.start == m.end) {
            /* An empty match cuts; the search goes on behind the next character. */
            uint32_t cp;
            size_t n = from < len ? gn_utf8_decode(c->text + from, len - from, &cp) : 1;
            from += n != 0 ? n : 1;
        }
    }
    return done < len ? cut(c, done, len, step->invert) : GN_OK;
}

/* Each character of the class is a match of its own; runs of others lie between. */
static gn_status split_class(bool (*is)(uint32_t), cutter *c, size_t len)
{
    size_t between = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = gn_utf8_decode(c->text + i, len - i, &cp);
        n = n != 0 ? n : 1;
        if (is(cp)) {
            if (i > between) {
                GN_TRY(cut(c, between, i, false));
            }
            GN_TRY(cut(c, i, i + n, true));
            between = i + n;
        }
        i += n;
    }
    return between < len ? cut(c, between, len, false) : GN_OK;
}

/* Cut digits [from, to) into threes from the right: the first piece takes what is left over. Digits
 * are up to four bytes long, so they are counted first. */
static gn_status cut_threes(cutter *c, size_t from, size_t to, size_t n_digits)
{
    size_t left = n_digits % 3 != 0 ? n_digits % 3 : 3;
    size_t start = from;
    for (size_t i = from; i < to;) {
        uint32_t cp;
        size_t n = gn_utf8_decode(c->text + i, to - i, &cp);
        i += n != 0 ? n : 1;
        if (--left == 0) {
            GN_TRY(cut(c, start, i, true));
            start = i;
            left = 3;
        }
    }
    return GN_OK;
}

static gn_status split_digits3(const gn_pretok_step *step, cutter *c, size_t len)
{
    size_t between = 0;
    size_t n_digits = 0;
    size_t from = 0;
    for (size_t i = 0; i <= len;) {
        uint32_t cp = 0;
        size_t n = i < len ? gn_utf8_decode(c->text + i, len - i, &cp) : 1;
        if (i < len && gn_uchar_is_digit(cp)) {
            from = n_digits == 0 ? i : from;
            n_digits++;
        } else if (n_digits != 0) {
            if (!step->boundary || i == len || !gn_uchar_is_word(cp)) {
                if (from > between) {
                    GN_TRY(cut(c, between, from, false));
                }
                GN_TRY(cut_threes(c, from, i, n_digits));
                between = i;
            }
            n_digits = 0;
        }
        i += n != 0 ? n : 1;
    }
    return between < len ? cut(c, between, len, false) : GN_OK;
}

static gn_status space_first(const walk *w, size_t at, const char *text, size_t len, bool first)
{
    if (len != 0 && text[0] == ' ') {
        return run(w, at + 1, text, len, first);
    }
    gn_buf *buf = &w->work->text[at];
    gn_buf_clear(buf);
    GN_TRY(gn_buf_putc(buf, ' '));
    GN_TRY(gn_buf_append(buf, text, len));
    return run(w, at + 1, buf->data, buf->len, first);
}

static gn_status letters(const walk *w, size_t at, const char *text, size_t len, bool first)
{
    gn_buf *buf = &w->work->text[at];
    gn_buf_clear(buf);
    for (size_t i = 0; i < len; i++) {
        char letter[4];
        size_t n = gn_utf8_encode(gn_bpe_letter((uint8_t)text[i]), letter);
        GN_TRY(gn_buf_append(buf, letter, n));
    }
    return run(w, at + 1, buf->data, buf->len, first);
}

static gn_status metaspace(const walk *w, size_t at, const char *text, size_t len, bool first)
{
    const gn_pretok_step *step = &w->pretok->steps[at];
    gn_buf *buf = &w->work->text[at];
    size_t mark = strlen(step->mark);
    bool marked =
        len != 0 && (text[0] == ' ' || (len >= mark && memcmp(text, step->mark, mark) == 0));
    gn_buf_clear(buf);
    if (!marked &&
        (step->prepend == GN_PREPEND_ALWAYS || (step->prepend == GN_PREPEND_FIRST && first))) {
        GN_TRY(gn_buf_append(buf, step->mark, mark));
    }
    for (size_t i = 0; i < len; i++) {
        GN_TRY(text[i] == ' ' ? gn_buf_append(buf, step->mark, mark) : gn_buf_putc(buf, text[i]));
    }
    if (!step->cut) {
        return run(w, at + 1, buf->data, buf->len, first);
    }
    cutter c = {.walk = w,
                .text = buf->data,
                .next_step = at + 1,
                .split = GN_SPLIT_WITH_NEXT,
                .first = first};
    size_t between = 0;
    for (size_t i = 0; i + mark <= buf->len;) {
        if (memcmp(buf->data + i, step->mark, mark) != 0) {
            i++;
            continue;
        }
        if (i > between) {
            GN_TRY(cut(&c, between, i, false));
        }
        GN_TRY(cut(&c, i, i + mark, true));
        i += mark;
        between = i;
    }
    if (between < buf->len) {
        GN_TRY(cut(&c, between, buf->len, false));
    }
    return release(&c);
}

static gn_status run(const walk *w, size_t at, const char *text, size_t len, bool first)
{
    if (len == 0) {
        return GN_OK;
    }
    if (at == w->pretok->n) {
        return w->word(w->ctx, text, len);
    }
    const gn_pretok_step *step = &w->pretok->steps[at];
    cutter c = {.walk = w, .text = text, .next_step = at + 1, .split = step->split, .first = first};
    switch (step->kind) {
    case GN_PRETOK_SPLIT: GN_TRY(split_pattern(w, step, &c, len)); break;
    case GN_PRETOK_DIGITS: GN_TRY(split_class(gn_uchar_is_numeric, &c, len)); break;
    case GN_PRETOK_DIGITS3: GN_TRY(split_digits3(step, &c, len)); break;
    case GN_PRETOK_SPACE: GN_TRY(split_class(gn_uchar_is_space, &c, len)); break;
    case GN_PRETOK_PUNCT: GN_TRY(split_class(gn_uchar_is_punct, &c, len)); break;
    case GN_PRETOK_SPACE_FIRST: return space_first(w, at, text, len, first);
    case GN_PRETOK_METASPACE: return metaspace(w, at, text, len, first);
    case GN_PRETOK_LETTERS: return letters(w, at, text, len, first);
    }
    return release(&c);
}

gn_status gn_pretok_run(const gn_pretok *pretok, gn_pretok_work *work, const char *text, size_t len,
                        bool first, gn_pretok_word *word, void *ctx)
{
    walk w = {pretok, work, word, ctx};
    return run(&w, 0, text, len, first);
}
