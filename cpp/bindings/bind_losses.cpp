// Python face of losses/, for the tests of their duality. Solvers use the structs directly.
#include "arrays.hpp"
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

}  // namespace

void bind_losses(nb::module_& m) {
  bind_margin_loss<Hinge>(m, "Hinge", "C max(0, 1 - z) of margins z.");
  bind_margin_loss<SquaredHinge>(m, "SquaredHinge", "C max(0, 1 - z)^2 of margins z.");
}

}  // namespace sublearn::bindings
