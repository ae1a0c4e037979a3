// Python face of losses/: margin losses for the tests of their duality, losses of linear models for
// what Python does once per fit. Solvers use the structs directly.
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "arrays.hpp"
#include "linear_data.hpp"
#include "refuse.hpp"
#include "sublearn/losses/hinge.hpp"
#include "sublearn/losses/squared_hinge.hpp"

namespace sublearn::bindings {
namespace {

template <class F>
NumpyVector<double> map_entries(const Vector<double>& in, F&& f) {
  std::vector<double> out(in.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(in.data()[i]);
  return to_numpy(std::move(out));
}

template <MarginLoss Loss>
void bind_margin_loss(nb::module_& m, const char* name, const char* formula) {
  nb::class_<Loss>(m, name, formula)
      .def(
          "__init__",
          [name](Loss* self, double C) {
            if (!(C > 0)) refuse(std::string(name) + ".C", "be positive", as_text(C));
            new (self) Loss{C};
          },
          "C"_a)
      .def(
          "value",
          [](const Loss& loss, Vector<double> margins) {
            return map_entries(margins, [&](double z) { return loss.value(z); });
          },
          "margins"_a.noconvert(), "Loss at each margin.")
      .def(
          "slope",
          [](const Loss& loss, Vector<double> margins) {
            return map_entries(margins, [&](double z) { return loss.slope(z); });
          },
          "margins"_a.noconvert(), "The dual variable that belongs to each margin.")
      .def(
          "conjugate_term",
          [](const Loss& loss, Vector<double> alphas) {
            return map_entries(alphas, [&](double alpha) { return loss.conjugate_term(alpha); });
          },
          "alphas"_a.noconvert(), "Part of each dual variable in the maximised dual.")
      .def_prop_ro("upper_bound", &Loss::upper_bound)
      .def_prop_ro("dual_diagonal", &Loss::dual_diagonal);
}

/// f(a_i, y_i) for each i.
template <class F>
NumpyVector<double> map_pairs(const Vector<double>& a, const Vector<double>& y, F&& f) {
  if (a.size() != y.size()) throw std::invalid_argument("both arrays must have one entry per row");
  std::vector<double> out(a.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(a.data()[i], y.data()[i]);
  return to_numpy(std::move(out));
}

/// The loss of a row of a linear model, chosen by name.
struct RowLoss {
  AnyLoss loss;
};

/// One function of a loss, over arrays.
template <class Member>
auto over_rows(Member member) {
  return [member](const RowLoss& self, Vector<double> a, Vector<double> y) {
    return std::visit(
        [&](const auto& loss) {
          return map_pairs(a, y,
                           [&](double at, double target) { return member(loss, at, target); });
        },
        self.loss);
  };
}

void bind_row_loss(nb::module_& m) {
  nb::class_<RowLoss>(m, "RowLoss", "Loss f(z; y) of a row of a linear model.")
      .def(
          "__init__",
          [](RowLoss* self, const std::string& name, double parameter) {
            new (self) RowLoss{loss_by_name(name, parameter)};
          },
          "name"_a, "parameter"_a = 1.0)
      .def("value", over_rows([](const auto& f, double z, double y) { return f.value(z, y); }),
           "z"_a.noconvert(), "y"_a.noconvert(), "f(z; y).")
      .def("slope", over_rows([](const auto& f, double z, double y) { return f.slope(z, y); }),
           "z"_a.noconvert(), "y"_a.noconvert(), "Derivative in z.")
      .def("curvature",
           over_rows([](const auto& f, double z, double y) { return f.curvature(z, y); }),
           "z"_a.noconvert(), "y"_a.noconvert(), "Second derivative in z.")
      .def("conjugate",
           over_rows([](const auto& f, double a, double y) { return f.conjugate(a, y); }),
           "a"_a.noconvert(), "y"_a.noconvert(), "max_z a z - f(z; y).");
}

}  // namespace

void bind_losses(nb::module_& m) {
  bind_row_loss(m);
  bind_margin_loss<Hinge>(m, "Hinge", "C max(0, 1 - z) of margins z.");
  bind_margin_loss<SquaredHinge>(m, "SquaredHinge", "C max(0, 1 - z)^2 of margins z.");
}

}  // namespace sublearn::bindings
