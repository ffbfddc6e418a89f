/* The smallest use of the library: open a model, continue a text, print it as it comes.
 *
 *     cc minimal.c $(pkg-config --cflags --libs ganglion) -o minimal
 *     ./minimal model.gguf "Once upon a time" */
#include <ganglion/ganglion.h>

#include <stdio.h>
#include <string.h>

static bool show(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    return fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: minimal MODEL TEXT\n");
        return 2;
    }
    gn_model *model = NULL;
    gn_session *session = NULL;
    gn_sampler *sampler = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    gn_status status = gn_model_open(argv[1], NULL, &model);
    if (status == GN_OK) {
        status = gn_model_tokenize(model, argv[2], strlen(argv[2]), GN_TOKENIZE_BOS, &ids, &n);
    }
    if (status == GN_OK) {
        status = gn_session_create(model, NULL, &session);
    }
    if (status == GN_OK) {
        status = gn_session_set(session, ids, n, NULL);
    }
    if (status == GN_OK) {
        gn_sample_params params = gn_sample_defaults();
        params.temperature = 0; /* greedy: the likeliest token each time */
        status = gn_sampler_create(&params, gn_model_get_info(model).n_vocab, &sampler);
    }
    if (status == GN_OK) {
        gn_generate_options options = {.max_tokens = 32, .on_text = show};
        status = gn_generate(session, sampler, &options, NULL);
        putchar('\n');
    }
    if (status != GN_OK) {
        fprintf(stderr, "minimal: %s\n", gn_error_message());
    }
    gn_sampler_destroy(sampler);
    gn_session_destroy(session);
    gn_release(ids);
    gn_model_close(model);
    return status == GN_OK ? 0 : 1;
}
