/* OpenAI's addresses. */
#include "serve/openai.h"
#include "serve/route.h"

const gn_route gn_serve_routes_openai[] = {
    {.method = "POST",
     .path = "/v1/chat/completions",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_chat,
     .summary = "Chat Completions"},
    {.method = "POST",
     .path = "/v1/completions",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_complete,
     .summary = "Completions of one prompt or many"},
    {.method = "POST",
     .path = "/v1/embeddings",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_embed,
     .summary = "Embeddings of one text or many"},
    {.method = "GET",
     .path = "/v1/models",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_models,
     .summary = "The models that are served"},
    {.method = "GET",
     .path = "/v1/models/{id}",
     .access = GN_ACCESS_USE,
     .handler = gn_openai_model,
     .summary = "One of them"},
    {.method = NULL},
};
