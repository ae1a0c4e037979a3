// How a sparse linear model is to be solved; one struct for all methods.
#pragma once

#include <cstdint>

#include "sublearn/core/types.hpp"

namespace sublearn {

enum class LinearMethod {
  newton,  ///< CD2 in an active set: proximal Newton steps by coordinate descent (newton_cd.hpp)
  lhac,    ///< low-rank Hessian in the same active set (lhac_inner.hpp)
  cd1,     ///< first-order stochastic coordinate descent over all features (stochastic_cd.hpp)
  interior_point,  ///< over all features (interior_point.hpp)
};

/// Of CD1; stochastic_cd.hpp says what they are.
enum class CurvatureBound { global, coordinate };

struct LinearSettings {
  LinearMethod method = LinearMethod::newton;
  double tol = 1e-6;   ///< on the relative duality gap
  int max_iter = 100;  ///< rounds of the active set, epochs of CD1, steps of interior point
  int n_threads = 1;   ///< of gradients

  // CD1
  CurvatureBound bound = CurvatureBound::coordinate;
  std::uint64_t seed = 0;
  int check_every = 5;  ///< epochs between certificates, each of which costs about one epoch

  // interior point
  offset_t most_direct = 400;  ///< unknowns up to which the Newton system is factored
};

}  // namespace sublearn
