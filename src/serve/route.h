/* The table of what the server answers. One row an address; the HTTP layer finds the row, checks the key, reads
 * the body and calls the handler; /openapi.json is made from the same rows. */
#ifndef GN_SERVE_ROUTE_H
#define GN_SERVE_ROUTE_H

#include "serve/call.h"

typedef enum gn_route_access {
    GN_ACCESS_OPEN, /* no key needed: health */
    GN_ACCESS_USE,  /* any valid key */
    GN_ACCESS_ADMIN /* a key with the right "admin", where keys are in use */
} gn_route_access;

typedef struct gn_route {
    const char *method; /* "GET", "POST", "DELETE" */
    const char *path;   /* exact, or with a last segment "{id}" that matches one segment */
    gn_dialect dialect;
    gn_route_access access;
    void (*handler)(gn_call *call);
    const char *summary; /* one line for /openapi.json and the documentation */
} gn_route;

/* Each part of the server has a table, ended by a row without a method. */
extern const gn_route
    gn_serve_routes_openai[]; /* openai_*.c: chat, completions, embeddings, models */
extern const gn_route gn_serve_routes_responses[]; /* responses*.c */
extern const gn_route gn_serve_routes_anthropic[]; /* anthropic*.c */
extern const gn_route gn_serve_routes_ollama[];    /* ollama*.c */
extern const gn_route gn_serve_routes_native
    []; /* native*.c: tokenize, detokenize, apply-template, infill, completion, props, capabilities */
extern const gn_route gn_serve_routes_operate[];   /* operate*.c: health, metrics, slots, openapi */
extern const gn_route gn_serve_routes_dashboard[]; /* dashboard.c: the page at / */

/* The last segment of the path where the route has "{id}" there. */
const char *gn_serve_call_segment(const gn_call *call);

#endif
