// Maximum flow by two search trees that are kept between augmentations (Boykov and Kolmogorov
// 2004): the method of choice for graphs of images, where paths are short, and one that can go on
// after capacities were added.
//
// Capacities are integers: a saturated arc is at exactly zero, so the trees stay what they claim to
// be. Whoever has real numbers scales them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class MaxFlow {
 public:
  using Capacity = std::int64_t;
  enum class Side : std::uint8_t { neither, source, sink };

  explicit MaxFlow(index_t n_nodes) : nodes_(static_cast<std::size_t>(n_nodes)) {}

  void reserve_edges(std::size_t n) { arcs_.reserve(2 * n); }

  /// Arcs from i to j and from j to i; before the first solve().
  void add_edge(index_t i, index_t j, Capacity there, Capacity back) {
    add_arc(i, j, there);
    add_arc(j, i, back);
  }

  /// An arc from the source to node i, or to the sink if the capacity is negative. Allowed after
  /// solve() as well, which then goes on from the flow that it had.
  void add_terminal(index_t i, Capacity capacity) {
    Node& node = at(i);
    if ((node.terminal > 0) != (capacity > 0)) {
      flow_ += std::min(std::abs(node.terminal), std::abs(capacity));
    }
    node.terminal += capacity;
    if (is_started_ && !node.is_marked) {
      node.is_marked = true;
      marked_.push_back(i);
    }
  }

  /// False if the monitor asked to stop; the flow is then not maximal, and solve() may go on.
  bool solve(const Monitor* monitor = nullptr) {
    is_started_ ? plant_marked() : plant_all();
    is_started_ = true;
    for (index_t i = next_active(); i != kNone; i = next_active()) {
      if (monitor != nullptr && ++n_steps_ % 1024 == 0 && monitor->stop_requested()) {
        activate(i);
        return false;
      }
      index_t bridge = grow(i);
      while (bridge != kNone) {
        ++time_;
        augment(bridge);
        adopt_orphans();
        bridge = at(i).parent == kNone ? kNone : grow(i);
      }
    }
    return true;
  }

  Capacity flow() const { return flow_; }

  /// Whether the source reaches the node, or the node the sink, in what the flow leaves over. Both
  /// sets are the same for every maximum flow.
  Side side(index_t i) const {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    if (node.parent == kNone) return Side::neither;
    return node.in_sink ? Side::sink : Side::source;
  }

  /// The sum of what all arcs of a node can carry, those to source and sink included.
  Capacity total_capacity(index_t i) const {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    Capacity sum = std::abs(node.terminal);
    for (index_t e = node.first; e != kNone; e = arc(e).next) sum += arc(e).rest + arc(e ^ 1).rest;
    return sum;
  }

 private:
  static constexpr index_t kNone = -1;
  static constexpr index_t kTerminal = -2;  ///< parent: source or sink itself
  static constexpr index_t kOrphan = -3;    ///< parent: lost, to be adopted or let go
  static constexpr index_t kFar = std::numeric_limits<index_t>::max();

  struct Arc {
    index_t head;
    index_t next;
    Capacity rest;
  };
  struct Node {
    Capacity terminal = 0;  ///< left from the source, or if negative, to the sink
    index_t first = kNone;
    index_t parent = kNone;  ///< the arc to the parent, whichever tree
    index_t time = 0;        ///< when `distance` was last known to be right
    index_t distance = 0;    ///< to the root of its tree
    bool in_sink = false;
    bool is_active = false;
    bool is_marked = false;
  };

  Node& at(index_t i) { return nodes_[static_cast<std::size_t>(i)]; }
  Arc& arc(index_t e) { return arcs_[static_cast<std::size_t>(e)]; }
  const Arc& arc(index_t e) const { return arcs_[static_cast<std::size_t>(e)]; }

  void add_arc(index_t from, index_t to, Capacity capacity) {
    arcs_.push_back({to, at(from).first, capacity});
    at(from).first = static_cast<index_t>(arcs_.size()) - 1;
  }

  // ---- active nodes, first in, first out

  void activate(index_t i) {
    if (at(i).is_active) return;
    at(i).is_active = true;
    active_.push_back(i);
  }

  index_t next_active() {
    while (active_front_ < active_.size()) {
      const index_t i = active_[active_front_++];
      if (2 * active_front_ > active_.size() + 1024) {
        active_.erase(active_.begin(), active_.begin() + static_cast<offset_t>(active_front_));
        active_front_ = 0;
      }
      at(i).is_active = false;
      if (at(i).parent != kNone) return i;
    }
    active_.clear();
    active_front_ = 0;
    return kNone;
  }

  // ---- planting: nodes with capacity to a terminal are children of it

  void root(index_t i) {
    Node& node = at(i);
    node.parent = kTerminal;
    node.in_sink = node.terminal < 0;
    node.time = time_;
    node.distance = 1;
    activate(i);
  }

  void plant_all() {
    for (index_t i = 0; i < static_cast<index_t>(nodes_.size()); ++i) {
      if (at(i).terminal != 0) root(i);
    }
  }

  /// Nodes whose terminal capacity was changed; a node that changes its tree loses its children.
  void plant_marked() {
    ++time_;
    for (const index_t i : marked_) {
      Node& node = at(i);
      node.is_marked = false;
      if (node.terminal == 0) {
        if (node.parent == kTerminal) orphan(i);
        continue;
      }
      const bool to_sink = node.terminal < 0;
      if (node.parent == kNone || node.in_sink != to_sink) {
        for (index_t e = node.first; e != kNone; e = arc(e).next) {
          const index_t j = arc(e).head;
          if (at(j).parent == (e ^ 1)) orphan(j);
          if (at(j).parent != kNone && at(j).in_sink != to_sink) activate(j);
        }
      }
      root(i);
    }
    marked_.clear();
    adopt_orphans();
  }

  // ---- growing

  /// What arc e still carries away from the root of a tree, seen from the tree's node.
  Capacity outward(bool in_sink, index_t e) const { return arc(in_sink ? e ^ 1 : e).rest; }

  /// Takes the free neighbours of i into its tree; returns an arc to the other tree, if there is.
  index_t grow(index_t i) {
    const Node node = at(i);
    for (index_t e = node.first; e != kNone; e = arc(e).next) {
      if (outward(node.in_sink, e) == 0) continue;
      Node& other = at(arc(e).head);
      if (other.parent == kNone) {
        other.in_sink = node.in_sink;
        adopt(other, e ^ 1, node.time, node.distance + 1);
        activate(arc(e).head);
      } else if (other.in_sink != node.in_sink) {
        return node.in_sink ? e ^ 1 : e;
      } else if (other.time <= node.time && other.distance > node.distance + 1 &&
                 other.parent >= 0) {
        adopt(other, e ^ 1, node.time, node.distance + 1);  // a shorter way to the root
      }
    }
    return kNone;
  }

  static void adopt(Node& node, index_t parent, index_t time, index_t distance) {
    node.parent = parent;
    node.time = time;
    node.distance = distance;
  }

  // ---- augmenting along source .. tail -> head .. sink, where `bridge` is that arc

  void augment(index_t bridge) {
    const index_t tail = arc(bridge ^ 1).head, head = arc(bridge).head;
    Capacity amount = arc(bridge).rest;
    amount = std::min(amount, bottleneck(tail));
    amount = std::min(amount, bottleneck(head));
    arc(bridge).rest -= amount;
    arc(bridge ^ 1).rest += amount;
    push(tail, amount);
    push(head, amount);
    flow_ += amount;
  }

  Capacity bottleneck(index_t i) {
    Capacity least = std::numeric_limits<Capacity>::max();
    for (; at(i).parent != kTerminal; i = arc(at(i).parent).head) {
      least = std::min(least, inward(at(i)));
    }
    return std::min(least, std::abs(at(i).terminal));
  }

  /// What the arc between a node and its parent still carries, from source towards sink.
  Capacity inward(const Node& node) const {
    return arc(node.in_sink ? node.parent : node.parent ^ 1).rest;
  }

  void push(index_t i, Capacity amount) {
    for (; at(i).parent != kTerminal;) {
      const Node& node = at(i);
      const index_t e = node.in_sink ? node.parent : node.parent ^ 1;
      const index_t up = arc(node.parent).head;
      arc(e).rest -= amount;
      arc(e ^ 1).rest += amount;
      if (arc(e).rest == 0) orphan(i);
      i = up;
    }
    at(i).terminal += at(i).in_sink ? amount : -amount;
    if (at(i).terminal == 0) orphan(i);
  }

  // ---- orphans look for a new parent in their tree, or leave it

  void orphan(index_t i) {
    at(i).parent = kOrphan;
    orphans_.push_back(i);
  }

  void adopt_orphans() {
    for (std::size_t k = 0; k < orphans_.size(); ++k) {
      if (at(orphans_[k]).parent == kOrphan) find_parent(orphans_[k]);
    }
    orphans_.clear();
  }

  void find_parent(index_t i) {
    const bool in_sink = at(i).in_sink;
    index_t best = kNone, nearest = kFar;
    for (index_t e = at(i).first; e != kNone; e = arc(e).next) {
      const index_t j = arc(e).head;
      if (outward(in_sink, e ^ 1) == 0 || at(j).in_sink != in_sink || at(j).parent == kNone) {
        continue;
      }
      const index_t distance = distance_to_root(j);
      if (distance < nearest) {
        nearest = distance;
        best = e;
      }
    }
    if (best != kNone) return adopt(at(i), best, time_, nearest + 1);
    at(i).parent = kNone;
    for (index_t e = at(i).first; e != kNone; e = arc(e).next) {
      const index_t j = arc(e).head;
      if (at(j).in_sink != in_sink || at(j).parent == kNone) continue;
      if (outward(in_sink, e ^ 1) > 0) activate(j);
      if (at(j).parent == (e ^ 1)) orphan(j);
    }
  }

  /// Steps from j to the root of its tree, or kFar if the way ends at an orphan. The way is
  /// stamped, so that each node of it is walked once between two augmentations.
  index_t distance_to_root(index_t j) {
    index_t steps = 0;
    for (index_t k = j;; k = arc(at(k).parent).head) {
      if (at(k).time == time_) {
        steps += at(k).distance;
        break;
      }
      ++steps;
      if (at(k).parent == kTerminal) {
        at(k).time = time_;
        at(k).distance = 1;
        break;
      }
      if (at(k).parent < 0) return kFar;
    }
    index_t distance = steps;
    for (index_t k = j; at(k).time != time_; k = arc(at(k).parent).head) {
      at(k).time = time_;
      at(k).distance = distance--;
    }
    return steps;
  }

  std::vector<Node> nodes_;
  std::vector<Arc> arcs_;  ///< arc e and its reverse e ^ 1
  std::vector<index_t> active_;
  std::size_t active_front_ = 0;
  std::vector<index_t> orphans_;
  std::vector<index_t> marked_;
  Capacity flow_ = 0;
  index_t time_ = 0;
  std::uint32_t n_steps_ = 0;
  bool is_started_ = false;
};

}  // namespace sublearn
