/* Products of panels with AMX: a panel's group is a B tile as it lies, 16 rows of activations are an A tile,
 * and one instruction gives the 256 exact integer sums of the group. The floats follow in the order of all
 * other versions, so the bits are theirs.
 *
 * What costs is the way from integers to floats: through memory, then three or four vector instructions per
 * 16 sums. Tiles are not renamed, and a product takes some 50 cycles, so a tile that is used again at once
 * waits for all of it: four C tiles go round, each stored two groups after it was made and read from the
 * first-level cache one group later. Codes with a zero are made signed once for all rows. Rows beyond a
 * multiple of 16 go through VNNI. So do groups of 16, where a product takes as long for half the work.
 *
 * A call configures the tiles of its thread and releases them, so that no state outlives it. */
#include "kernels/dot/vnni.h"

#include <assert.h>
#include <immintrin.h>

enum {
    GROUP = 32,
    TILE_ROWS = 16,
    SPAN = 256, /* elements whose signed codes are kept at a time */
    MAX_GROUPS = SPAN / GROUP,
    N_TILES = 4, /* C tiles, and places in memory for them */
    STORED = 1,  /* groups that a tile is stored ahead of its use */
    MADE = 3     /* groups that it is made ahead */
};

/* Palette 1: bytes of a tile's row at 16, rows at 48. Static and constant because the intrinsic of gcc 12
 * claims to read 8 bytes only, and stores to the rest of a local would be dropped. Tiles 0 to 3 are C, 4 and
 * 5 A, 6 and 7 B. */
static const uint8_t config[64] GN_ALIGNED(64) = {
    [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 32,
    [26] = 32, [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16,
    [51] = 16, [52] = 16, [53] = 16, [54] = 8,  [55] = 8};

typedef int32_t tile[TILE_ROWS][16] GN_ALIGNED(64);

/* The activations' sums of one span times their scales, by row and group. */
static_assert(MAX_GROUPS == 8, "a row of terms is stored as eight floats");
typedef float terms[TILE_ROWS][MAX_GROUPS];

#define MULTIPLY(c, a, b)                                                                          \
    do {                                                                                           \
        _tile_loadd(a, rows, ld);                                                                  \
        _tile_loadd(b, codes, 64);                                                                 \
        _tile_zero(c);                                                                             \
        if (is_signed) {                                                                           \
            _tile_dpbssd(c, a, b);                                                                 \
        } else {                                                                                   \
            _tile_dpbsud(c, a, b);                                                                 \
        }                                                                                          \
    } while (0)

/* Tile g mod 4 = the sums of group g. Names of tiles are part of the instructions. */
GN_INLINE void make_tile(size_t g, int is_signed, const int8_t *rows, size_t ld,
                         const uint8_t *codes)
{
    switch (g % N_TILES) {
    case 0: MULTIPLY(0, 4, 6); break;
    case 1: MULTIPLY(1, 5, 7); break;
    case 2: MULTIPLY(2, 4, 6); break;
    default: MULTIPLY(3, 5, 7); break;
    }
}

GN_INLINE void store_tile(size_t g, tile *tiles)
{
    switch (g % N_TILES) {
    case 0: _tile_stored(0, tiles[0], 64); break;
    case 1: _tile_stored(1, tiles[1], 64); break;
    case 2: _tile_stored(2, tiles[2], 64); break;
    default: _tile_stored(3, tiles[3], 64); break;
    }
}

GN_INLINE void fill_terms(size_t n_groups, activations a, terms t)
{
    for (size_t i = 0; i < TILE_ROWS; i++) {
        const __m512i sums = group_sums(GROUP, n_groups, a.sum + i * (a.ld / 16));
        const __m512 as = group_scales(GROUP, n_groups, a.scale + i * (a.ld / 32));
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), as);
        _mm256_storeu_ps(t[i], _mm512_castps512_ps256(scaled));
    }
}

/* acc += the sums of one group, as floats. as: its scales, ld floats apart; terms: likewise. */
GN_INLINE void add_group(tile sums, const float *scale, const float *min, const float *as,
                         size_t ld, const float *term, __m512 acc[TILE_ROWS])
{
    const __m512 s = _mm512_loadu_ps(scale);
    const __m512 mins = min != NULL ? _mm512_loadu_ps(min) : _mm512_setzero_ps();
#pragma GCC unroll 16
    for (size_t i = 0; i < TILE_ROWS; i++) {
        const __m512 isum = _mm512_cvtepi32_ps(_mm512_load_si512(sums[i]));
        acc[i] = _mm512_fmadd_ps(isum, _mm512_mul_ps(s, _mm512_set1_ps(as[i * ld])), acc[i]);
        if (min != NULL) {
            acc[i] = _mm512_fmadd_ps(_mm512_set1_ps(term[i * MAX_GROUPS]), mins, acc[i]);
        }
    }
}

/* Two of the 16 rows that come next, the part of their span. Of all rows a span is short, so that the
 * processor does not foresee them. */
GN_INLINE void ask_for_next(size_t step, activations a)
{
    for (size_t i = 2 * step; i < 2 * step + 2; i++) {
        const char *next = (const char *)(a.q + (TILE_ROWS + i % TILE_ROWS) * a.ld);
        for (size_t line = 0; line < SPAN; line += 64) {
            _mm_prefetch(next + line, _MM_HINT_T0);
        }
    }
}

/* 16 rows with n_groups groups of the panel, `codes` being theirs. */
GN_INLINE void tile_rows(int has_min, const uint8_t *codes, const float *scale, const float *min,
                         size_t n_groups, activations a, results out)
{
    tile tiles[N_TILES];
    terms t;
    __m512 acc[TILE_ROWS];
#pragma GCC unroll 16
    for (size_t i = 0; i < TILE_ROWS; i++) {
        acc[i] = out.resume ? _mm512_loadu_ps(out.y + i * out.ld) : _mm512_setzero_ps();
    }
    if (has_min) {
        fill_terms(n_groups, a, t);
    }
    for (size_t step = 0; step < n_groups + MADE; step++) {
        if (step < n_groups) {
            make_tile(step, !has_min, a.q + step * GROUP, a.ld, codes + step * GROUP * 16);
        }
        ask_for_next(step, a);
        const size_t stored = step - (MADE - STORED); /* wraps before there is one */
        if (stored < n_groups) {
            store_tile(stored, tiles);
        }
        const size_t g = step - MADE;
        if (g < n_groups) {
            add_group(tiles[g % N_TILES], scale + g * 16, has_min ? min + g * 16 : NULL,
                      a.scale + g, a.ld / 32, &t[0][g], acc);
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < TILE_ROWS; i++) {
        _mm512_storeu_ps(out.y + i * out.ld, acc[i]);
    }
}

/* A multiple of 16 rows. */
GN_INLINE void tile_panel(int has_min, const panel *p, size_t m, activations a, results out)
{
    uint8_t kept[SPAN * 16] GN_ALIGNED(64);
    const __m512i zero = _mm512_set1_epi8((char)p->zero);
    _tile_loadconfig(config);
    for (size_t first = 0; first < p->k; first += SPAN) {
        const size_t n = p->k - first < SPAN ? p->k - first : SPAN;
        const uint8_t *codes = p->q + first * 16;
        if (!has_min) {
            for (size_t i = 0; i < n * 16; i += 64) {
                const __m512i four = _mm512_loadu_si512(codes + i);
                _mm512_store_si512(kept + i, _mm512_sub_epi8(four, zero));
            }
            codes = kept;
        }
        const float *scale = p->scale + first / GROUP * 16;
        const float *min = has_min ? p->min + first / GROUP * 16 : NULL;
        for (size_t i = 0; i < m; i += TILE_ROWS) {
            const activations part = {a.q + i * a.ld + first, a.scale + (i * a.ld + first) / 32,
                                      a.sum + (i * a.ld + first) / 16, a.ld};
            const results to = {out.y + i * out.ld, out.ld, out.resume || first != 0};
            tile_rows(has_min, codes, scale, min, n / GROUP, part, to);
        }
    }
    _tile_release();
}

GN_INLINE void dot_panel(int has_min, const panel *p, size_t m, activations a, results out)
{
    const size_t tiled = p->k == 0 ? 0 : m / TILE_ROWS * TILE_ROWS;
    if (tiled != 0) {
        tile_panel(has_min, p, tiled, a, out);
    }
    if (tiled != m) {
        a.q += tiled * a.ld;
        a.scale += tiled * (a.ld / 32);
        a.sum += tiled * (a.ld / 16);
        out.y += tiled * out.ld;
        vnni_panel(GROUP, has_min, p, m - tiled, a, out);
    }
}

GN_INLINE void dot_panel_any(size_t group, const panel *p, size_t m, activations a, results out)
{
    (void)group;
    if (p->min != NULL) {
        dot_panel(1, p, m, a, out);
    } else {
        dot_panel(0, p, m, a, out);
    }
}

GN_DOT_PANEL_ENTRY(gn_k_dot_panel_g32_x86_amx, GROUP)
