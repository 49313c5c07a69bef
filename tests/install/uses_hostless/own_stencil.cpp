// A stencil of one's own: the program of docs/howto/ones-own-stencil.md, with a look at the cells.
#include <cstdio>
#include <cstring>
#include <hostless/stencil/body.hpp>
#include <hostless/stencil/stencil.hpp>
#include <vector>

using namespace hostless;

// Diffusion whose conductivity differs from cell to cell: du/dt = div(c grad u), one explicit step.
struct Diffusion {
  static constexpr int axes = 2, radius = 1, fields = 1, coefficients = 1;
  double k;  // dt / dx^2
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    auto const flux = [&](int y, int x) {  // from the neighbour there; array 1 is the conductivity
      return T(0.5) * (u.of(1, 0, 0) + u.of(1, y, x)) * (u(y, x) - u(0, 0));
    };
    return u(0, 0) + T(k) * ((flux(0, -1) + flux(0, 1)) + (flux(-1, 0) + flux(1, 0)));
  }
};

int main() {
  constexpr std::int64_t ny = 61, nx = 83, steps = 40;
  std::vector<double> u(ny * nx), conductivity(ny * nx);
  for (std::int64_t i = 0; i < ny * nx; ++i) {
    u[i] = i / nx > 20 && i % nx < 30 ? 1.0 : 0.0;
    conductivity[i] = 0.5 + 0.01 * static_cast<double>(i % nx);
  }
  std::vector<double> alone = u;

  Grid grid;
  grid.extent = {ny, 1, nx};  // two axes: {y, 1, x}
  grid.boundary = {GridBoundary::neumann, GridBoundary::neumann, GridBoundary::periodic};
  auto const seen = [&](std::vector<double>& cells) { return CellArray{cells.data(), {nx * 8, nx * 8, 8}}; };
  auto const run = [&](int ranks, std::vector<double>& cells) {
    bool done = true;
    run_with_threads_transport(ranks, [&](Transport& transport) {
      StencilRun stencil(transport, grid, kernel_of<double>(Diffusion{0.1}, "diffusion"));
      stencil.give(0, seen(cells));
      stencil.give(1, seen(conductivity));
      StencilResult const result = stencil.run(steps);
      transport.group().barrier();  // nobody reads the old cells any more
      stencil.take(0, seen(cells));
      if (transport.group().rank() == 0) done = result.status == StencilStatus::steps_done;
    });
    return done;
  };
  if (!run(3, u) || !run(1, alone)) return 1;

  double before = 0, after = 0;  // insulated ends lose nothing
  for (std::int64_t i = 0; i < ny * nx; ++i) before += i / nx > 20 && i % nx < 30 ? 1.0 : 0.0, after += u[i];
  bool const same = std::memcmp(u.data(), alone.data(), u.size() * sizeof(double)) == 0;
  std::printf("of %.0f there is %.6f left, cells of 3 ranks are %s those of one\n", before, after,
              same ? "bit for bit" : "not");
  return same && after > before - 1e-9 && after < before + 1e-9 && u[20 * nx] > 0.01 ? 0 : 1;
}
