// Python face of io/uai_parser: text in, NumPy arrays out, and back. The lock is free meanwhile.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arrays.hpp"
#include "sublearn/io/uai_parser.hpp"

namespace sublearn::bindings {
namespace {

std::string_view as_text_view(const nb::bytes& text) { return {text.c_str(), text.size()}; }

nb::dict parse_uai(const nb::bytes& text, UaiTables tables) {
  UaiModel model;
  {
    const std::string_view view = as_text_view(text);
    nb::gil_scoped_release unlocked;
    model = UaiParser(view, tables).parse();
  }
  nb::dict out;
  out["is_bayes"] = model.is_bayes;
  out["domain"] = to_numpy(std::move(model.domain));
  out["scope_begin"] = to_numpy(std::move(model.scope_begin));
  out["scope"] = to_numpy(std::move(model.scope));
  out["table_begin"] = to_numpy(std::move(model.table_begin));
  out["scores"] = to_numpy(std::move(model.scores));
  out["table_line"] = to_numpy(std::move(model.table_line));
  return out;
}

/// For each row the number of the first row with the same bytes.
std::vector<offset_t> first_equal_rows(const double* values, std::size_t n_rows,
                                       std::size_t n_columns) {
  const std::size_t n_bytes = n_columns * sizeof(double);
  const auto row = [&](std::size_t r) {
    return std::string_view(reinterpret_cast<const char*>(values + r * n_columns), n_bytes);
  };
  std::unordered_map<std::string_view, offset_t> first;
  first.reserve(n_rows);
  std::vector<offset_t> out(n_rows);
  for (std::size_t r = 0; r < n_rows; ++r) {
    out[r] = first.try_emplace(row(r), static_cast<offset_t>(r)).first->second;
  }
  return out;
}

}  // namespace

void bind_uai(nb::module_& m) {
  nb::enum_<UaiTables>(m, "UaiTables", "What the numbers of the tables of a UAI file are.")
      .value("linear", UaiTables::linear)
      .value("log", UaiTables::log)
      .value("log10", UaiTables::log10);
  m.def("parse_uai", &parse_uai, "text"_a, "tables"_a,
        "Arrays of a model; `text` must end with white space.");
  m.def(
      "parse_integers",
      [](const nb::bytes& text, const std::vector<std::string>& keywords) {
        PlacedIntegers found = parse_integers(as_text_view(text), keywords);
        return nb::make_tuple(to_numpy(std::move(found.values)), to_numpy(std::move(found.lines)));
      },
      "text"_a, "keywords"_a, "Integers >= 0 and their lines; a keyword may stand first.");
  m.def(
      "format_tables",
      [](Matrix<double> values) {
        std::string text;
        {
          nb::gil_scoped_release unlocked;
          text = format_tables({values.data(), values.size()}, values.shape(1));
        }
        return nb::bytes(text.data(), text.size());
      },
      "values"_a.noconvert(), "Tables of a UAI file, one for each row.");
  m.def(
      "first_equal_rows",
      [](Matrix<double> values) {
        nb::gil_scoped_release unlocked;
        auto first = first_equal_rows(values.data(), values.shape(0), values.shape(1));
        nb::gil_scoped_acquire locked;
        return to_numpy(std::move(first));
      },
      "values"_a.noconvert(), "For each row the number of the first row with the same bytes.");
}

}  // namespace sublearn::bindings
