// Numbers in text: what is read is what the standard library reads, and what is written reads back.
#include <cmath>
#include <string>

#include "input.hpp"
#include "sublearn/io/number.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sublearn;
  fuzz::Input input(data, size);
  std::string text(reinterpret_cast<const char*>(data), size);
  text += ' ';  // the contract: followed by a character that belongs to no number
  const fuzz::Exact copy({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  double value = 0.0;
  const char* const begin = copy.text().data();
  const char* const end = parse_number(begin, value);
  fuzz::require(end == nullptr || (end > begin && end < begin + copy.text().size()));
  fuzz::require(end == nullptr || !std::isnan(value));

  const auto number = input.take<double>();
  if (!std::isfinite(number)) return 0;
  std::string written;
  append_number(written, number);
  written += ' ';
  double again = 0.0;
  fuzz::require(parse_number(written.c_str(), again) == written.c_str() + written.size() - 1);
  fuzz::require(again == number);
  return 0;
}
