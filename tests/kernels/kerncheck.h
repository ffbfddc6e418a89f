/* The frame that kernel checks run in: rows of the op table, guarded memory, comparison, timing. */
#ifndef GN_TESTS_KERNCHECK_H
#define GN_TESTS_KERNCHECK_H

#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void kc_fn(void); /* any kernel; cast back to its type to call it */

/* One row of the op table: a variant (or "ref" itself) beside the reference. */
typedef struct kc_row {
    const char *op;
    const char *variant;
    gn_cpu_level level;
    const char *exactness; /* "EXACT" or "SAME" */
    kc_fn *ref;
    kc_fn *fn;
} kc_row;

/* How the ops of a family are checked. `op` is a name, or a prefix that ends in '*'; `kind` tells a
 * shared function which one it is. */
typedef struct kc_checker {
    const char *op;
    bool (*check)(const kc_row *row);
    void (*bench)(const kc_row *row);
} kc_checker;

/* Families: each check_<family>.c defines its list, ended by a row whose op is NULL. */
extern const kc_checker kc_act_checkers[];
extern const kc_checker kc_attention_checkers[];
extern const kc_checker kc_dot_checkers[];
extern const kc_checker kc_norm_checkers[];
extern const kc_checker kc_packed_checkers[];
extern const kc_checker kc_paged_checkers[];
extern const kc_checker kc_quant_checkers[];
extern const kc_checker kc_rope_checkers[];
extern const kc_checker kc_vec_checkers[];

/* Random numbers from the seed that was printed. */
uint32_t kc_u32(void);
uint32_t kc_below(uint32_t n); /* 0 .. n-1 */
float kc_uniform(void);        /* -1 .. 1 */
void kc_fill_bytes(void *p, size_t n);
void kc_fill_uniform(float *p, size_t n);
/* Ordinary values with zeros, denormals, huge values, infinities and NaNs among them. */
void kc_fill_special(float *p, size_t n);
/* Ordinary values of several sizes, zeros and denormals; with `special` also, now and then, a huge
 * value, an infinity or a NaN, so rarely that long sums do not all end as NaN. */
void kc_fill_sparse(float *p, size_t n, bool special);

/* `bytes` bytes that end at a page that may not be touched, with a filled margin in front that
 * kc_release() checks; so the address is as odd as the size. Filled with 0xa5. Exits where the
 * system gives no memory. */
void *kc_alloc(size_t bytes);
/* Check the margins of all memory from kc_alloc() and give it back; false if one was written to. */
bool kc_release(const kc_row *row);

/* How many elements a matrix takes whose rows of `used` elements are `stride` apart. */
size_t kc_strided(size_t n_rows, size_t stride, size_t used);
/* n floats for a bench, 64-byte aligned, filled; free() them. Exits where there is no memory. */
float *kc_bench_floats(size_t n);

/* Report a difference on stderr; returns false. */
bool kc_differs(const kc_row *row, const char *fmt, ...) GN_PRINTF(2, 3);
/* Compare bit for bit (two NaNs count as equal); report the first difference. */
bool kc_same_f32(const kc_row *row, const char *what, const float *found, const float *expected,
                 size_t n);
bool kc_same_bytes(const kc_row *row, const char *what, const void *found, const void *expected,
                   size_t n);

/* Time call(ctx) and print a line: bytes and macs are those of one call, 0 to leave them out. */
void kc_time(const kc_row *row, const char *label, void (*call)(void *ctx), void *ctx, double bytes,
             double macs);

/* The same for work counted in elements: prints cycles an element. */
void kc_time_elements(const kc_row *row, const char *label, void (*call)(void *ctx), void *ctx,
                      double elements);

#endif
