/* Keys are long and random, so a plain hash at rest is enough: there is nothing to guess. Budgets are token buckets
 * that hold a minute's worth. */
#include "serve/keys.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES (1u << 20)
#define MAX_NAME       64u

typedef struct bucket {
    double per_minute; /* 0: no limit */
    double level;
    uint64_t at_ns;
} bucket;

struct gn_key {
    const char *name;
    unsigned char hash[GN_KEY_HASH_BYTES];
    uint64_t salt;
    bool admin;
    gn_priority highest;
    const char *models;   /* ",A,B,"; NULL: all */
    pthread_mutex_t lock; /* of the buckets */
    bucket requests;
    bucket tokens;
};

struct gn_key_set {
    atomic_int refs;
    gn_arena arena;
    gn_key **keys; /* [n] */
    size_t n, cap;
};

static void hash_text(const char *text, size_t len, unsigned char out[GN_KEY_HASH_BYTES])
{
    (void)crypto_generichash(out, GN_KEY_HASH_BYTES, (const unsigned char *)text, len, NULL, 0);
}

static bool name_ok(const char *name, size_t len)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return len >= 1 && len <= MAX_NAME && strspn(name, letters) >= len;
}

static gn_status add(gn_key_set *set, const char *name, size_t len, gn_key **out)
{
    for (size_t i = 0; i < set->n; i++) {
        GN_REQUIRE(strlen(set->keys[i]->name) != len || memcmp(set->keys[i]->name, name, len) != 0,
                   GN_E_FORMAT, "the key %s is there twice", set->keys[i]->name);
    }
    if (set->n == set->cap) {
        size_t cap = set->cap == 0 ? 8 : set->cap * 2;
        gn_key **keys = gn_arena_calloc(&set->arena, cap, sizeof *keys);
        if (keys == NULL) {
            return gn_alloc_failed();
        }
        if (set->n > 0) {
            memcpy(keys, set->keys, set->n * sizeof *keys);
        }
        set->keys = keys;
        set->cap = cap;
    }
    gn_key *key = gn_arena_calloc(&set->arena, 1, sizeof *key);
    char *copy = gn_arena_strndup(&set->arena, name, len);
    if (key == NULL || copy == NULL) {
        return gn_alloc_failed();
    }
    key->name = copy;
    key->highest = GN_PRIORITY_INTERACTIVE;
    unsigned char hash[GN_KEY_HASH_BYTES];
    hash_text(name, len, hash);
    memcpy(&key->salt, hash, sizeof key->salt);
    key->salt |= 1; /* never the salt of a server without keys */
    (void)pthread_mutex_init(&key->lock, NULL);
    set->keys[set->n++] = key;
    *out = key;
    return GN_OK;
}

/* --- the file --- */

static gn_status read_limit(const char *word, const char *value, bucket *out)
{
    char *end = NULL;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    GN_REQUIRE(value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0 && n >= 1 &&
                   n <= 1000000000000ull,
               GN_E_FORMAT, "found %s, expected a number of at least 1", word);
    out->per_minute = (double)n;
    out->level = (double)n;
    return GN_OK;
}

static gn_status read_word(gn_key_set *set, gn_key *key, const char *word)
{
    if (strcmp(word, "admin") == 0) {
        key->admin = true;
    } else if (strcmp(word, "class=realtime") == 0) {
        key->highest = GN_PRIORITY_REALTIME;
    } else if (strcmp(word, "class=interactive") == 0) {
        key->highest = GN_PRIORITY_INTERACTIVE;
    } else if (strcmp(word, "class=batch") == 0) {
        key->highest = GN_PRIORITY_BATCH;
    } else if (strncmp(word, "requests=", 9) == 0) {
        return read_limit(word, word + 9, &key->requests);
    } else if (strncmp(word, "tokens=", 7) == 0) {
        return read_limit(word, word + 7, &key->tokens);
    } else if (strncmp(word, "models=", 7) == 0) {
        size_t len = strlen(word + 7);
        char *models = gn_arena_alloc(&set->arena, len + 3);
        if (models == NULL) {
            return gn_alloc_failed();
        }
        (void)snprintf(models, len + 3, ",%s,", word + 7);
        key->models = models;
    } else {
        return gn_base_fail(
            GN_E_FORMAT, "found %s, expected admin, class=, requests=, tokens= or models=", word);
    }
    return GN_OK;
}

static gn_status read_line(gn_key_set *set, char *line)
{
    line[strcspn(line, "#\r")] = '\0';
    char *rest = NULL;
    const char *name = strtok_r(line, " \t", &rest);
    if (name == NULL) {
        return GN_OK;
    }
    GN_REQUIRE(name_ok(name, strlen(name)), GN_E_FORMAT,
               "found %s, expected a name of 1 to %u letters, digits and ._-", name, MAX_NAME);
    const char *hex = strtok_r(NULL, " \t", &rest);
    unsigned char hash[GN_KEY_HASH_BYTES];
    size_t n = 0;
    GN_REQUIRE(hex != NULL && strlen(hex) == 2 * (size_t)GN_KEY_HASH_BYTES &&
                   sodium_hex2bin(hash, sizeof hash, hex, strlen(hex), NULL, &n, NULL) == 0 &&
                   n == sizeof hash,
               GN_E_FORMAT, "key %s: found %s, expected a hash of %u hexadecimal digits", name,
               hex != NULL ? hex : "nothing", 2 * GN_KEY_HASH_BYTES);
    gn_key *key = NULL;
    GN_TRY(add(set, name, strlen(name), &key));
    memcpy(key->hash, hash, sizeof hash);
    for (const char *word; (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
        GN_TRY(read_word(set, key, word));
    }
    return GN_OK;
}

static gn_status read_text(const char *path, gn_buf *text)
{
    FILE *file = fopen(path, "re");
    GN_REQUIRE(file != NULL, GN_E_IO, "%s: cannot open: %s", path, strerror(errno));
    text->limit = MAX_FILE_BYTES;
    char piece[1024];
    gn_status status = GN_OK;
    for (size_t n; status == GN_OK && (n = fread(piece, 1, sizeof piece, file)) > 0;) {
        status = gn_buf_append(text, piece, n);
    }
    if (status == GN_OK && ferror(file) != 0) {
        status = gn_base_fail(GN_E_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    (void)fclose(file);
    return status;
}

static gn_status read_file(gn_key_set *set, const char *path)
{
    gn_buf text = {0};
    gn_status status = read_text(path, &text);
    char *at = text.data;
    for (unsigned number = 1; status == GN_OK && at != NULL; number++) {
        char *line = at;
        char *newline = strchr(line, '\n');
        at = newline != NULL ? newline + 1 : NULL;
        if (newline != NULL) {
            *newline = '\0';
        }
        status = read_line(set, line);
        if (status != GN_OK) {
            status = gn_base_fail_prefix(status, "%s: line %u: ", path, number);
        }
    }
    gn_buf_fini(&text);
    return status;
}

gn_status gn_keys_load(const char *path, const char *clear, gn_key_set **out)
{
    GN_REQUIRE(sodium_init() >= 0, GN_E_UNAVAILABLE, "libsodium: no randomness");
    gn_key_set *set = gn_calloc(1, sizeof *set);
    if (set == NULL) {
        return gn_alloc_failed();
    }
    atomic_init(&set->refs, 1);
    gn_status status = path != NULL ? read_file(set, path) : GN_OK;
    if (status == GN_OK && clear != NULL) {
        gn_key *key = NULL;
        status = add(set, "default", 7, &key);
        if (status == GN_OK) {
            hash_text(clear, strlen(clear), key->hash);
            key->admin = true;
            key->highest = GN_PRIORITY_REALTIME;
        }
    }
    if (status != GN_OK) {
        gn_keys_unref(set);
        return status;
    }
    *out = set;
    return GN_OK;
}

gn_key_set *gn_keys_ref(gn_key_set *set)
{
    atomic_fetch_add(&set->refs, 1);
    return set;
}

void gn_keys_unref(gn_key_set *set)
{
    if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < set->n; i++) {
        (void)pthread_mutex_destroy(&set->keys[i]->lock);
    }
    gn_arena_fini(&set->arena);
    gn_free(set);
}

size_t gn_keys_count(const gn_key_set *set)
{
    return set->n;
}

gn_key *gn_keys_find(gn_key_set *set, const char *text, size_t len)
{
    unsigned char hash[GN_KEY_HASH_BYTES];
    hash_text(text, len, hash);
    gn_key *found = NULL;
    for (size_t i = 0; i < set->n; i++) {
        if (sodium_memcmp(set->keys[i]->hash, hash, sizeof hash) == 0) {
            found = set->keys[i];
        }
    }
    return found;
}

/* --- what a key may do --- */

const char *gn_key_name(const gn_key *key)
{
    return key->name;
}

uint64_t gn_key_salt(const gn_key *key)
{
    return key->salt;
}

bool gn_key_is_admin(const gn_key *key)
{
    return key->admin;
}

bool gn_key_allows_model(const gn_key *key, const char *name)
{
    if (key->models == NULL) {
        return true;
    }
    size_t len = strlen(name);
    for (const char *at = key->models; (at = strstr(at, name)) != NULL; at++) {
        if (at[-1] == ',' && at[len] == ',') {
            return true;
        }
    }
    return false;
}

bool gn_key_allows_class(const gn_key *key, gn_priority priority)
{
    return priority >= key->highest;
}

static void refill(bucket *b, uint64_t now_ns)
{
    if (b->at_ns != 0 && now_ns > b->at_ns) {
        b->level += b->per_minute * ((double)(now_ns - b->at_ns) / 60e9);
        b->level = b->level < b->per_minute ? b->level : b->per_minute;
    }
    b->at_ns = now_ns;
}

/* Milliseconds until the bucket holds `least`. */
static uint32_t wait_ms(const bucket *b, double least)
{
    double ms = (least - b->level) / b->per_minute * 60e3;
    return ms < 1 ? 1 : (ms < 3.6e6 ? (uint32_t)ms + 1 : 3600000u);
}

bool gn_key_admit(gn_key *key, uint64_t now_ns, uint32_t *retry_ms)
{
    bool good = true;
    (void)pthread_mutex_lock(&key->lock);
    refill(&key->requests, now_ns);
    refill(&key->tokens, now_ns);
    if (key->requests.per_minute > 0 && key->requests.level < 1) {
        *retry_ms = wait_ms(&key->requests, 1);
        good = false;
    } else if (key->tokens.per_minute > 0 && key->tokens.level <= 0) {
        *retry_ms = wait_ms(&key->tokens, 1);
        good = false;
    } else {
        key->requests.level -= 1;
    }
    (void)pthread_mutex_unlock(&key->lock);
    return good;
}

void gn_key_charge(gn_key *key, uint64_t now_ns, uint64_t n_tokens)
{
    (void)pthread_mutex_lock(&key->lock);
    refill(&key->tokens, now_ns);
    key->tokens.level -= (double)n_tokens;
    (void)pthread_mutex_unlock(&key->lock);
}

gn_status gn_keys_new(const char *name, char *key, size_t key_cap, char *line, size_t line_cap)
{
    GN_REQUIRE(name_ok(name, strlen(name)), GN_E_ARG,
               "key name: found %s, expected 1 to %u letters, digits and ._-", name, MAX_NAME);
    GN_REQUIRE(sodium_init() >= 0, GN_E_UNAVAILABLE, "libsodium: no randomness");
    unsigned char secret[24];
    randombytes_buf(secret, sizeof secret);
    char hex[2 * sizeof secret + 1];
    (void)snprintf(key, key_cap, "gn-%s", sodium_bin2hex(hex, sizeof hex, secret, sizeof secret));
    unsigned char hash[GN_KEY_HASH_BYTES];
    hash_text(key, strlen(key), hash);
    char digits[2 * GN_KEY_HASH_BYTES + 1];
    (void)snprintf(line, line_cap, "%s %s", name,
                   sodium_bin2hex(digits, sizeof digits, hash, sizeof hash));
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(hex, sizeof hex);
    return GN_OK;
}
