/* The whole public API. Until version 1.0 structs may gain members: rebuild against the headers in use. */
#ifndef GANGLION_H
#define GANGLION_H

#include "ganglion/grammar.h"
#include "ganglion/model.h"
#include "ganglion/sample.h"
#include "ganglion/session.h"
#include "ganglion/status.h"

#endif
