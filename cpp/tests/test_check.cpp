// The harness itself: a harness that cannot fail proves nothing.
#include <stdexcept>

#include "check.hpp"

namespace {

using sublearn::testing::failures;
using sublearn::testing::is_near;

/// Runs a check that must fail and takes its failure back; its message goes nowhere.
template <class F>
bool fails(F&& check) {
  const int before = failures();
  std::cerr.setstate(std::ios::failbit);
  check();
  std::cerr.clear();
  const bool failed = failures() == before + 1;
  failures() = before;
  return failed;
}

}  // namespace

TEST(failed_checks_are_counted) {
  CHECK(fails([] { CHECK(1 == 2); }));
  CHECK(fails([] { CHECK_NEAR(1.0, 1.1, 0.01); }));
  CHECK(fails([] { CHECK_NEAR(1.0, std::nan(""), 1.0); }));
  CHECK(fails([] { CHECK_THROWS((void)0, std::runtime_error); }));
}

TEST(met_checks_are_not_counted) {
  CHECK(!fails([] { CHECK(1 == 1); }));
  CHECK(!fails([] { CHECK_NEAR(1.0, 1.1, 0.2); }));
  CHECK(!fails([] { CHECK_NEAR(INFINITY, INFINITY, 0.0); }));
  CHECK(!fails([] { CHECK_THROWS(throw std::runtime_error("x"), std::runtime_error); }));
}

TEST(an_exception_fails_the_test_it_leaves) {
  const int before = failures();
  std::cerr.setstate(std::ios::failbit);
  const bool passed = sublearn::testing::passes({"throws", [] { throw std::logic_error("x"); }});
  std::cerr.clear();
  failures() = before;
  CHECK(!passed);
}
