// Python face of the solvers of sparse linear models.
#include "arrays.hpp"
#include "linear_data.hpp"
#include "sublearn/solvers/linear/interior_point.hpp"
#include "sublearn/solvers/linear/settings.hpp"
#include "sublearn/solvers/linear/solver.hpp"
#include "sublearn/solvers/linear/stochastic_cd.hpp"

namespace sublearn::bindings {
namespace {

/// The start of a solve, as Python gives it.
struct Start {
  Vector<double> w;
  double intercept;
};

template <class Solver>
nb::tuple run(Solver& solver, const Start& start, bool has_active_set, Monitor& monitor) {
  solver.point().w.assign(start.w.data(), start.w.data() + start.w.size());
  solver.point().intercept = start.intercept;
  Status status;
  {
    nb::gil_scoped_release unlocked;
    status = solver.solve(monitor);
  }
  return nb::make_tuple(to_numpy(std::move(solver.point().w)), solver.point().intercept, status,
                        round_columns(solver.rounds(), has_active_set));
}

template <class Columns>
nb::tuple fit(const LinearData<Columns>& data, const SeparablePenalty& penalty,
              const LinearSettings& settings, const Start& start, Monitor& monitor) {
  check_penalty(penalty, data.problem().n_features());
  if (static_cast<offset_t>(start.w.size()) != data.problem().n_features()) {
    throw std::invalid_argument("start must have one weight per feature");
  }
  switch (settings.method) {
    case LinearMethod::cd1: {
      StochasticCd<Columns> solver(data.problem(), data.rows(), penalty, settings);
      return run(solver, start, false, monitor);
    }
    case LinearMethod::interior_point: {
      InteriorPoint<Columns> solver(data.problem(), penalty, settings);
      return run(solver, start, false, monitor);
    }
    default: {
      SparseLinearSolver<Columns> solver(data.problem(), penalty, settings);
      return run(solver, start, true, monitor);
    }
  }
}

template <class Columns>
void bind_fit(nb::module_& m) {
  m.def(
      "fit_linear",
      [](const LinearData<Columns>& data, Vector<double> l1, SeparablePenalty penalty,
         const LinearSettings& settings, Vector<double> start, double intercept, Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        return fit(data, penalty, settings, {start, intercept}, monitor);
      },
      "data"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "start"_a.noconvert(), "intercept"_a,
      "monitor"_a, "Solve; returns (w, intercept, status, rounds by column).");
}

void bind_settings(nb::module_& m) {
  nb::enum_<LinearMethod>(m, "LinearMethod", "See solvers/linear/settings.hpp.")
      .value("newton", LinearMethod::newton)
      .value("lhac", LinearMethod::lhac)
      .value("cd1", LinearMethod::cd1)
      .value("interior_point", LinearMethod::interior_point);
  nb::enum_<CurvatureBound>(m, "CurvatureBound",
                            "Bounds of CD1; see solvers/linear/stochastic_cd.hpp.")
      .value("overall", CurvatureBound::global)
      .value("coordinate", CurvatureBound::coordinate);
  nb::class_<LinearSettings>(m, "LinearSettings", "See solvers/linear/settings.hpp.")
      .def(nb::init<>())
      .def_rw("method", &LinearSettings::method)
      .def_rw("tol", &LinearSettings::tol)
      .def_rw("max_iter", &LinearSettings::max_iter)
      .def_rw("n_threads", &LinearSettings::n_threads)
      .def_rw("bound", &LinearSettings::bound)
      .def_rw("seed", &LinearSettings::seed);
}

}  // namespace

void bind_linear_solvers(nb::module_& m) {
  bind_settings(m);
  bind_fit<SparseColumns<float, index_t>>(m);
  bind_fit<SparseColumns<double, index_t>>(m);
  bind_fit<DenseColumns<float>>(m);
  bind_fit<DenseColumns<double>>(m);
}

}  // namespace sublearn::bindings
