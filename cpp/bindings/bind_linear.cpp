// Python face of sparse linear models: data made ready, LHAC.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "arrays.hpp"
#include "linear_data.hpp"
#include "refuse.hpp"
#include "sublearn/objectives/linear_objective.hpp"
#include "sublearn/solvers/lhac/active_set_lhac.hpp"
#include "sublearn/solvers/lhac/lhac.hpp"

namespace sublearn::bindings {
namespace {

nb::dict lhac_columns(const std::vector<LhacIteration>& iterations) {
  using Row = LhacIteration;
  return to_columns(iterations, "seconds", &Row::seconds, "objective", &Row::objective,
                    "certificate", &Row::certificate, "violation", &Row::violation, "nnz_primal",
                    &Row::n_nonzero, "n_active", &Row::n_active, "z1", &Row::z1, "z2", &Row::z2,
                    "z3", &Row::z3, "n_passes", &Row::n_passes, "n_steps", &Row::n_steps,
                    "n_values", &Row::n_values, "n_asked", &Row::n_asked);
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
  nb::class_<LinearObjective<Columns>, SmoothObjective>(m,
                                                        (std::string(name) + "Objective").c_str());
}

template <class T>
void bind_sparse_data(nb::module_& m, const char* name) {
  using Columns = SparseColumns<T, index_t>;
  bind_data<Columns>(m, name);
  m.def(
      "linear_data",
      [](Arrays<index_t, index_t, T> X, offset_t n_rows, Vector<double> y, Vector<double> weights,
         Vector<double> offsets, const std::string& loss, double parameter, bool has_intercept) {
        const auto view = compressed_view<CscView, T, index_t>(X, n_rows);
        return std::make_shared<LinearData<Columns>>(
            Columns(view), ColumnRows{std::get<0>(X).data(), view.indices, n_rows}, nb::cast(X),
            RowArrays{y, weights, offsets}, loss_by_name(loss, parameter), has_intercept);
      },
      "X"_a.noconvert(), "n_rows"_a, "y"_a.noconvert(), "weights"_a.noconvert(),
      "offsets"_a.noconvert(), "loss"_a, "parameter"_a, "has_intercept"_a,
      "A problem over the columns of a CSC matrix (indptr, indices, values).");
}

template <class T>
void bind_dense_data(nb::module_& m, const char* name) {
  using Columns = DenseColumns<T>;
  bind_data<Columns>(m, name);
  m.def(
      "linear_data",
      [](FortranMatrix<T> X, Vector<double> y, Vector<double> weights, Vector<double> offsets,
         const std::string& loss, double parameter, bool has_intercept) {
        return std::make_shared<LinearData<Columns>>(
            Columns(X.data(), static_cast<offset_t>(X.shape(0)), static_cast<offset_t>(X.shape(1))),
            ColumnRows{nullptr, nullptr, static_cast<offset_t>(X.shape(0))}, nb::cast(X),
            RowArrays{y, weights, offsets}, loss_by_name(loss, parameter), has_intercept);
      },
      "X"_a.noconvert(), "y"_a.noconvert(), "weights"_a.noconvert(), "offsets"_a.noconvert(),
      "loss"_a, "parameter"_a, "has_intercept"_a, "A problem over the columns of a dense matrix.");
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
  Status status;
  {
    nb::gil_scoped_release unlocked;
    status = method.solve(x, monitor);
  }
  return nb::make_tuple(to_numpy(std::move(x)), status, method.best_bound,
                        lhac_columns(method.iterations));
}

void bind_settings(nb::module_& m) {
  nb::class_<SeparablePenalty>(m, "SeparablePenalty", "See prox/separable.hpp; l1 is passed apart.")
      .def(nb::init<>())
      .def_rw("l2", &SeparablePenalty::l2)
      .def_rw("lower", &SeparablePenalty::lower)
      .def_rw("upper", &SeparablePenalty::upper)
      .def_rw("n_free_last", &SeparablePenalty::n_free_last);
  m.def(
      "feasible_scale",
      [](SeparablePenalty penalty, Vector<double> l1, Vector<double> gradient) {
        penalty.l1 = as_span<double>(l1);
        check_penalty(penalty, static_cast<offset_t>(gradient.size()));
        std::vector<index_t> ids(gradient.size());
        std::iota(ids.begin(), ids.end(), index_t{0});
        return feasible_scale(penalty, ids, as_span<double>(gradient));
      },
      "penalty"_a, "l1"_a.noconvert(), "gradient"_a.noconvert(), "See prox/separable.hpp.");
  nb::enum_<LhacStrategy>(m, "LhacStrategy", "Strategies of LHAC; see solvers/lhac/strategy.hpp.")
      .value("standard", LhacStrategy::standard)
      .value("standard_inexact", LhacStrategy::standard_inexact)
      .value("standard_rough", LhacStrategy::standard_rough)
      .value("greedy", LhacStrategy::greedy)
      .value("greedy_cut", LhacStrategy::greedy_cut)
      .value("greedy_inexact", LhacStrategy::greedy_inexact)
      .value("greedy_adaptive", LhacStrategy::greedy_adaptive)
      .value("greedy_half", LhacStrategy::greedy_half);
  nb::enum_<Globalisation>(m, "Globalisation", "What follows a step that lowers too little.")
      .value("prox", Globalisation::prox_parameter)
      .value("line_search", Globalisation::line_search)
      .value("null_step", Globalisation::null_step);
  nb::class_<LhacSettings>(m, "LhacSettings", "Settings of LHAC; see solvers/lhac/lhac.hpp.")
      .def(nb::init<>())
      .def_rw("tol", &LhacSettings::tol)
      .def_rw("violation_tol", &LhacSettings::violation_tol)
      .def_rw("max_iter", &LhacSettings::max_iter)
      .def_rw("memory", &LhacSettings::memory)
      .def_rw("rho", &LhacSettings::rho)
      .def_rw("beta", &LhacSettings::beta)
      .def_rw("mu0", &LhacSettings::mu0)
      .def_rw("floor", &LhacSettings::floor)
      .def_rw("is_scaled", &LhacSettings::is_scaled)
      .def("set_strategy",
           [](LhacSettings& settings, LhacStrategy strategy, double eta, double epsilon,
              bool is_absolute) { settings.choice = {strategy, eta, epsilon, is_absolute}; })
      .def_rw("is_random", &LhacSettings::is_random)
      .def_rw("is_independent", &LhacSettings::is_independent)
      .def_rw("seed", &LhacSettings::seed)
      .def("set_budget",
           [](LhacSettings& settings, double slope, double constant, bool is_logarithmic) {
             settings.budget = {slope, constant, is_logarithmic};
           })
      .def_rw("globalisation", &LhacSettings::globalisation);
}

/// The size of the coordinates that a Hessian of Python's speaks of.
void check_size(const std::vector<double>& d, const Vector<double>& v) {
  if (v.size() != d.size()) throw std::invalid_argument("vectors must have one length");
}

/// One vector for each row of G, `rank` columns wide.
nb::tuple hessian_factors(const LowRankHessian& hessian, offset_t size) {
  std::vector<index_t> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), index_t{0});
  std::vector<double> g, gr;
  hessian.rows(ids, g, gr);
  return nb::make_tuple(to_numpy(std::move(g)), to_numpy(std::move(gr)), hessian.stride());
}

/// Coordinate descent on <g, u - x> + 1/2 <u - x, (mu/2 I + B)(u - x)> + p(u) from `point`, over
/// the positions of `order`, one after the other.
std::vector<double> descend_on_model(const LowRankHessian& hessian, Vector<double> gradient,
                                     Vector<double> x, Vector<double> start, double half_mu,
                                     const SeparablePenalty& penalty, Vector<index_t> order) {
  std::vector<double> point(start.data(), start.data() + start.size());
  check_size(point, gradient);
  check_size(point, x);
  check_penalty(penalty, static_cast<offset_t>(point.size()));
  std::vector<index_t> ids(point.size());
  std::iota(ids.begin(), ids.end(), index_t{0});
  for (std::size_t k = 0; k < order.size(); ++k) {
    const index_t at = order.data()[k];
    if (at < 0 || static_cast<std::size_t>(at) >= point.size()) {
      throw std::invalid_argument("order must name coordinates");
    }
  }
  nb::gil_scoped_release unlocked;
  LowRankModel model;
  model.reset(hessian, ids, as_span<double>(gradient));
  model.set_half_mu(half_mu);
  for (std::size_t k = 0; k < point.size(); ++k) {
    const double moved = point[k] - x.data()[k];
    if (moved != 0.0) model.move(static_cast<index_t>(k), moved);
  }
  descend_once(model, penalty, ids, as_span<index_t>(order), point);
  return point;
}

void bind_hessian(nb::module_& m) {
  nb::class_<LowRankHessian>(m, "LowRankHessian", "See solvers/lhac/low_rank_hessian.hpp.")
      .def(nb::init<offset_t, int>(), "size"_a, "memory"_a)
      .def_prop_ro("theta", &LowRankHessian::theta)
      .def("clear", &LowRankHessian::clear)
      .def(
          "append",
          [](LowRankHessian& hessian, Vector<double> s, Vector<double> t) {
            if (s.size() != t.size()) throw std::invalid_argument("s and t must have one length");
            return hessian.append(as_span<double>(s), as_span<double>(t));
          },
          "s"_a.noconvert(), "t"_a.noconvert(), "Take a pair in; False if it has no curvature.")
      .def("factors", &hessian_factors, "size"_a,
           "G and G R, row-major, and their common number of columns.")
      .def(
          "descend",
          [](const LowRankHessian& hessian, Vector<double> gradient, Vector<double> x,
             Vector<double> start, double half_mu, SeparablePenalty penalty, Vector<double> l1,
             Vector<index_t> order) {
            penalty.l1 = as_span<double>(l1);
            return to_numpy(descend_on_model(hessian, gradient, x, start, half_mu, penalty, order));
          },
          "gradient"_a.noconvert(), "x"_a.noconvert(), "start"_a.noconvert(), "half_mu"_a,
          "penalty"_a, "l1"_a.noconvert(), "order"_a.noconvert(),
          "Steps of coordinate descent on the model; see active/coordinate_descent.hpp.");
}

}  // namespace

void bind_linear(nb::module_& m) {
  bind_hessian(m);
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
         const LhacSettings& settings, Vector<double> x0, bool has_active_set, Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        if (has_active_set && !objective.has_parts()) {
          throw std::invalid_argument("an active set needs an objective that has parts");
        }
        const auto run = has_active_set ? run_lhac<ActiveSetLhac> : run_lhac<Lhac>;
        return run(objective, penalty, settings, x0, monitor);
      },
      "objective"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "x0"_a.noconvert(),
      "has_active_set"_a, "monitor"_a,
      "Minimise; returns (x, status, lower bound, iterations by column).");
}

}  // namespace sublearn::bindings
