/* A request's body of any bytes, read as a request of each API: what is refused has a message, what is accepted has
 * messages or a prompt. */
#include "fuzz.h"

#include "serve/anthropic.h"
#include "serve/ollama.h"
#include "serve/openai.h"
#include "serve/responses.h"

#include <stdlib.h>

static void check(gn_status status, const gn_chat_options *options, bool may_be_empty)
{
    if (status != GN_OK && (gn_error_message()[0] == '\0' || status == GN_E_NOMEM)) {
        abort();
    }
    if (status == GN_OK && !may_be_empty && !json_is_array(options->messages)) {
        abort();
    }
    if (status == GN_OK && options->tools != NULL && !json_is_array(options->tools)) {
        abort();
    }
}

static void read_ollama(gn_arena *arena, const gn_json *body, bool generate)
{
    gn_ollama_ask ask = {.options.request = gn_request_defaults()};
    const gn_status status = generate ? gn_ollama_read_generate(arena, body, &ask)
                                      : gn_ollama_read_chat(arena, body, &ask);
    check(status, &ask.options, ask.load_only || ask.suffix != NULL);
    gn_ollama_ask_fini(&ask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *body = NULL;
    if (gn_base_json_parse(&arena, (const char *)data, size, &body, NULL) == GN_OK &&
        body->type == GN_JSON_OBJECT) {
        gn_anthropic_ask anthropic = {.options.request = gn_request_defaults()};
        check(gn_anthropic_read(&arena, body, &anthropic), &anthropic.options, false);
        gn_anthropic_ask_fini(&anthropic);
        gn_responses_ask responses = {.options.request = gn_request_defaults()};
        check(gn_responses_read(&arena, body, &responses), &responses.options, false);
        gn_responses_ask_fini(&responses);
        gn_openai_ask openai = {.options.request = gn_request_defaults()};
        check(gn_openai_read(&arena, body, &openai), &openai.options, false);
        gn_openai_ask_fini(&openai);
        read_ollama(&arena, body, false);
        read_ollama(&arena, body, true);
    }
    gn_arena_fini(&arena);
    return 0;
}
