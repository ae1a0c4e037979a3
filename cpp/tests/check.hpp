// A test harness of one page, so that the C++ tests need nothing but a compiler.
//
//   TEST(sorting_twice_changes_nothing) { CHECK(sort(sort(v)) == sort(v)); }
//
// A failed check is reported with its file and line and the test goes on; an exception that leaves
// a test fails it. Tests run one after another in main.cpp; checks must not be used on other
// threads.
#pragma once

#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace sublearn::testing {

struct Test {
  std::string name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

/// Failed checks of the test that is running.
inline int& failures() {
  static int count = 0;
  return count;
}

inline void report(const char* file, int line, const std::string& message) {
  ++failures();
  std::cerr << file << ":" << line << ": " << message << "\n";
}

/// Equal infinities are near; NaN is near nothing.
inline bool is_near(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance;
}

/// Whether the test passed.
inline bool passes(const Test& test) {
  failures() = 0;
  try {
    test.run();
  } catch (const std::exception& error) {
    report(test.name.c_str(), 0, std::string("unexpected exception: ") + error.what());
  } catch (...) {
    report(test.name.c_str(), 0, "unexpected exception");
  }
  return failures() == 0;
}

}  // namespace sublearn::testing

#define TEST(name)                                                                 \
  static void name();                                                              \
  static const ::sublearn::testing::Registration registration_##name(#name, name); \
  static void name()

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) ::sublearn::testing::report(__FILE__, __LINE__, "not " #condition); \
  } while (false)

#define CHECK_NEAR(a, b, tolerance)                                                        \
  do {                                                                                     \
    const double check_a = (a), check_b = (b);                                             \
    if (!::sublearn::testing::is_near(check_a, check_b, tolerance)) {                      \
      ::sublearn::testing::report(                                                         \
          __FILE__, __LINE__,                                                              \
          #a " is " + std::to_string(check_a) + ", " #b " is " + std::to_string(check_b)); \
    }                                                                                      \
  } while (false)

#define CHECK_THROWS(statement, exception_type)                                  \
  do {                                                                           \
    bool check_caught = false;                                                   \
    try {                                                                        \
      statement;                                                                 \
    } catch (const exception_type&) {                                            \
      check_caught = true;                                                       \
    }                                                                            \
    if (!check_caught) {                                                         \
      ::sublearn::testing::report(__FILE__, __LINE__,                            \
                                  #statement " did not throw " #exception_type); \
    }                                                                            \
  } while (false)
