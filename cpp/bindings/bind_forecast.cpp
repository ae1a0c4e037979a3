// Python face of the online learner behind load forecasts.
#include <cmath>
#include <stdexcept>

#include "arrays.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/solvers/svr/kernel_svr.hpp"
#include "sublearn/solvers/svr/online_svr.hpp"

namespace sublearn::bindings {
namespace {

void check(const OnlineSvrSettings& settings, std::size_t n_rows, std::size_t n_targets) {
  if (n_rows != n_targets) throw std::invalid_argument("y must have a number for each row");
  if (!(settings.l2 > 0.0)) throw std::invalid_argument("l2 must be positive");
  if (settings.batch < 1) throw std::invalid_argument("batch must be at least 1");
  if (settings.n_epochs < 0 || settings.first_step < 0) {
    throw std::invalid_argument("n_epochs and first_step must not be negative");
  }
  if (settings.loss.lower > settings.loss.upper) {
    throw std::invalid_argument("lower must not be above upper");
  }
}

DenseView<const double> view(const Matrix<double>& rows) {
  return {rows.data(), static_cast<offset_t>(rows.shape(0)), static_cast<offset_t>(rows.shape(1))};
}

std::int64_t run(const Matrix<double>& features, const Vector<double>& y, MutableVector<double> w,
                 const OnlineSvrSettings& settings, const Monitor& monitor) {
  check(settings, features.shape(0), y.size());
  if (w.size() != features.shape(1)) {
    throw std::invalid_argument("w must have a number for each feature");
  }
  nb::gil_scoped_release unlocked;
  return OnlineSvr(view(features), as_span(y), {w.data(), w.size()}, settings).run(monitor);
}

std::int64_t run_kernel(const Matrix<double>& rows, const Vector<double>& y,
                        MutableVector<double> a, const OnlineSvrSettings& settings,
                        const Monitor& monitor) {
  check(settings, rows.shape(0), y.size());
  if (a.size() != rows.shape(0)) throw std::invalid_argument("a must have a number for each row");
  nb::gil_scoped_release unlocked;
  return KernelSvr(view(rows), as_span(y), {a.data(), a.size()}, settings).run(monitor);
}

}  // namespace

void bind_forecast(nb::module_& m) {
  using S = OnlineSvrSettings;
  nb::class_<S>(m, "OnlineSvrSettings", "See solvers/svr/online_svr.hpp and losses/tube.hpp.")
      .def(nb::init<>())
      .def_prop_rw(
          "lower", [](const S& s) { return s.loss.lower; },
          [](S& s, double v) { s.loss.lower = v; })
      .def_prop_rw(
          "upper", [](const S& s) { return s.loss.upper; },
          [](S& s, double v) { s.loss.upper = v; })
      .def_prop_rw(
          "lower_slope", [](const S& s) { return s.loss.lower_slope; },
          [](S& s, double v) { s.loss.lower_slope = v; })
      .def_prop_rw(
          "upper_slope", [](const S& s) { return s.loss.upper_slope; },
          [](S& s, double v) { s.loss.upper_slope = v; })
      .def_rw("l2", &S::l2)
      .def_rw("radius", &S::radius)
      .def_rw("first_step", &S::first_step)
      .def_rw("n_epochs", &S::n_epochs)
      .def_rw("reach", &S::reach)
      .def_rw("batch", &S::batch)
      .def_rw("fills_batch", &S::fills_batch)
      .def_rw("seed", &S::seed);
  m.def("online_svr", &run, "features"_a.noconvert(), "y"_a.noconvert(), "w"_a.noconvert(),
        "settings"_a, "monitor"_a, "Algorithm 8; w is changed in place. Returns the steps taken.");
  m.def(
      "kernel_svr", &run_kernel, "rows"_a.noconvert(), "y"_a.noconvert(), "a"_a.noconvert(),
      "settings"_a, "monitor"_a,
      "Algorithm 8 on the dual variables a of a Gaussian kernel plus 1. Returns the steps taken.");
}

}  // namespace sublearn::bindings
