/* Models known by name, with the digests of their files. */
#ifndef GN_CLI_CATALOGUE_H
#define GN_CLI_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct gn_cli_catalogue_file {
    const char *remote; /* path in the hub's repository */
    const char *local;  /* path in the model's folder */
    uint64_t bytes;
    const char *sha256;
} gn_cli_catalogue_file;

typedef struct gn_cli_catalogue_entry {
    const char *name;
    const char *summary;
    const char *repository; /* ORG/REPO on the hub */
    const gn_cli_catalogue_file
        *files; /* in the order to fetch: what makes a folder a model last */
    size_t n_files;
} gn_cli_catalogue_entry;

extern const gn_cli_catalogue_entry gn_cli_catalogue[];
extern const size_t gn_cli_n_catalogue;

/* NULL where the name is not known. */
const gn_cli_catalogue_entry *gn_cli_catalogue_find(const char *name);

#endif
