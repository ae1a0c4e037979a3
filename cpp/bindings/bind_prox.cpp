// Python face of prox/: shapes and dtypes are checked here, formulas are not written here.
#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/prox/bisimplex.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn::bindings {
namespace {

/// The entries of an array that will be changed in place; refuses an empty one, NaN and infinity.
template <class T>
std::span<T> finite_entries(const MutableVector<T>& v, const std::string& what) {
  if (v.size() == 0) refuse(what, "not be empty", "0 entries");
  const std::span<T> entries(v.data(), v.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::isfinite(entries[i])) continue;
    refuse(what, "be finite", as_text(entries[i]) + " at position " + std::to_string(i));
  }
  return entries;
}

template <class T>
void bind_soft_threshold(nb::module_& m) {
  m.def(
      "soft_threshold_",
      [](MutableVector<T> v, T level) {
        if (!(level >= 0)) refuse("soft_threshold_.level", "be non-negative", as_text(level));
        T* values = v.data();
        for (std::size_t i = 0; i < v.size(); ++i) values[i] = soft_threshold(values[i], level);
      },
      "v"_a.noconvert(), "level"_a, "Soft threshold of each entry of `v`, in place.");
}

template <class T>
void bind_project_simplex(nb::module_& m) {
  m.def(
      "project_simplex_",
      [](MutableVector<T> v, double radius) {
        // An entry can be as large as the radius, so the radius must fit the dtype.
        if (!(radius > 0 && radius <= std::numeric_limits<T>::max())) {
          refuse("project_simplex_.radius", "be positive and finite", as_text(radius));
        }
        const std::span<T> entries = finite_entries(v, "project_simplex_.v");
        nb::gil_scoped_release unlocked;
        std::vector<T> scratch;
        project_simplex(entries, radius, scratch);
      },
      "v"_a.noconvert(), "radius"_a,
      "Replace `v` by the nearest point with v >= 0 and sum v = radius.");
}

template <class T>
void bind_project_bisimplex(nb::module_& m) {
  m.def(
      "project_bisimplex_",
      [](MutableVector<T> b, MutableVector<T> c, double cap) {
        if (!(cap > 0)) refuse("project_bisimplex_.cap", "be positive", as_text(cap));
        const std::span<T> x = finite_entries(b, "project_bisimplex_.b");
        const std::span<T> y = finite_entries(c, "project_bisimplex_.c");
        double size = 0.0;
        {
          nb::gil_scoped_release unlocked;
          std::vector<T> scratch;
          size = project_bisimplex(x, y, cap, scratch);
        }
        if (!(size <= std::numeric_limits<T>::max())) {
          refuse("project_bisimplex_.cap", "keep the common size finite", as_text(cap));
        }
        return size;
      },
      "b"_a.noconvert(), "c"_a.noconvert(), "cap"_a,
      "Replace `b`, `c` by the nearest non-negative pair with sum b = sum c = t <= cap (may be\n"
      "infinite), and return t.");
}

template <class T>
void bind_all(nb::module_& m) {
  bind_soft_threshold<T>(m);
  bind_project_simplex<T>(m);
  bind_project_bisimplex<T>(m);
}

}  // namespace

void bind_prox(nb::module_& m) {
  bind_all<float>(m);
  bind_all<double>(m);
}

}  // namespace sublearn::bindings
