// The inverse of io/text_parser: sparse rows with labels as `l1,l2,... j:v j:v ...`, one row a
// line.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "sublearn/core/views.hpp"
#include "sublearn/io/number.hpp"

namespace sublearn {

struct TextLayout {
  offset_t first_feature = 0;
  bool skips_blank_lines = false;  ///< the reader does (LIBSVM): an empty row needs a visible zero
};

/// Integers as such, so that a label id never turns into 1e+05.
inline void append_label(std::string& out, double label) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::abs(label) <= exact && label == std::floor(label)) {
    append_integer(out, static_cast<std::int64_t>(label));
  } else {
    append_number(out, label);
  }
}

template <class T, class I>
void append_row(std::string& out, std::span<const double> labels, const SparseVector<T, I>& x,
                const TextLayout& layout) {
  for (std::size_t q = 0; q < labels.size(); ++q) {
    if (q > 0) out += ',';
    append_label(out, labels[q]);
  }
  for (std::size_t q = 0; q < x.size(); ++q) {
    out += ' ';
    append_integer(out, static_cast<std::int64_t>(x.ids[q]) + layout.first_feature);
    out += ':';
    append_number(out, x.values[q]);
  }
  if (x.size() == 0 && labels.size() == 0) {
    out += ' ';
    if (layout.skips_blank_lines) {
      append_integer(out, layout.first_feature);
      out += ":0";
    }
  }
  out += '\n';
}

/// Row i has the labels label_indptr[i] .. label_indptr[i + 1] - 1 of `labels`.
template <class T, class I>
std::string format_rows(const CsrView<T, I>& x, const I* label_indptr, const double* labels,
                        const TextLayout& layout) {
  std::string out;
  for (offset_t i = 0; i < x.n_rows(); ++i) {
    append_row(out, {labels + label_indptr[i], labels + label_indptr[i + 1]}, x.row(i), layout);
  }
  return out;
}

}  // namespace sublearn
