// The one form of a refusal at the border to Python: "what.parameter must X, got Y", a ValueError.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

namespace sublearn::bindings {

/// A number as Python prints it.
inline std::string as_text(double value) {
  namespace nb = nanobind;
  return nb::str(nb::float_(value)).c_str();
}

[[noreturn]] inline void refuse(const std::string& what, const std::string& must,
                                const std::string& got) {
  throw std::invalid_argument(what + " must " + must + ", got " + got);
}

}  // namespace sublearn::bindings
