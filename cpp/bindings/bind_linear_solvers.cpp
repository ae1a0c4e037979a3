// Python face of the solvers of sparse linear models.
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "linear_data.hpp"
#include "sublearn/prox/groups.hpp"
#include "sublearn/solvers/linear/group_solver.hpp"
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

void check_start(const Start& start, offset_t n_features) {
  if (static_cast<offset_t>(start.w.size()) != n_features) {
    throw std::invalid_argument("start must have one weight per feature");
  }
}

template <class Columns>
nb::tuple fit(const LinearData<Columns>& data, const SeparablePenalty& penalty,
              const LinearSettings& settings, const Start& start, Monitor& monitor) {
  check_penalty(penalty, data.problem().n_features());
  check_start(start, data.problem().n_features());
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

/// Groups as Python gives them: where each begins in `members`, and its level.
using GroupArrays = std::tuple<Vector<index_t>, Vector<index_t>, Vector<double>>;

GroupPenalty group_penalty(const GroupArrays& arrays, double within, double l2,
                           offset_t n_features) {
  const auto& [starts, members, levels] = arrays;
  GroupPenalty penalty{as_span<index_t>(starts), as_span<index_t>(members), as_span<double>(levels),
                       within, l2};
  const auto n = static_cast<std::size_t>(n_features);
  if (members.size() != n || starts.size() != levels.size() + 1 || starts.data()[0] != 0 ||
      starts.data()[levels.size()] != n_features) {
    throw std::invalid_argument("groups must hold every feature once");
  }
  std::vector<bool> is_seen(n);
  for (const index_t j : penalty.members) {
    if (j < 0 || j >= n_features || is_seen[static_cast<std::size_t>(j)]) {
      throw std::invalid_argument("groups must hold every feature once");
    }
    is_seen[static_cast<std::size_t>(j)] = true;
  }
  for (std::size_t g = 0; g < levels.size(); ++g) {
    if (penalty.starts[g + 1] <= penalty.starts[g] || !(penalty.levels[g] > 0.0)) {
      throw std::invalid_argument("groups must have features and a level above 0");
    }
  }
  if (!(within >= 0.0 && l2 >= 0.0)) {
    throw std::invalid_argument("within and l2 must not be negative");
  }
  return penalty;
}

template <class Columns>
void bind_fit_groups(nb::module_& m) {
  m.def(
      "fit_groups",
      [](const LinearData<Columns>& data, const GroupArrays& groups, double within, double l2,
         const LinearSettings& settings, Vector<double> start, double intercept, Monitor& monitor) {
        const offset_t n_features = data.problem().n_features();
        const GroupPenalty penalty = group_penalty(groups, within, l2, n_features);
        check_start({start, intercept}, n_features);
        GroupLinearSolver<Columns> solver(data.problem(), penalty, settings);
        return run(solver, {start, intercept}, true, monitor);
      },
      "data"_a, "groups"_a, "within"_a, "l2"_a, "settings"_a, "start"_a.noconvert(), "intercept"_a,
      "monitor"_a, "Solve over groups (starts, members, levels); returns as `fit_linear`.");
}

template <class Columns>
void bind_fit(nb::module_& m) {
  bind_fit_groups<Columns>(m);
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
