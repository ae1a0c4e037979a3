#include "sublearn/core/sparse_panel.hpp"

#include "sublearn/core/multiversion.hpp"

namespace sublearn {

SUBLEARN_MULTIVERSION void multiply_panel(std::span<const offset_t> starts, const index_t* columns,
                                          const double* values, const Pack<double>* panel,
                                          Pack<double>* out) {
  for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
    Pack<double>::Vector even{}, odd{};
    offset_t e = starts[k];
    for (; e + 1 < starts[k + 1]; e += 2) {
      even += values[e] * panel[columns[e]].v;
      odd += values[e + 1] * panel[columns[e + 1]].v;
    }
    if (e < starts[k + 1]) even += values[e] * panel[columns[e]].v;
    out[k].v = even + odd;
  }
}

}  // namespace sublearn
