/* A safetensors file of any bytes: opened or refused; what is opened is read to the last tensor. The bytes
 * are tried as they are, and once more as a header with the length in front and the data behind that the
 * fuzzer would have to guess. */
#include "fuzz.h"

#include "file/safetensors.h"

#include <stdlib.h>
#include <string.h>

static volatile unsigned char sink;

static void open_and_read(const void *data, size_t size)
{
    gn_safetensors *st = NULL;
    if (gn_safetensors_open_memory(data, size, &st) != GN_OK) {
        if (gn_error_message()[0] == '\0') {
            abort();
        }
        return;
    }
    for (size_t i = 0; i < gn_safetensors_n_tensors(st); i++) {
        const gn_safetensors_tensor *tensor = gn_safetensors_tensor_at(st, i);
        if (gn_safetensors_find(st, tensor->name) != &tensor->view) {
            abort();
        }
        const unsigned char *p = tensor->view.data;
        for (size_t k = 0; k < tensor->view.bytes; k++) {
            sink ^= p[k];
        }
    }
    for (size_t i = 0; i < gn_safetensors_n_metadata(st); i++) {
        const char *key = NULL;
        const char *value = NULL;
        gn_safetensors_metadata_at(st, i, &key, &value);
        sink ^= (unsigned char)(strlen(key) + strlen(value));
    }
    gn_safetensors_close(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_and_read(data, size);
    if (size > 8) {
        uint64_t length = size - 8;
        size_t n_data =
            data[0]; /* the first byte, which the length replaces, picks the data's size */
        unsigned char *copy = calloc(1, size + n_data);
        if (copy != NULL) {
            memcpy(copy, &length, sizeof length);
            memcpy(copy + 8, data + 8, size - 8);
            open_and_read(copy, size + n_data);
            free(copy);
        }
    }
    return 0;
}
