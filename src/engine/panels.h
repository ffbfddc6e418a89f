/* A model's packed weights: mapped from their cache file, or written to it in the background. */
#ifndef GN_ENGINE_PANELS_H
#define GN_ENGINE_PANELS_H

#include "file/source.h"
#include "ganglion/model.h"
#include "model/net.h"

typedef struct gn_engine_panels gn_engine_panels;

/* Find the cache file and let the net's products read from it; where there is none, and `mode` allows it,
 * start a thread that writes one for the next start. Faults of the cache are logged and are no failure:
 * the weights are then read from the model's file. GN_E_NOMEM. `source` and `net` outlive *out. */
GN_MUST_USE gn_status gn_engine_panels_open(const gn_source *source, gn_net *net,
                                            const gn_model_options *options,
                                            gn_engine_panels **out);
/* Stops the writer within a few milliseconds. NULL is fine. */
void gn_engine_panels_close(gn_engine_panels *panels);

/* See gn_model_cache_wait(). NULL is fine. */
bool gn_engine_panels_wait(gn_engine_panels *panels, int32_t ms, uint64_t *done, uint64_t *total);

/* Whether the writer is at work. NULL is fine. */
bool gn_engine_panels_writing(const gn_engine_panels *panels);

/* Bytes mapped of the cache file; 0 without one. */
uint64_t gn_engine_panels_bytes(const gn_engine_panels *panels);

#endif
