/* Digests of files and streams: SHA-256 (FIPS 180-4), which hubs publish, and BLAKE2b-256 (RFC 7693), which
 * our own manifests use. Both by libsodium. */
#ifndef GN_FILE_DIGEST_H
#define GN_FILE_DIGEST_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GN_DIGEST_BYTES     32
#define GN_DIGEST_HEX_BYTES (2 * GN_DIGEST_BYTES + 1) /* with the NUL */

typedef enum gn_digest_kind { GN_DIGEST_SHA256, GN_DIGEST_BLAKE2B } gn_digest_kind;

/* A digest under way. One thread at a time. */
typedef struct gn_digest gn_digest;

/* GN_E_NOMEM, GN_E_UNAVAILABLE (libsodium finds no entropy source). */
GN_MUST_USE gn_status gn_digest_create(gn_digest_kind kind, gn_digest **out);
void gn_digest_destroy(gn_digest *digest);
void gn_digest_update(gn_digest *digest, const void *data, size_t len);
/* Ends the digest; only destroy may follow. */
void gn_digest_final(gn_digest *digest, unsigned char out[GN_DIGEST_BYTES]);

/* Called about every 4 MiB and at the end, on the caller's thread; false cancels. */
typedef bool (*gn_digest_progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

/* Digest of the regular file at `path`; `progress` may be NULL. GN_E_NOT_FOUND, GN_E_IO, GN_E_CANCELLED,
 * GN_E_NOMEM, GN_E_UNAVAILABLE. */
GN_MUST_USE gn_status gn_digest_file(const char *path, gn_digest_kind kind,
                                     gn_digest_progress progress, void *ctx,
                                     unsigned char out[GN_DIGEST_BYTES]);

/* Lower-case hex, and back: exactly 64 digits of either case, else false. */
void gn_digest_to_hex(const unsigned char digest[GN_DIGEST_BYTES], char out[GN_DIGEST_HEX_BYTES]);
bool gn_digest_from_hex(const char *hex, unsigned char out[GN_DIGEST_BYTES]);

#endif
