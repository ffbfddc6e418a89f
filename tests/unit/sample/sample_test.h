/* What the tests of sample/ share. */
#ifndef GN_TEST_SAMPLE_H
#define GN_TEST_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "ganglion/sample.h"

static GN_UNUSED gn_sampler *make(const gn_sample_params *params, int32_t n_vocab)
{
    gn_sampler *sampler = NULL;
    assert_int_equal(gn_sampler_create(params, n_vocab, &sampler), GN_OK);
    return sampler;
}

static GN_UNUSED void accept_all(gn_sampler *sampler, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(gn_sampler_accept(sampler, ids[i], false), GN_OK);
    }
}

/* A fault for gn_alloc_set_fault(): the n-th allocation from now fails. */
static GN_UNUSED int fail_nth(void *ctx)
{
    int *left = ctx;
    return --*left == 0;
}

#endif
