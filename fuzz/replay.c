/* Runs every file named, or lying in a folder named, through a fuzz target once. Each file is read
 * into a block of exactly its size, so that a sanitizer sees a read past its end. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size != 0 ? size : 1);
    if (data == NULL || fread(data, 1, size, file) != size) {
        (void)fprintf(stderr, "%s: cannot read\n", path);
        return 1;
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

/* Adds the number of files replayed to *n. */
static int replay_folder(const char *folder, int *n)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failed |= replay_file(path);
        (*n)++;
    }
    (void)closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int n = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            failed |= replay_folder(argv[i], &n);
        } else {
            failed |= replay_file(argv[i]);
            n++;
        }
    }
    (void)printf("%d files replayed\n", n);
    /* An empty corpus tests nothing, which must not look like success. */
    return failed != 0 || n == 0 ? 1 : 0;
}
