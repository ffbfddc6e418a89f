#include "serve/route.h"

const gn_route gn_serve_routes_dashboard[] = {{.method = NULL}};
