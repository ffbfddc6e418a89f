/* API keys: a file of hashes and what each key may do. A set is immutable but for its keys' budgets, and counted by
 * reference, so that a call keeps the one it was let in with when the file is read again. Any thread. */
#ifndef GN_SERVE_KEYS_H
#define GN_SERVE_KEYS_H

#include "engine/port.h"

#define GN_KEY_HASH_BYTES 32u

typedef struct gn_key_set gn_key_set;
typedef struct gn_key gn_key;

/* The keys of the file at `path` (NULL: none) and one in clear (NULL: none) with all rights. A line of the file is
 *
 *     NAME HASH [admin] [class=realtime|interactive|batch] [requests=N] [tokens=N] [models=A,B]
 *
 * HASH: 64 hexadecimal digits, BLAKE2b-256 of the key. class: the highest that it may use (default: interactive).
 * requests, tokens: most a minute. Empty lines and what follows # are ignored. GN_E_IO, GN_E_FORMAT (file, line,
 * found, expected), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_keys_load(const char *path, const char *clear, gn_key_set **out);
gn_key_set *gn_keys_ref(gn_key_set *set);
void gn_keys_unref(gn_key_set *set); /* NULL is fine */
size_t gn_keys_count(const gn_key_set *set);

/* The key with this hash, or NULL; takes as long whichever it is. */
gn_key *gn_keys_find(gn_key_set *set, const char *text, size_t len);

const char *gn_key_name(const gn_key *key);
uint64_t gn_key_salt(const gn_key *key);
bool gn_key_is_admin(const gn_key *key);
bool gn_key_allows_model(const gn_key *key, const char *name);
bool gn_key_allows_class(const gn_key *key, gn_priority priority);

/* Take a request from the key's budget; false: wait *retry_ms first. */
bool gn_key_admit(gn_key *key, uint64_t now_ns, uint32_t *retry_ms);
/* Tokens were used; what goes past the budget has to be waited for. */
void gn_key_charge(gn_key *key, uint64_t now_ns, uint64_t n_tokens);

/* What gn_server_new_key() promises. */
GN_MUST_USE gn_status gn_keys_new(const char *name, char *key, size_t key_cap, char *line,
                                  size_t line_cap);

#endif
