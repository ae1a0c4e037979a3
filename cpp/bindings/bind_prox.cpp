// Python face of prox/: shapes and dtypes are checked here, formulas are not written here.
#include "arrays.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn::bindings {

template <class T>
void bind_soft_threshold(nb::module_& m) {
  m.def(
      "soft_threshold_",
      [](MutableVector<T> v, T level) {
        if (!(level >= 0)) throw std::invalid_argument("level must be non-negative");
        T* values = v.data();
        for (std::size_t i = 0; i < v.size(); ++i) values[i] = soft_threshold(values[i], level);
      },
      "v"_a.noconvert(), "level"_a, "Soft threshold of each entry of `v`, in place.");
}

void bind_prox(nb::module_& m) {
  bind_soft_threshold<float>(m);
  bind_soft_threshold<double>(m);
}

}  // namespace sublearn::bindings
