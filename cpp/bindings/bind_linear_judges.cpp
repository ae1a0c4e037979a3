// Python face of the solvers of linear models that look at every feature: CD1 and interior point.
#include "arrays.hpp"
#include "linear_data.hpp"
#include "sublearn/solvers/interior_point.hpp"
#include "sublearn/solvers/stochastic_cd.hpp"

namespace sublearn::bindings {
namespace {

nb::dict by_column(const std::vector<LinearRound>& rounds) {
  using Row = LinearRound;
  nb::dict out;
  out["seconds"] = column(rounds, &Row::seconds);
  out["objective"] = column(rounds, &Row::objective);
  out["gap"] = column(rounds, &Row::gap);
  out["violation"] = column(rounds, &Row::violation);
  out["nnz_primal"] = column(rounds, &Row::n_nonzero);
  out["n_passes"] = column(rounds, &Row::n_passes);
  out["work"] = column(rounds, &Row::work);
  return out;
}

template <class Solver>
nb::tuple run(Solver& solver, Vector<double> start, double intercept, Monitor& monitor) {
  if (start.size() != solver.point().w.size()) {
    throw std::invalid_argument("start must have one weight per feature");
  }
  solver.point().w.assign(start.data(), start.data() + start.size());
  solver.point().intercept = intercept;
  LinearEnd end;
  {
    nb::gil_scoped_release unlocked;
    end = solver.solve(monitor);
  }
  return nb::make_tuple(to_numpy(std::move(solver.point().w)), solver.point().intercept, end,
                        by_column(solver.certificate.rounds));
}

template <class Columns>
void bind_solvers(nb::module_& m) {
  using Data = LinearData<Columns>;
  m.def(
      "fit_stochastic_cd",
      [](const Data& data, Vector<double> l1, SeparablePenalty penalty,
         const StochasticCdSettings& settings, Vector<double> start, double intercept,
         Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        check_penalty(penalty, data.problem().n_features());
        StochasticCd<Columns> solver(data.problem(), data.rows(), penalty, settings);
        return run(solver, start, intercept, monitor);
      },
      "data"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "start"_a.noconvert(), "intercept"_a,
      "monitor"_a, "CD1; returns (w, intercept, end, rounds by column).");
  m.def(
      "fit_interior_point",
      [](const Data& data, Vector<double> l1, SeparablePenalty penalty,
         const InteriorPointSettings& settings, Vector<double> start, double intercept,
         Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        check_penalty(penalty, data.problem().n_features());
        InteriorPoint<Columns> solver(data.problem(), penalty, settings);
        return run(solver, start, intercept, monitor);
      },
      "data"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "start"_a.noconvert(), "intercept"_a,
      "monitor"_a, "Interior point; returns (w, intercept, end, rounds by column).");
}

void bind_settings(nb::module_& m) {
  nb::enum_<LinearEnd>(m, "LinearEnd", "Why a solver of linear models stopped.")
      .value("converged", LinearEnd::converged)
      .value("max_iter", LinearEnd::max_iter)
      .value("stopped", LinearEnd::stopped)
      .value("stalled", LinearEnd::stalled);
  nb::enum_<CurvatureBound>(m, "CurvatureBound", "Bounds of CD1; see solvers/stochastic_cd.hpp.")
      .value("overall", CurvatureBound::global)
      .value("coordinate", CurvatureBound::coordinate);
  nb::class_<StochasticCdSettings>(m, "StochasticCdSettings", "See solvers/stochastic_cd.hpp.")
      .def(nb::init<>())
      .def_rw("bound", &StochasticCdSettings::bound)
      .def_rw("tol", &StochasticCdSettings::tol)
      .def_rw("max_iter", &StochasticCdSettings::max_iter)
      .def_rw("n_threads", &StochasticCdSettings::n_threads)
      .def_rw("seed", &StochasticCdSettings::seed);
  nb::class_<InteriorPointSettings>(m, "InteriorPointSettings", "See solvers/interior_point.hpp.")
      .def(nb::init<>())
      .def_rw("tol", &InteriorPointSettings::tol)
      .def_rw("max_iter", &InteriorPointSettings::max_iter)
      .def_rw("most_direct", &InteriorPointSettings::most_direct)
      .def_rw("forcing", &InteriorPointSettings::forcing)
      .def_rw("shrink", &InteriorPointSettings::shrink)
      .def_rw("n_threads", &InteriorPointSettings::n_threads);
}

}  // namespace

void bind_linear_judges(nb::module_& m) {
  bind_settings(m);
  bind_solvers<SparseColumns<float, index_t>>(m);
  bind_solvers<SparseColumns<double, index_t>>(m);
  bind_solvers<DenseColumns<float>>(m);
  bind_solvers<DenseColumns<double>>(m);
}

}  // namespace sublearn::bindings
