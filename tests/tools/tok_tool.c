/* Drives a tokenizer from a test: strings in, ids out, one process for many strings.
 *
 *   tok_tool MODEL [nospecial] [bos]
 *
 * Standard input: requests of a u32 little-endian length and that many bytes of text. Standard output: for
 * each a u32 count and the ids as i32; a count of 2^32 - 1 stands for an error, whose line goes to
 * standard error. A length with the top bit set asks for decoding instead: that many ids follow, and the
 * answer is a u32 length and the text; bit 30 asks for the streaming detokenizer. */
#include "base/alloc.h"
#include "base/buf.h"
#include "file/source.h"
#include "os/clock.h"
#include "text/detok.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECODE 0x80000000u
#define STREAM 0x40000000u
#define ERROR  UINT32_MAX

static int put_u32(uint32_t v)
{
    return fwrite(&v, sizeof v, 1, stdout) == 1 ? 0 : 1;
}

static int put_error(void)
{
    fprintf(stderr, "%s\n", gn_error_message());
    return put_u32(ERROR);
}

static int encode(const gn_tokenizer *t, const char *text, size_t len, unsigned flags)
{
    gn_token_list ids = {0};
    int rc;
    if (gn_tokenizer_encode(t, text, len, flags, &ids) != GN_OK) {
        rc = put_error();
    } else {
        rc = put_u32((uint32_t)ids.n);
        rc |= ids.n != 0 && fwrite(ids.ids, sizeof *ids.ids, ids.n, stdout) != ids.n;
    }
    gn_token_list_fini(&ids);
    return rc;
}

static gn_status stream(const gn_tokenizer *t, const int32_t *ids, size_t n, bool special,
                        gn_buf *out)
{
    gn_detok d;
    gn_detok_init(&d, t, special, true);
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < n; i++) {
        status = gn_detok_push(&d, ids[i], out);
    }
    if (status == GN_OK) {
        status = gn_detok_flush(&d, out);
    }
    gn_detok_fini(&d);
    return status;
}

static int decode(const gn_tokenizer *t, const int32_t *ids, size_t n, bool streaming, bool special)
{
    gn_buf text = {0};
    gn_status status = streaming ? stream(t, ids, n, special, &text)
                                 : gn_tokenizer_decode(t, ids, n, special, &text);
    int rc;
    if (status != GN_OK) {
        rc = put_error();
    } else {
        rc = put_u32((uint32_t)text.len);
        rc |= text.len != 0 && fwrite(text.data, 1, text.len, stdout) != text.len;
    }
    gn_buf_fini(&text);
    return rc;
}

static int serve(const gn_tokenizer *t, unsigned flags)
{
    uint32_t head;
    while (fread(&head, sizeof head, 1, stdin) == 1) {
        size_t n = head & ~(DECODE | STREAM);
        size_t bytes = head & DECODE ? 4 * n : n;
        char *data = malloc(bytes + 1);
        if (data == NULL || fread(data, 1, bytes, stdin) != bytes) {
            free(data);
            return 1;
        }
        int rc = head & DECODE ? decode(t, (const int32_t *)(const void *)data, n,
                                        (head & STREAM) != 0, (flags & GN_ENCODE_SPECIAL) != 0)
                               : encode(t, data, n, flags);
        free(data);
        if (rc != 0) {
            return 1;
        }
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned flags = GN_ENCODE_SPECIAL;
    for (int i = 2; i < argc; i++) {
        flags &= strcmp(argv[i], "nospecial") == 0 ? ~GN_ENCODE_SPECIAL : ~0u;
        flags |= strcmp(argv[i], "bos") == 0 ? GN_ENCODE_BOS : 0u;
    }
    gn_source *source = NULL;
    gn_tokenizer *t = NULL;
    if (argc < 2 || gn_source_open(argv[1], &source) != GN_OK) {
        fprintf(stderr, "%s\n", gn_error_message());
        return 3;
    }
    uint64_t start = gn_os_now_ns();
    gn_status status = gn_tokenizer_create(source, &t);
    if (getenv("TOK_TOOL_TIMES") != NULL) {
        fprintf(stderr, "created in %.1f ms\n", (double)(gn_os_now_ns() - start) * 1e-6);
    }
    gn_source_close(source);
    if (status != GN_OK) {
        fprintf(stderr, "%s\n", gn_error_message());
        return 3;
    }
    int rc = serve(t, flags);
    gn_tokenizer_destroy(t);
    return rc;
}
