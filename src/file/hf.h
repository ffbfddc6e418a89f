/* The JSON and text files beside the weights of a Hugging Face model. */
#ifndef GN_FILE_HF_H
#define GN_FILE_HF_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

#define GN_HF_MAX_JSON_BYTES     ((size_t)256 << 20)
#define GN_HF_MAX_TEMPLATE_BYTES ((size_t)1 << 20)

/* Parse n bytes of JSON text whose root is an object; duplicate keys are refused. Depth is bounded by
 * jansson (2,048). GN_E_FORMAT (message: line, column, cause), GN_E_NOMEM. Give back with json_decref(). */
GN_MUST_USE gn_status gn_hf_parse_object(const void *text, size_t n, json_t **out);

/* The same for the file DIR/NAME; messages begin with its path. GN_E_NOT_FOUND, GN_E_IO besides. */
GN_MUST_USE gn_status gn_hf_load_object(const char *path, json_t **out);

/* A text file, at most GN_HF_MAX_TEMPLATE_BYTES of UTF-8 without NUL. Give back with gn_free(). */
GN_MUST_USE gn_status gn_hf_load_text(const char *path, char **out);

#endif
