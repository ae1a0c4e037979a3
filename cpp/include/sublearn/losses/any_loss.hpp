// A loss that is chosen while the program runs. Loops over rows visit it once, outside the loop.
#pragma once

#include <variant>

#include "sublearn/losses/huber.hpp"
#include "sublearn/losses/logistic.hpp"
#include "sublearn/losses/of_margin.hpp"
#include "sublearn/losses/poisson.hpp"
#include "sublearn/losses/smoothed_line.hpp"
#include "sublearn/losses/squared.hpp"
#include "sublearn/losses/squared_hinge.hpp"

namespace sublearn {

using AnyLoss =
    std::variant<Logistic, Squared, OfMargin<SquaredHinge>, Huber, Poisson, SmoothedLine>;

inline double smoothness(const AnyLoss& loss) {
  return std::visit([](const auto& f) { return f.smoothness(); }, loss);
}

}  // namespace sublearn
