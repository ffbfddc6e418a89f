/* dequant_tool TYPE: rows of blocks on standard input, their floats (raw, little-endian) on standard
 * output, by the version of the kernel that GANGLION_CPU allows. For comparison with other
 * implementations of the formats. Exit 1 where the type is unknown or the input ends inside a block. */
#include "base/attr.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct format {
    const char *type;
    size_t len;
    size_t bytes;
    gn_k_dequant_fn *fn;
} format;

static int convert(const format *f)
{
    uint8_t block[256];
    float out[256];
    for (;;) {
        size_t n = fread(block, 1, f->bytes, stdin);
        if (n == 0) {
            return fflush(stdout) == 0 ? 0 : 1;
        }
        if (n != f->bytes) {
            fprintf(stderr, "dequant_tool: input ends inside a block\n");
            return 1;
        }
        f->fn(block, f->len, out);
        if (fwrite(out, sizeof *out, f->len, stdout) != f->len) {
            return 1;
        }
    }
}

int main(int argc, char **argv)
{
    const gn_kernels *k = gn_kernels_get();
    const format formats[] = {
#define FORMAT_ROW(type, len, bytes, group, zero, has_min) {#type, len, bytes, k->dequant_##type},
        GN_PANEL_LIST(FORMAT_ROW)
#undef FORMAT_ROW
            {"f32", 1, 4, k->dequant_f32},
        {"f16", 1, 2, k->dequant_f16},
        {"bf16", 1, 2, k->dequant_bf16},
    };
    for (size_t i = 0; argc == 2 && i < GN_COUNTOF(formats); i++) {
        if (strcmp(argv[1], formats[i].type) == 0) {
            return convert(&formats[i]);
        }
    }
    fprintf(stderr, "usage: dequant_tool TYPE\n");
    return 1;
}
