// UAI files: any bytes give a model whose parts fit together, or a refusal.
#include <cmath>
#include <string>

#include "input.hpp"
#include "sublearn/io/uai_parser.hpp"

namespace {

using namespace sublearn;

void check(const UaiModel& model) {
  const auto n_factors = model.scope_begin.size() - 1;
  fuzz::require(static_cast<std::size_t>(model.scope_begin.back()) == model.scope.size());
  fuzz::require(model.table_begin.size() == n_factors + 1);
  fuzz::require(static_cast<std::size_t>(model.table_begin.back()) == model.scores.size());
  for (const index_t variable : model.scope)
    fuzz::require(variable >= 0 && static_cast<std::size_t>(variable) < model.domain.size());
  for (const double score : model.scores) fuzz::require(!std::isnan(score) && score < HUGE_VAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto choice = input.take<std::uint8_t>();
  std::string text(input.rest().begin(), input.rest().end());
  text += '\n';  // the contract: ends with white space
  const fuzz::Exact copy({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  const std::string keywords[] = {"MAP", "MPE"};
  fuzz::allow_refusals([&] { check(UaiParser(copy.text(), UaiTables(choice % 3)).parse()); });
  fuzz::allow_refusals([&] {
    const PlacedIntegers found = parse_integers(copy.text(), keywords);
    fuzz::require(found.values.size() == found.lines.size());
  });
  return 0;
}
