/* Compiler attributes in one place. The only file outside os/, cpu/ and kernels/ that tests for a
 * compiler or an instruction set. */
#ifndef GN_BASE_ATTR_H
#define GN_BASE_ATTR_H

#if defined(__GNUC__)
#define GN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GN_COLD              __attribute__((cold))
#define GN_LIKELY(x)         __builtin_expect(!!(x), 1)
#define GN_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define GN_INLINE            static inline __attribute__((always_inline, unused))
#define GN_UNUSED            __attribute__((unused))
#define GN_ALIGNED(n)        __attribute__((aligned(n)))
#define GN_RESTRICT          __restrict
#define GN_WILL_READ(p)      __builtin_prefetch(p, 0)
#define GN_WILL_WRITE(p)     __builtin_prefetch(p, 1)
#else
#define GN_PRINTF(fmt, args)
#define GN_COLD
#define GN_LIKELY(x)   (x)
#define GN_UNLIKELY(x) (x)
#define GN_INLINE      static inline
#define GN_UNUSED
#define GN_ALIGNED(n)
#define GN_RESTRICT
#define GN_WILL_READ(p)  ((void)(p))
#define GN_WILL_WRITE(p) ((void)(p))
#endif

/* The instruction set this file is compiled for: always 0 or 1. */
#if defined(__x86_64__)
#define GN_ARCH_X86 1
#else
#define GN_ARCH_X86 0
#endif
#if defined(__aarch64__)
#define GN_ARCH_ARM64 1
#else
#define GN_ARCH_ARM64 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Ganglion reads model files in place and needs a little-endian machine"
#endif

#define GN_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

#endif
