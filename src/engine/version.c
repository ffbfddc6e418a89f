#include "ganglion/model.h"

const char *gn_version(void)
{
    return GN_VERSION_STRING;
}

const char *gn_version_commit(void)
{
    return GN_COMMIT_STRING;
}
