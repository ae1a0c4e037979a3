// Runs every registered test, or those whose names contain the first argument.
#include "check.hpp"

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  int n_passed = 0;
  int n_failed = 0;
  for (const auto& test : sublearn::testing::tests()) {
    if (test.name.find(wanted) == std::string::npos) continue;
    const bool passed = sublearn::testing::passes(test);
    ++(passed ? n_passed : n_failed);
    if (!passed) std::cerr << "FAILED " << test.name << "\n";
  }
  std::cout << n_passed << " passed, " << n_failed << " failed\n";
  return n_failed == 0 && n_passed > 0 ? 0 : 1;
}
