#include "engine/pass.h"

#include "os/clock.h"

#include <math.h>

void gn_engine_pass(gn_model *model, size_t n, float *logits)
{
    gn_engine_tuner *tuner = &model->tuner;
    int few = n == 1 ? tuner->n_threads : model->n_threads_few;
    gn_net_set_threads(model->net, few, model->n_threads_many);
    if (n != 1 || tuner->done || !model->rows[0].wants_output ||
        gn_engine_panels_writing(model->panels)) {
        gn_net_forward(model->net, model->rows, n, logits, NULL);
        return;
    }
    uint64_t start = gn_os_now_ns();
    gn_net_forward(model->net, model->rows, n, logits, NULL);
    gn_engine_tuner_add(tuner, gn_os_now_ns() - start);
    atomic_store_explicit(&model->n_threads_one, tuner->n_threads, memory_order_relaxed);
}

/* A sum of x·0 is 0 unless one x is NaN or infinite. */
bool gn_engine_all_finite(const float *x, size_t n)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * 0.0f;
    }
    return !isnan(sum);
}
