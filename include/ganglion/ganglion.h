/* The whole public API. */
#ifndef GANGLION_H
#define GANGLION_H

#include "ganglion/model.h"
#include "ganglion/sample.h"
#include "ganglion/session.h"
#include "ganglion/status.h"

#endif
