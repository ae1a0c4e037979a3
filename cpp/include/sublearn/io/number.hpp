// Decimal numbers to and from text, independent of the locale. Used by: io/text_parser,
// io/text_writer.
//
// Reading takes the short way for numbers such as 0.2348 or -3e-5: with a mantissa m < 2^53 and a
// power |e| <= 22, both m and 10^|e| are exact doubles, so one multiplication or division rounds
// once and is the nearest double (Clinger 1990). Everything else goes through std::from_chars.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <system_error>

namespace sublearn {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

namespace detail {

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// Out of the range of doubles: infinity when the number is huge, zero when it is tiny.
inline double out_of_range(const char* begin, const char* end, std::int64_t power) {
  while (begin < end && (*begin == '0' || *begin == '.')) ++begin;
  std::int64_t n_significant = 0;
  for (; begin < end && (is_digit(*begin) || *begin == '.'); ++begin)
    n_significant += *begin != '.';
  return power + n_significant > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

/// [begin, end) is an unsigned decimal number; `power` is its exponent with all digits before the
/// point.
inline double parse_exactly(const char* begin, const char* end, std::int64_t power) {
#if defined(__cpp_lib_to_chars)
  double value = 0.0;
  const auto result = std::from_chars(begin, end, value);
  return result.ec == std::errc() ? value : out_of_range(begin, end, power);
#else  // libc++ reads no floating-point numbers with from_chars before version 20
  std::istringstream stream(std::string(begin, end));
  stream.imbue(std::locale::classic());
  double value = 0.0;
  if (stream >> value) return value;
  // Some libraries also fail for subnormal numbers, which they do read.
  return std::max(out_of_range(begin, end, power), value);
#endif
}

/// The part after `e`; null if there is no digit. Stops growing long before it could overflow.
inline const char* parse_power(const char* p, std::int64_t& power) {
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  if (!is_digit(*p)) return nullptr;
  std::int64_t magnitude = 0;
  for (; is_digit(*p); ++p) {
    if (magnitude < 1'000'000) magnitude = 10 * magnitude + (*p - '0');
  }
  power += negative ? -magnitude : magnitude;
  return p;
}

}  // namespace detail

/// Reads [+-] digits [. digits] [e [+-] digits] at `p` and returns where it ends, null if none is
/// there. The text must be followed by a character that belongs to no number. Overflow gives
/// infinity.
inline const char* parse_number(const char* p, double& value) {
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const begin = p;
  std::uint64_t mantissa = 0;
  for (; is_digit(*p); ++p) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p - '0');
  std::int64_t n_digits = p - begin;
  std::int64_t power = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    for (; is_digit(*p); ++p) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p - '0');
    power = fraction - p;
    n_digits -= power;
  }
  if (n_digits == 0) return nullptr;
  if (*p == 'e' || *p == 'E') {
    p = detail::parse_power(p + 1, power);
    if (p == nullptr) return nullptr;
  }
  const bool is_exact = n_digits <= 19 && mantissa <= (std::uint64_t{1} << 53);
  if (is_exact && power >= -22 && power <= 22) {
    const auto m = static_cast<double>(mantissa);
    value = power < 0 ? m / detail::powers_of_ten[-power] : m * detail::powers_of_ten[power];
  } else {
    value = detail::parse_exactly(begin, p, power);
  }
  if (negative) value = -value;
  return p;
}

/// Appends the shortest text that reads back as the same `value`.
template <class T>
void append_number(std::string& out, T value) {
#if defined(__cpp_lib_to_chars)
  char text[64];
  const auto result = std::to_chars(text, text + sizeof text, value);
  out.append(text, result.ptr);
#else
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream.precision(std::numeric_limits<T>::max_digits10);
  stream << value;
  out += stream.str();
#endif
}

inline void append_integer(std::string& out, std::int64_t value) {
  char text[24];
  const auto result = std::to_chars(text, text + sizeof text, value);
  out.append(text, result.ptr);
}

}  // namespace sublearn
