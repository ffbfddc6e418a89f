/* OpenAI's addresses. */
#include "serve/openai.h"
#include "serve/route.h"

const gn_route gn_serve_routes_openai[] = {
    {.method = "POST",
     .path = "/v1/chat/completions",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_chat,
     .summary = "Chat Completions"},
    {.method = NULL},
};
