#pragma once

/// Everything a program needs: matrices, solvers, stencils, exchanges, queues, transports, files and
/// generated problems.

#include "hostless/base/error.hpp"
#include "hostless/base/status.hpp"
#include "hostless/exchange/gpu_exchange.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "hostless/files/vector_file.hpp"
#include "hostless/machine/nodes.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/queue/queue.hpp"
#include "hostless/solve/matrix.hpp"
#include "hostless/solve/solver.hpp"
#include "hostless/solve/symmetry.hpp"
#include "hostless/stencil/body.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/transport.hpp"
