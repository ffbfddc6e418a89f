/* Files are read in pieces instead of mapped, so that a file cut short meanwhile is an error and no SIGBUS,
 * and a 4 MiB piece is hashed while it is in the cache. */
#include "file/digest.h"

#include "base/alloc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gn_digest {
    union {
        crypto_generichash_state blake2b; /* wants 64-byte alignment */
        crypto_hash_sha256_state sha256;
    } state;
    gn_digest_kind kind;
};

static_assert(crypto_hash_sha256_BYTES == GN_DIGEST_BYTES, "SHA-256 has 32 bytes");
static_assert(crypto_generichash_BYTES == GN_DIGEST_BYTES, "BLAKE2b-256 has 32 bytes");

enum { PIECE_BYTES = 4 << 20 };

gn_status gn_digest_create(gn_digest_kind kind, gn_digest **out)
{
    GN_REQUIRE(sodium_init() >= 0, GN_E_UNAVAILABLE, "libsodium cannot start");
    gn_digest *digest = gn_alloc_aligned(1, sizeof *digest);
    if (digest == NULL) {
        return gn_alloc_failed();
    }
    digest->kind = kind;
    if (kind == GN_DIGEST_SHA256) {
        (void)crypto_hash_sha256_init(&digest->state.sha256);
    } else {
        (void)crypto_generichash_init(&digest->state.blake2b, NULL, 0, GN_DIGEST_BYTES);
    }
    *out = digest;
    return GN_OK;
}

void gn_digest_destroy(gn_digest *digest)
{
    gn_free_aligned(digest);
}

void gn_digest_update(gn_digest *digest, const void *data, size_t len)
{
    if (digest->kind == GN_DIGEST_SHA256) {
        (void)crypto_hash_sha256_update(&digest->state.sha256, data, len);
    } else {
        (void)crypto_generichash_update(&digest->state.blake2b, data, len);
    }
}

void gn_digest_final(gn_digest *digest, unsigned char out[GN_DIGEST_BYTES])
{
    if (digest->kind == GN_DIGEST_SHA256) {
        (void)crypto_hash_sha256_final(&digest->state.sha256, out);
    } else {
        (void)crypto_generichash_final(&digest->state.blake2b, out, GN_DIGEST_BYTES);
    }
}

/* ---- files ---- */

static gn_status open_regular(const char *path, int *fd, uint64_t *size)
{
    /* Not blocking: a FIFO would hang here instead of being refused below. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GN_REQUIRE(opened >= 0, errno == ENOENT ? GN_E_NOT_FOUND : GN_E_IO, "%s: cannot open: %s", path,
               strerror(errno));
    struct stat st;
    if (fstat(opened, &st) != 0 || !S_ISREG(st.st_mode)) {
        (void)close(opened);
        return gn_base_fail(GN_E_IO, "%s: found no regular file, expected one", path);
    }
    (void)posix_fadvise(opened, 0, 0, POSIX_FADV_SEQUENTIAL);
    *fd = opened;
    *size = (uint64_t)st.st_size;
    return GN_OK;
}

static gn_status digest_fd(const char *path, int fd, uint64_t size, gn_digest *digest,
                           unsigned char *piece, gn_digest_progress progress, void *ctx)
{
    uint64_t done = 0;
    for (;;) {
        ssize_t n = read(fd, piece, PIECE_BYTES);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        GN_REQUIRE(n >= 0, GN_E_IO, "%s: cannot read: %s", path, strerror(errno));
        gn_digest_update(digest, piece, (size_t)n);
        done += (uint64_t)n;
        GN_REQUIRE(progress == NULL || progress(ctx, done, size), GN_E_CANCELLED, "%s: cancelled",
                   path);
        if (n == 0) {
            break;
        }
    }
    GN_REQUIRE(done == size, GN_E_IO, "%s: found %llu bytes, expected %llu: the file is changing",
               path, (unsigned long long)done, (unsigned long long)size);
    return GN_OK;
}

gn_status gn_digest_file(const char *path, gn_digest_kind kind, gn_digest_progress progress,
                         void *ctx, unsigned char out[GN_DIGEST_BYTES])
{
    int fd = -1;
    uint64_t size = 0;
    GN_TRY(open_regular(path, &fd, &size));
    gn_digest *digest = NULL;
    unsigned char *piece = NULL;
    gn_status status = gn_digest_create(kind, &digest);
    if (status != GN_OK) {
        goto close_file;
    }
    piece = gn_alloc(PIECE_BYTES);
    if (piece == NULL) {
        status = gn_alloc_failed();
        goto destroy_digest;
    }
    status = digest_fd(path, fd, size, digest, piece, progress, ctx);
    if (status == GN_OK) {
        gn_digest_final(digest, out);
    }
    gn_free(piece);
destroy_digest:
    gn_digest_destroy(digest);
close_file:
    (void)close(fd);
    return status;
}

/* ---- hex ---- */

void gn_digest_to_hex(const unsigned char digest[GN_DIGEST_BYTES], char out[GN_DIGEST_HEX_BYTES])
{
    (void)sodium_bin2hex(out, GN_DIGEST_HEX_BYTES, digest, GN_DIGEST_BYTES);
}

bool gn_digest_from_hex(const char *hex, unsigned char out[GN_DIGEST_BYTES])
{
    unsigned char bytes[GN_DIGEST_BYTES];
    size_t n = 0;
    if (strlen(hex) != GN_DIGEST_HEX_BYTES - 1 ||
        sodium_hex2bin(bytes, sizeof bytes, hex, GN_DIGEST_HEX_BYTES - 1, NULL, &n, NULL) != 0 ||
        n != GN_DIGEST_BYTES) {
        return false;
    }
    memcpy(out, bytes, sizeof bytes);
    return true;
}
