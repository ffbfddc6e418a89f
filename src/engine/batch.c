/* The rows of a step: of each that generates the tokens that have no keys and values yet, then of prompts as many as
 * the budget allows and those who generate hardly notice (pace.h), the highest class and the oldest first. A
 * request's bits don't depend on how its prompt is cut. */
#include "engine/engine_impl.h"

#include <assert.h>

static bool decodes(const gn_request *r)
{
    return r->info.state == GN_REQUEST_DECODE; /* the step loop alone writes it */
}

static void add_item(gn_engine *e, gn_request *r, size_t pos, bool chooses)
{
    assert(e->n_items < e->max_items);
    e->items[e->n_items++] =
        (gn_engine_item){.request = r, .pos = pos, .chooses = chooses, .id = -1, .stop_index = -1};
}

/* Log-probabilities of the prompt's next token are asked for, and not known from before a pre-emption. */
static bool wants_logprob(const gn_request *r, size_t pos)
{
    return r->n_prompt_top >= 0 && pos + 1 < r->n_prompt && pos + 1 >= r->n_prompt_logprobs;
}

/* Add up to n rows of r from its first position without keys and values; returns how many. */
static uint32_t add_rows(gn_engine *e, gn_request *r, uint32_t n, uint32_t items_left)
{
    gn_row *rows = e->model->rows;
    size_t start = r->table.n_tok;
    size_t most = r->n_ids - start;
    uint32_t i = 0;
    for (; i < n && i < most; i++) {
        size_t pos = start + i;
        bool chooses = pos + 1 == r->n_ids;
        bool wanted = chooses || wants_logprob(r, pos);
        if (wanted && items_left == 0) {
            break;
        }
        if (wanted) {
            add_item(e, r, pos, chooses);
            items_left--;
        }
        rows[e->n_rows++] = (gn_row){.id = r->ids[pos],
                                     .pos = (uint32_t)pos,
                                     .table = &r->table,
                                     .long_context = r->long_context,
                                     .wants_output = wanted};
    }
    return i;
}

static void add_decoding(gn_engine *e)
{
    for (uint32_t i = 0; i < e->n_running; i++) {
        if (decodes(e->running[i])) {
            e->n_decode_rows += add_rows(e, e->running[i], 1, 1);
        }
    }
}

static void add_prompts(gn_engine *e)
{
    uint32_t left = e->options.step_tokens - e->n_rows;
    if (e->n_decode_rows != 0) {
        left = gn_engine_pace_rows(&e->pace, e->n_decode_rows, left);
    }
    for (uint32_t i = 0; i < e->n_running && left > 0; i++) {
        gn_request *r = e->running[i];
        if (!decodes(r)) {
            uint32_t n = add_rows(e, r, left, e->max_items - e->n_items);
            e->n_prompt_rows += n;
            left -= n;
        }
    }
}

void gn_engine_batch_fill(gn_engine *e)
{
    e->n_rows = 0;
    e->n_items = 0;
    e->n_decode_rows = 0;
    e->n_prompt_rows = 0;
    add_decoding(e);
    add_prompts(e);
}
