// Python face of io/: chunks of text in, NumPy arrays out, and back. The lock is free while
// parsing.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "arrays.hpp"
#include "sublearn/io/text_parser.hpp"
#include "sublearn/io/text_writer.hpp"

namespace sublearn::bindings {

TextFormat text_format(bool has_header, offset_t first_feature, LabelRule labels,
                       offset_t n_features, offset_t n_labels) {
  TextFormat format;
  format.has_header = has_header;
  format.first_feature = static_cast<index_t>(first_feature);
  format.labels = labels;
  format.n_features = n_features;
  format.n_labels = n_labels;
  return format;
}

template <class T>
nb::dict to_arrays(TextRows<T>&& rows) {
  nb::dict out;
  out["indptr"] = to_numpy(std::move(rows.indptr));
  out["indices"] = to_numpy(std::move(rows.indices));
  out["values"] = to_numpy(std::move(rows.values));
  out["label_indptr"] = to_numpy(std::move(rows.label_indptr));
  out["label_ids"] = to_numpy(std::move(rows.label_ids));
  out["targets"] = to_numpy(std::move(rows.targets));
  out["n_features"] = rows.n_features;
  out["n_labels"] = rows.n_labels;
  return out;
}

template <class T>
void bind_text_parser(nb::module_& m, const char* name) {
  using Parser = TextParser<T>;
  nb::class_<Parser>(m, name, "Sparse rows with labels from chunks of text.")
      .def(
          "__init__",
          [](Parser* self, bool has_header, offset_t first_feature, LabelRule labels,
             offset_t n_features, offset_t n_labels) {
            new (self) Parser(text_format(has_header, first_feature, labels, n_features, n_labels));
          },
          nb::kw_only(), "has_header"_a, "first_feature"_a, "labels"_a, "n_features"_a = -1,
          "n_labels"_a = -1)
      .def("expect_bytes", &Parser::expect_bytes, "n_bytes"_a,
           "Size of the whole text: arrays are then reserved once.")
      .def(
          "feed",
          [](Parser& self, Vector<std::uint8_t> chunk) {
            nb::gil_scoped_release unlocked;
            self.feed(reinterpret_cast<const char*>(chunk.data()), chunk.size());
          },
          "chunk"_a.noconvert(), "The next bytes; a line may be cut anywhere.")
      .def(
          "finish", [](Parser& self) { return to_arrays(self.finish()); },
          "The arrays of all rows; the parser is empty afterwards.");
}

template <class T>
void bind_format_rows(nb::module_& m) {
  m.def(
      "format_rows",
      [](Vector<std::int64_t> indptr, Vector<std::int64_t> indices, Vector<T> values,
         Vector<std::int64_t> label_indptr, Vector<double> labels, offset_t first_feature,
         bool skips_blank_lines) {
        constexpr offset_t any = std::numeric_limits<offset_t>::max();
        const auto x = compressed_view<CsrView>(indptr, indices, values, any);
        if (label_indptr.size() != indptr.size()) {
          throw std::invalid_argument("label_indptr must be as long as indptr");
        }
        check_offsets("label_indptr", as_span<offset_t>(label_indptr), labels.size());
        const TextLayout layout{first_feature, skips_blank_lines};
        std::string text;
        {
          nb::gil_scoped_release unlocked;
          text = format_rows(x, label_indptr.data(), labels.data(), layout);
        }
        return nb::bytes(text.data(), text.size());
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "label_indptr"_a.noconvert(), "labels"_a.noconvert(), nb::kw_only(), "first_feature"_a,
      "skips_blank_lines"_a, "Rows as text, shortest numbers that read back the same.");
}

void bind_io(nb::module_& m) {
  nb::enum_<LabelRule>(m, "LabelRule", "What stands before the features of a row.")
      .value("ids", LabelRule::ids, "any number of label ids")
      .value("number", LabelRule::number, "exactly one number")
      .value("either", LabelRule::either, "numbers if every row has one, else ids");
  bind_text_parser<float>(m, "TextParserFloat32");
  bind_text_parser<double>(m, "TextParserFloat64");
  bind_format_rows<float>(m);
  bind_format_rows<double>(m);
}

}  // namespace sublearn::bindings
