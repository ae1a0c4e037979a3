// Python face of sparse linear models: data made ready, the working-set solver, LHAC.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <limits>
#include <memory>
#include <string>

#include "arrays.hpp"
#include "linear_data.hpp"
#include "refuse.hpp"
#include "sublearn/objectives/linear_objective.hpp"
#include "sublearn/solvers/lhac.hpp"
#include "sublearn/solvers/lhac_working_set.hpp"
#include "sublearn/solvers/sparse_linear.hpp"

namespace sublearn::bindings {
namespace {

nb::dict by_column(const std::vector<SparseLinearPass>& passes) {
  using Pass = SparseLinearPass;
  nb::dict out;
  out["seconds"] = column(passes, &Pass::seconds);
  out["objective"] = column(passes, &Pass::objective);
  out["gap"] = column(passes, &Pass::gap);
  out["violation"] = column(passes, &Pass::violation);
  out["nnz_primal"] = column(passes, &Pass::n_nonzero);
  out["n_kept"] = column(passes, &Pass::n_kept);
  out["n_working"] = column(passes, &Pass::n_working);
  out["n_passes"] = column(passes, &Pass::n_passes);
  out["work"] = column(passes, &Pass::work);
  return out;
}

nb::dict by_column(const std::vector<LhacIteration>& iterations) {
  using Row = LhacIteration;
  nb::dict out;
  out["seconds"] = column(iterations, &Row::seconds);
  out["objective"] = column(iterations, &Row::objective);
  out["certificate"] = column(iterations, &Row::certificate);
  out["violation"] = column(iterations, &Row::violation);
  out["nnz_primal"] = column(iterations, &Row::n_nonzero);
  out["n_free"] = column(iterations, &Row::n_free);
  out["z1"] = column(iterations, &Row::z1);
  out["z2"] = column(iterations, &Row::z2);
  out["z3"] = column(iterations, &Row::z3);
  out["n_passes"] = column(iterations, &Row::n_passes);
  out["n_steps"] = column(iterations, &Row::n_steps);
  out["n_values"] = column(iterations, &Row::n_values);
  out["n_asked"] = column(iterations, &Row::n_asked);
  return out;
}

template <class Columns>
nb::tuple fit(const LinearData<Columns>& data, const SeparablePenalty& penalty,
              const SparseLinearSettings& settings, Vector<double> start, double intercept,
              Monitor& monitor) {
  check_penalty(penalty, data.problem().n_features());
  if (static_cast<offset_t>(start.size()) != data.problem().n_features()) {
    throw std::invalid_argument("start must have one weight per feature");
  }
  SparseLinearSolver<Columns> solver(data.problem(), penalty, settings);
  solver.point().w.assign(start.data(), start.data() + start.size());
  solver.point().intercept = intercept;
  bool is_solved = false;
  {
    nb::gil_scoped_release unlocked;
    is_solved = solver.solve(monitor);
  }
  return nb::make_tuple(to_numpy(std::move(solver.point().w)), solver.point().intercept, is_solved,
                        by_column(solver.passes));
}

template <class Columns>
void bind_data(nb::module_& m, const char* name) {
  using Data = LinearData<Columns>;
  nb::class_<Data>(m, name, "Rows, targets, weights and a loss, ready for a solver.")
      .def(
          "objective",
          [](std::shared_ptr<Data> data, int n_threads) {
            return std::make_shared<LinearObjective<Columns>>(data->problem(), n_threads);
          },
          "n_threads"_a = 1, nb::keep_alive<0, 1>(), "The smooth part as an objective for `lhac`.");
  m.def(
      "fit_sparse_linear",
      [](const Data& data, Vector<double> l1, SeparablePenalty penalty,
         const SparseLinearSettings& settings, Vector<double> start, double intercept,
         Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        return fit(data, penalty, settings, start, intercept, monitor);
      },
      "data"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "start"_a.noconvert(), "intercept"_a,
      "monitor"_a, "Solve; returns (w, intercept, is_solved, passes by column).");
  nb::class_<LinearObjective<Columns>, SmoothObjective>(m,
                                                        (std::string(name) + "Objective").c_str());
}

template <class T>
void bind_sparse_data(nb::module_& m, const char* name) {
  using Columns = SparseColumns<T, index_t>;
  bind_data<Columns>(m, name);
  m.def(
      "linear_data",
      [](Vector<index_t> indptr, Vector<index_t> indices, Vector<T> values, offset_t n_rows,
         Vector<double> y, Vector<double> weights, const std::string& loss, double parameter,
         bool has_intercept) {
        const auto view = compressed_view<CscView, T, index_t>(indptr, indices, values, n_rows);
        return std::make_shared<LinearData<Columns>>(
            Columns(view), ColumnRows{view.indptr, view.indices, n_rows},
            nb::make_tuple(indptr, indices, values), y, weights, loss_by_name(loss, parameter),
            has_intercept);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_rows"_a,
      "y"_a.noconvert(), "weights"_a.noconvert(), "loss"_a, "parameter"_a, "has_intercept"_a,
      "A problem over the columns of a CSC matrix.");
}

template <class T>
void bind_dense_data(nb::module_& m, const char* name) {
  using Columns = DenseColumns<T>;
  bind_data<Columns>(m, name);
  m.def(
      "linear_data",
      [](FortranMatrix<T> X, Vector<double> y, Vector<double> weights, const std::string& loss,
         double parameter, bool has_intercept) {
        return std::make_shared<LinearData<Columns>>(
            Columns(X.data(), static_cast<offset_t>(X.shape(0)), static_cast<offset_t>(X.shape(1))),
            ColumnRows{nullptr, nullptr, static_cast<offset_t>(X.shape(0))}, nb::cast(X), y,
            weights, loss_by_name(loss, parameter), has_intercept);
      },
      "X"_a.noconvert(), "y"_a.noconvert(), "weights"_a.noconvert(), "loss"_a, "parameter"_a,
      "has_intercept"_a, "A problem over the columns of a dense matrix.");
}

/// Calls back into Python for each value; `function(x)` returns (value, gradient as float64), and
/// `partial(x, ids)`, if it is not None, (value, those entries of the gradient). `bound()`, if it
/// is not None, returns what is known to lie below the least value of function and penalty
/// together.
class PythonObjective final : public SmoothObjective {
 public:
  PythonObjective(nb::callable function, nb::object partial, offset_t size, nb::object bound)
      : function_(std::move(function)),
        partial_(std::move(partial)),
        bound_(std::move(bound)),
        gradient_(static_cast<std::size_t>(size)) {}

  offset_t size() const override { return static_cast<offset_t>(gradient_.size()); }

  double move_to(std::span<const double> x) override {
    nb::gil_scoped_acquire locked;
    return take(function_(to_numpy(std::vector<double>(x.begin(), x.end()))), gradient_);
  }

  void gradient(std::span<double> out) override {
    std::copy(gradient_.begin(), gradient_.end(), out.begin());
  }

  DualPoint dual_point(const SeparablePenalty& /*penalty*/,
                       std::span<const double> /*gradient*/) override {
    if (bound_.is_none()) return {};
    nb::gil_scoped_acquire locked;
    return {nb::cast<double>(bound_()), 0.0};
  }

  bool has_parts() const override { return !partial_.is_none(); }

  std::unique_ptr<SmoothObjective> restricted(std::span<const index_t> ids) override {
    return std::make_unique<Part>(*this, std::vector<index_t>(ids.begin(), ids.end()));
  }

 private:
  /// Holds nothing of Python's, so that it may end without Python's lock.
  class Part final : public SmoothObjective {
   public:
    Part(PythonObjective& whole, std::vector<index_t> ids)
        : whole_(&whole), ids_(std::move(ids)), gradient_(ids_.size()) {}
    offset_t size() const override { return static_cast<offset_t>(ids_.size()); }
    double move_to(std::span<const double> x) override {
      std::vector<double> at(static_cast<std::size_t>(whole_->size()));
      for (std::size_t k = 0; k < ids_.size(); ++k) at[static_cast<std::size_t>(ids_[k])] = x[k];
      nb::gil_scoped_acquire locked;
      return take(whole_->partial_(to_numpy(std::move(at)),
                                   to_numpy(std::vector<std::int64_t>(ids_.begin(), ids_.end()))),
                  gradient_);
    }
    void gradient(std::span<double> out) override {
      std::copy(gradient_.begin(), gradient_.end(), out.begin());
    }

   private:
    PythonObjective* whole_;
    std::vector<index_t> ids_;
    std::vector<double> gradient_;
  };

  static double take(const nb::object& found, std::vector<double>& gradient) {
    const auto result = nb::cast<nb::tuple>(found);
    const auto entries = nb::cast<Vector<double>>(result[1]);
    if (entries.size() != gradient.size()) {
      throw std::invalid_argument("the gradient must have one entry per coordinate");
    }
    std::copy(entries.data(), entries.data() + entries.size(), gradient.begin());
    return nb::cast<double>(result[0]);
  }

  nb::callable function_;
  nb::object partial_;
  nb::object bound_;
  std::vector<double> gradient_;
};

template <class Method>
nb::tuple run_lhac(SmoothObjective& objective, const SeparablePenalty& penalty,
                   const LhacSettings& settings, Vector<double> start, Monitor& monitor) {
  check_penalty(penalty, objective.size());
  if (static_cast<offset_t>(start.size()) != objective.size()) {
    throw std::invalid_argument("x0 must have one entry per coordinate");
  }
  std::vector<double> x(start.data(), start.data() + start.size());
  Method method(objective, penalty, settings);
  LhacEnd end;
  {
    nb::gil_scoped_release unlocked;
    end = method.solve(x, monitor);
  }
  return nb::make_tuple(to_numpy(std::move(x)), end, method.best_bound,
                        by_column(method.iterations));
}

void bind_settings(nb::module_& m) {
  nb::class_<SeparablePenalty>(m, "SeparablePenalty", "See prox/separable.hpp; l1 is passed apart.")
      .def(nb::init<>())
      .def_rw("l2", &SeparablePenalty::l2)
      .def_rw("lower", &SeparablePenalty::lower)
      .def_rw("upper", &SeparablePenalty::upper)
      .def_rw("has_free_last", &SeparablePenalty::has_free_last);
  nb::enum_<FreeSet>(m, "FreeSet", "Free-set strategies of LHAC; see solvers/free_set.hpp.")
      .value("std", FreeSet::standard)
      .value("std_ep", FreeSet::standard_inexact)
      .value("std_epa", FreeSet::standard_inexact_aggressive)
      .value("grdy", FreeSet::greedy)
      .value("grdy_ctz", FreeSet::greedy_cut)
      .value("grdy_ep", FreeSet::greedy_inexact)
      .value("grdy_ad", FreeSet::greedy_adaptive);
  nb::enum_<LhacEnd>(m, "LhacEnd", "Why LHAC stopped.")
      .value("converged", LhacEnd::converged)
      .value("max_iter", LhacEnd::max_iter)
      .value("stopped", LhacEnd::stopped)
      .value("stalled", LhacEnd::stalled);
  nb::enum_<Globalisation>(m, "Globalisation", "What follows a step that lowers too little.")
      .value("prox", Globalisation::prox_parameter)
      .value("line_search", Globalisation::line_search)
      .value("null_step", Globalisation::null_step);
  nb::class_<LhacSettings>(m, "LhacSettings", "Settings of LHAC; see solvers/lhac.hpp.")
      .def(nb::init<>())
      .def_rw("tol", &LhacSettings::tol)
      .def_rw("max_iter", &LhacSettings::max_iter)
      .def_rw("memory", &LhacSettings::memory)
      .def_rw("sufficient", &LhacSettings::sufficient)
      .def_rw("growth", &LhacSettings::growth)
      .def_rw("free_set", &LhacSettings::free_set)
      .def_rw("is_random", &LhacSettings::is_random)
      .def_rw("seed", &LhacSettings::seed)
      .def("set_budget",
           [](LhacSettings& settings, double slope, double constant, bool is_logarithmic) {
             settings.budget = {slope, constant, is_logarithmic};
           })
      .def_rw("globalisation", &LhacSettings::globalisation);
  nb::enum_<LinearMethod>(m, "LinearMethod", "The method inside the working set.")
      .value("newton", LinearMethod::newton)
      .value("lhac", LinearMethod::lhac);
  nb::class_<SparseLinearSettings>(m, "SparseLinearSettings", "See solvers/sparse_linear.hpp.")
      .def(nb::init<>())
      .def_rw("method", &SparseLinearSettings::method)
      .def_rw("lhac", &SparseLinearSettings::lhac)
      .def_rw("tol", &SparseLinearSettings::tol)
      .def_rw("max_iter", &SparseLinearSettings::max_iter)
      .def_rw("n_threads", &SparseLinearSettings::n_threads);
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<SmoothObjective>(m, "SmoothObjective", "A smooth function with gradients.")
      .def_prop_ro("size", &SmoothObjective::size)
      .def_prop_ro("has_parts", &SmoothObjective::has_parts,
                   "Whether a part of the gradient costs less than all of it.")
      .def(
          "value_and_gradient",
          [](SmoothObjective& objective, Vector<double> x) {
            if (static_cast<offset_t>(x.size()) != objective.size()) {
              throw std::invalid_argument("x must have one entry per coordinate");
            }
            std::vector<double> gradient(x.size());
            double value = 0.0;
            {
              nb::gil_scoped_release unlocked;
              value = objective.move_to(as_span<double>(x));
              objective.gradient(gradient);
            }
            return nb::make_tuple(value, to_numpy(std::move(gradient)));
          },
          "x"_a.noconvert(), "Value and gradient at x.");
  nb::class_<PythonObjective, SmoothObjective>(m, "PythonObjective", "A function of Python's.")
      .def(nb::init<nb::callable, nb::object, offset_t, nb::object>(), "function"_a,
           "partial"_a.none(), "size"_a, "bound"_a = nb::none());
  bind_settings(m);
  bind_sparse_data<float>(m, "SparseLinearData32");
  bind_sparse_data<double>(m, "SparseLinearData64");
  bind_dense_data<float>(m, "DenseLinearData32");
  bind_dense_data<double>(m, "DenseLinearData64");
  m.def(
      "lhac",
      [](SmoothObjective& objective, Vector<double> l1, SeparablePenalty penalty,
         const LhacSettings& settings, Vector<double> x0, bool has_working_set, Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        if (has_working_set && !objective.has_parts()) {
          throw std::invalid_argument("a working set needs an objective that has parts");
        }
        const auto run = has_working_set ? run_lhac<WorkingSetLhac> : run_lhac<Lhac>;
        return run(objective, penalty, settings, x0, monitor);
      },
      "objective"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "x0"_a.noconvert(),
      "has_working_set"_a, "monitor"_a,
      "Minimise; returns (x, end, lower bound, iterations by column).");
}

}  // namespace sublearn::bindings
