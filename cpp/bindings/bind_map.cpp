// Python face of MAP inference: one call that runs without Python's lock.
#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/solvers/map/solver.hpp"

namespace sublearn::bindings {
namespace {

nb::dict solve(const FactorGraph& graph, const MapSettings& settings,
               const std::optional<Vector<index_t>>& start, Monitor& monitor) {
  std::span<const index_t> labels;
  if (start) {
    labels = as_span<index_t>(*start);
    if (labels.size() != graph.domain.size()) {
      refuse("solve_map: start", "have " + std::to_string(graph.domain.size()) + " entries",
             std::to_string(labels.size()));
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0 || labels[i] >= graph.domain[i]) {
        refuse("solve_map: start", "hold labels of the domains", std::to_string(labels[i]));
      }
    }
  }
  MapAnswer answer;
  MapSolver solver(settings, monitor);
  {
    nb::gil_scoped_release unlocked;
    answer = solver.solve(graph, labels);
  }
  nb::dict out;
  out["labels"] = to_numpy(std::move(answer.labels));
  out["bound"] = answer.bound;
  out["n_iter"] = solver.n_iter();
  out["status"] = solver.status();
  out["found_by"] = solver.found_by();
  out["bounded_by"] = solver.bounded_by();
  out["rows"] = to_columns(solver.rows(), "seconds", &MapRow::seconds, "score", &MapRow::score,
                           "bound", &MapRow::bound, "n_iter", &MapRow::n_iter, "n_labels",
                           &MapRow::n_labels, "n_states", &MapRow::n_states, "work", &MapRow::work);
  return out;
}

}  // namespace

void bind_map(nb::module_& m) {
  nb::enum_<MapParts>(m, "MapParts", "See solvers/map/run.hpp.")
      .value("everything", MapParts::everything)
      .value("gdmm", MapParts::gdmm)
      .value("gdmm_and_search", MapParts::gdmm_and_search)
      .value("messages", MapParts::messages)
      .value("local_search", MapParts::local_search)
      .value("neighbourhoods", MapParts::neighbourhoods);
  nb::enum_<MapCredit>(m, "MapCredit", "See solvers/map/run.hpp.")
      .value("start", MapCredit::start)
      .value("elimination", MapCredit::elimination)
      .value("local_search", MapCredit::local_search)
      .value("messages", MapCredit::messages)
      .value("branch_and_bound", MapCredit::branch_and_bound)
      .value("gdmm", MapCredit::gdmm)
      .value("neighbourhoods", MapCredit::neighbourhoods);
  nb::class_<MapSettings>(m, "MapSettings", "See solvers/map/solver.hpp.")
      .def(nb::init<>())
      .def_rw("tol", &MapSettings::tol)
      .def_rw("max_iter", &MapSettings::max_iter)
      .def_rw("time_limit", &MapSettings::time_limit)
      .def_rw("search_work", &MapSettings::search_work)
      .def_rw("rho", &MapSettings::rho)
      .def_rw("eta", &MapSettings::eta)
      .def_rw("parts", &MapSettings::parts)
      .def_rw("n_threads", &MapSettings::n_threads)
      .def_rw("seed", &MapSettings::seed);
  m.def("solve_map", &solve, "graph"_a, "settings"_a, "start"_a.noconvert().none(), "monitor"_a,
        "The best assignment found, and a bound on all of them.");
}

}  // namespace sublearn::bindings
