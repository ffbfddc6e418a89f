#include "model/rope.h"

#include "base/alloc.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* The dimension whose wavelength makes `rotations` turns within the original context. */
static double correction_dim(double rotations, uint32_t n_rot, const gn_rope_params *p)
{
    return (double)n_rot * log((double)p->n_ctx_orig / (rotations * 2.0 * pi)) /
           (2.0 * log((double)p->base));
}

/* YaRN, section 3.2: low dimensions keep their frequency, high ones are interpolated, a ramp between. */
static void yarn(float *inv_freq, uint32_t n_rot, const gn_rope_params *p)
{
    double low = correction_dim((double)p->beta_fast, n_rot, p);
    double high = correction_dim((double)p->beta_slow, n_rot, p);
    if (p->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0.0 ? low : 0.0;
    high = high < (double)n_rot - 1.0 ? high : (double)n_rot - 1.0;
    double span = high - low > 0.001 ? high - low : 0.001;
    for (uint32_t i = 0; i < n_rot / 2; i++) {
        double ramp = ((double)i - low) / span;
        ramp = ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp;
        double keep = 1.0 - ramp;
        double f = (double)inv_freq[i];
        inv_freq[i] = (float)(f / (double)p->factor * (1.0 - keep) + f * keep);
    }
}

/* Llama 3.1: wavelengths beyond n_ctx_orig / low_freq_factor are divided by the factor, those below
 * n_ctx_orig / high_freq_factor are kept, linear between in 1 / wavelength. */
static void llama3(float *inv_freq, uint32_t n_pairs, const gn_rope_params *p)
{
    double low = (double)p->low_freq_factor;
    double high = (double)p->high_freq_factor;
    for (uint32_t i = 0; i < n_pairs; i++) {
        double f = (double)inv_freq[i];
        double turns = (double)p->n_ctx_orig * f / (2.0 * pi);
        double keep = (turns - low) / (high - low);
        keep = keep < 0.0 ? 0.0 : keep > 1.0 ? 1.0 : keep;
        inv_freq[i] = (float)((1.0 - keep) * f / (double)p->factor + keep * f);
    }
}

static float default_mscale(const gn_rope_params *p, uint32_t n_ctx)
{
    if (p->attn_factor > 0.0f && p->scaling == GN_ROPE_SCALING_LONGROPE) {
        return p->attn_factor;
    }
    if (p->scaling == GN_ROPE_SCALING_YARN) {
        double m = p->factor <= 1.0f ? 1.0 : 0.1 * log((double)p->factor) + 1.0;
        return p->attn_factor > 0.0f ? p->attn_factor : (float)m;
    }
    if (p->scaling == GN_ROPE_SCALING_LONGROPE) {
        double s = p->factor > 1.0f ? (double)p->factor : (double)n_ctx / (double)p->n_ctx_orig;
        return s <= 1.0 ? 1.0f : (float)sqrt(1.0 + log(s) / log((double)p->n_ctx_orig));
    }
    return 1.0f;
}

/* Divide by factors from the file or from config.json; NULL both: nothing to do. */
static gn_status divide(float *inv_freq, uint32_t n, const float *factors, const json_t *array)
{
    if (factors == NULL && array == NULL) {
        return GN_OK;
    }
    GN_REQUIRE(factors != NULL || json_array_size(array) == n, GN_E_FORMAT,
               "RoPE factors: found %zu, expected %u", json_array_size(array), n);
    for (uint32_t i = 0; i < n; i++) {
        double f =
            factors != NULL ? (double)factors[i] : json_number_value(json_array_get(array, i));
        GN_REQUIRE(isfinite(f) && f > 0.0, GN_E_FORMAT,
                   "RoPE factor %u: found %g, expected above 0", i, f);
        inv_freq[i] = (float)((double)inv_freq[i] / f);
    }
    return GN_OK;
}

static gn_status fill(float *inv_freq, const gn_rope_params *p, uint32_t n_rot,
                      const float *factors, const json_t *array)
{
    uint32_t n = n_rot / 2;
    for (uint32_t i = 0; i < n; i++) {
        inv_freq[i] = (float)(1.0 / pow((double)p->base, 2.0 * (double)i / (double)n_rot));
    }
    switch (p->scaling) {
    case GN_ROPE_SCALING_NONE:
    case GN_ROPE_SCALING_LONGROPE: break;
    case GN_ROPE_SCALING_LINEAR:
        for (uint32_t i = 0; i < n; i++) {
            inv_freq[i] /= p->factor;
        }
        break;
    case GN_ROPE_SCALING_YARN: yarn(inv_freq, n_rot, p); break;
    case GN_ROPE_SCALING_LLAMA3: llama3(inv_freq, n, p); break;
    }
    return divide(inv_freq, n, factors, array);
}

gn_status gn_rope_init(gn_rope *rope, const gn_rope_params *p, uint32_t n_rot, uint32_t n_ctx,
                       const float *factors, const float *factors_long)
{
    *rope = (gn_rope){.n_pairs = n_rot / 2, .mscale = default_mscale(p, n_ctx)};
    bool longrope = p->scaling == GN_ROPE_SCALING_LONGROPE || factors_long != NULL;
    rope->inv_freq = gn_alloc_array(rope->n_pairs, sizeof(float));
    rope->inv_freq_long = longrope ? gn_alloc_array(rope->n_pairs, sizeof(float)) : NULL;
    if (rope->inv_freq == NULL || (longrope && rope->inv_freq_long == NULL)) {
        return gn_alloc_failed();
    }
    GN_TRY(fill(rope->inv_freq, p, n_rot, factors, p->short_factor));
    if (longrope) {
        GN_TRY(fill(rope->inv_freq_long, p, n_rot, factors_long, p->long_factor));
    }
    return GN_OK;
}

void gn_rope_fini(gn_rope *rope)
{
    if (rope != NULL) {
        gn_free(rope->inv_freq);
        gn_free(rope->inv_freq_long);
        *rope = (gn_rope){0};
    }
}

void gn_rope_angles(const gn_rope *rope, uint32_t pos, bool long_context, float *cos_out,
                    float *sin_out)
{
    const float *inv_freq =
        long_context && rope->inv_freq_long != NULL ? rope->inv_freq_long : rope->inv_freq;
    for (uint32_t i = 0; i < rope->n_pairs; i++) {
        float angle = (float)pos * inv_freq[i];
        cos_out[i] = (float)cos((double)angle) * rope->mscale;
        sin_out[i] = (float)sin((double)angle) * rope->mscale;
    }
}
