// Data files in text: any bytes in any chunks give rows that fit together, or a refusal; and the
// same rows or the same refusal wherever chunks end.
#include <cmath>
#include <string>

#include "input.hpp"
#include "sublearn/core/compressed.hpp"
#include "sublearn/io/text_parser.hpp"

namespace {

using namespace sublearn;

TextFormat format_of(std::uint8_t choice) {
  TextFormat format;
  format.has_header = (choice & 1) != 0;
  format.first_feature = (choice & 2) != 0 ? 1 : 0;
  format.labels = static_cast<LabelRule>((choice >> 2) % 3);
  if ((choice & 16) != 0) format.n_features = 5;
  if ((choice & 32) != 0) format.n_labels = 4;
  return format;
}

struct Outcome {
  TextRows<float> rows;
  std::string refusal;
};

Outcome parse(const TextFormat& format, std::span<const std::uint8_t> bytes, std::size_t chunk) {
  Outcome out;
  try {
    TextParser<float> parser(format);
    parser.expect_bytes(bytes.size());
    for (std::size_t p = 0; p < bytes.size(); p += chunk) {
      const fuzz::Exact part(bytes.subspan(p, std::min(chunk, bytes.size() - p)));
      parser.feed(part.text().data(), part.text().size());
    }
    out.rows = parser.finish();
  } catch (const std::invalid_argument& error) {
    out.refusal = error.what();
    fuzz::require(!out.refusal.empty());
  }
  return out;
}

void check(const TextRows<float>& rows) {
  const std::span<const offset_t> begin(rows.indptr), labels(rows.label_indptr);
  const auto n_rows = static_cast<offset_t>(begin.size()) - 1;
  const std::span<const index_t> ids(rows.indices), label_ids(rows.label_ids);
  fuzz::require(is_compressed(begin, ids, n_rows, rows.n_features));
  fuzz::require(has_increasing_ids(begin, ids));
  fuzz::require(rows.values.size() == ids.size());
  for (const float value : rows.values) fuzz::require(std::isfinite(value) && value != 0.0F);
  if (rows.targets.empty()) {
    fuzz::require(is_compressed(labels, label_ids, n_rows, rows.n_labels));
  } else {
    fuzz::require(static_cast<offset_t>(rows.targets.size()) == n_rows);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const TextFormat format = format_of(input.take<std::uint8_t>());
  const std::size_t chunk = 1 + input.take<std::uint8_t>() % 64;
  const Outcome whole = parse(format, input.rest(), std::max<std::size_t>(1, input.rest().size()));
  const Outcome cut = parse(format, input.rest(), chunk);
  fuzz::require(whole.refusal == cut.refusal);
  if (!whole.refusal.empty()) return 0;
  check(whole.rows);
  fuzz::require(whole.rows.indices == cut.rows.indices && whole.rows.values == cut.rows.values);
  return 0;
}
