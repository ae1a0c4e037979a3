// Rivals of the structural SVMs, compiled: block-coordinate Frank-Wolfe and stochastic subgradient
// with the Viterbi oracle, and Soft-BCFW. The same steps as bcfw.py, subgradient.py and
// soft_bcfw.py beside this folder, where they are explained; tests compare the two.
//
// Built on demand by judges/compiled/__init__.py. Weights are dense arrays that Python owns.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace {

using Index = std::int32_t;
using Sparse = std::map<Index, double>;                    // label -> share
using Shares = std::map<std::pair<Index, Index>, double>;  // state -> share

/// Sequences one below the other, and weights: W by feature, T by label before.
struct Problem {
  std::size_t n_sequences, n_labels;
  const std::int64_t* begin;
  const std::int64_t* indptr;
  const Index* indices;
  const double* values;
  const Index* truth;
  double C, rho;
  double* W;
  double* T;

  void scores(std::size_t t, double scale, double* out) const {
    std::fill_n(out, n_labels, 0.0);
    for (auto k = indptr[t]; k < indptr[t + 1]; ++k) {
      const double* row = W + static_cast<std::size_t>(indices[k]) * n_labels;
      const double x = scale * values[k];
      for (std::size_t l = 0; l < n_labels; ++l) out[l] += x * row[l];
    }
  }
  void add(double* weights, std::size_t t, Index label, double amount) const {
    for (auto k = indptr[t]; k < indptr[t + 1]; ++k) {
      weights[static_cast<std::size_t>(indices[k]) * n_labels + static_cast<std::size_t>(label)] +=
          amount * values[k];
    }
  }
  double dot(std::size_t t, std::size_t u) const {
    double sum = 0.0;
    for (auto a = indptr[t], b = indptr[u]; a < indptr[t + 1] && b < indptr[u + 1];) {
      if (indices[a] == indices[b]) {
        sum += values[a++] * values[b++];
      } else if (indices[a] < indices[b]) {
        ++a;
      } else {
        ++b;
      }
    }
    return sum;
  }
  double& pair(Index a, Index b) const {
    return T[static_cast<std::size_t>(a) * n_labels + static_cast<std::size_t>(b)];
  }
};

/// The best labels of a sequence with its mistakes counted; scores are left in `nodes`.
class Oracle {
 public:
  std::vector<double> nodes;
  std::vector<Index> labels;

  void decode(const Problem& p, std::size_t i, double scale) {
    const auto first = static_cast<std::size_t>(p.begin[i]);
    const auto n = static_cast<std::size_t>(p.begin[i + 1]) - first, K = p.n_labels;
    nodes.resize(n * K);
    from_.resize(n * K);
    labels.resize(n);
    for (std::size_t t = 0; t < n; ++t) p.scores(first + t, scale, nodes.data() + t * K);
    best_.resize(K);
    raise(p, first, 0);
    before_ = best_;
    for (std::size_t t = 1; t < n; ++t) {
      std::fill(best_.begin(), best_.end(), -1e300);
      Index* from = from_.data() + t * K;
      for (std::size_t a = 0; a < K; ++a) {
        const double* row = p.T + a * K;
        const double base = before_[a];
        for (std::size_t b = 0; b < K; ++b) {
          const double value = base + scale * row[b];
          const bool wins = value > best_[b];
          best_[b] = wins ? value : best_[b];
          from[b] = wins ? static_cast<Index>(a) : from[b];
        }
      }
      before_ = best_;
      raise(p, first, t);
      for (std::size_t b = 0; b < K; ++b) best_[b] += before_[b];
      before_ = best_;
    }
    auto at =
        static_cast<Index>(std::max_element(before_.begin(), before_.end()) - before_.begin());
    for (std::size_t t = n; t-- > 0;) {
      labels[t] = at;
      if (t > 0) at = from_[t * K + static_cast<std::size_t>(at)];
    }
  }

 private:
  /// best_ <- scores of position t plus mistakes.
  void raise(const Problem& p, std::size_t first, std::size_t t) {
    for (std::size_t b = 0; b < p.n_labels; ++b) best_[b] = nodes[t * p.n_labels + b] + 1.0;
    best_[static_cast<std::size_t>(p.truth[first + t])] -= 1.0;
  }

  std::vector<double> best_, before_;
  std::vector<Index> from_;
};

class Judge {
 public:
  explicit Judge(const Problem& problem) : p_(problem) {}
  virtual ~Judge() = default;
  virtual double step(std::size_t i) = 0;
  virtual double mistakes() const { return 0.0; }  ///< of the dual point

 protected:
  std::size_t first(std::size_t i) const { return static_cast<std::size_t>(p_.begin[i]); }
  std::size_t length(std::size_t i) const {
    return static_cast<std::size_t>(p_.begin[i + 1] - p_.begin[i]);
  }
  Problem p_;
};

class Bcfw final : public Judge {
 public:
  explicit Bcfw(const Problem& problem) : Judge(problem), blocks_(problem.n_sequences) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::size_t n = length(i);
      blocks_[i].nodes.resize(n);
      for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t u = 0; u < n; ++u) {
          blocks_[i].gram.push_back(p_.dot(first(i) + t, first(i) + u));
        }
      }
    }
  }

  double step(std::size_t i) override {
    Block& block = blocks_[i];
    const std::size_t n = length(i), K = p_.n_labels;
    oracle_.decode(p_, i, 1.0);
    const auto& y = oracle_.labels;
    const Index* truth = p_.truth + first(i);
    std::vector<Sparse> nodes(n);
    Shares states;
    double mistakes = -block.mistakes, slope = 0.0, norm = 0.0;
    for (std::size_t t = 0; t < n; ++t) {
      mistakes += y[t] != truth[t];
      nodes[t][truth[t]] += 1.0;
      nodes[t][y[t]] -= 1.0;
      for (const auto& [label, share] : block.nodes[t]) nodes[t][label] -= share;
      for (const auto& [label, share] : nodes[t]) {
        slope += share * oracle_.nodes[t * K + static_cast<std::size_t>(label)];
      }
      if (t + 1 == n) break;
      states[{truth[t], truth[t + 1]}] += 1.0;
      states[{y[t], y[t + 1]}] -= 1.0;
    }
    for (const auto& [state, share] : block.states) states[state] -= share;
    for (const auto& [state, share] : states) {
      slope += share * p_.pair(state.first, state.second);
      norm += share * share;
    }
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        const double inner = block.gram[t * n + u];
        if (inner != 0.0) norm += (t == u ? 1.0 : 2.0) * inner * dot(nodes[t], nodes[u]);
      }
    }
    const double gap = p_.C * (mistakes - slope), curvature = p_.C * p_.C * norm;
    if (gap <= 0.0 || curvature <= 0.0) return std::max(gap, 0.0);
    const double gamma = std::min(1.0, gap / curvature);
    for (std::size_t t = 0; t < n; ++t) {
      for (const auto& [label, share] : nodes[t]) {
        if (share == 0.0) continue;
        p_.add(p_.W, first(i) + t, label, gamma * p_.C * share);
        block.nodes[t][label] += gamma * share;
      }
    }
    for (const auto& [state, share] : states) {
      p_.pair(state.first, state.second) += gamma * p_.C * share;
      block.states[state] += gamma * share;
    }
    block.mistakes += gamma * mistakes;
    return gap;
  }

  double mistakes() const override {
    double sum = 0.0;
    for (const Block& block : blocks_) sum += block.mistakes;
    return sum;
  }

 private:
  /// truth - marginals.
  struct Block {
    std::vector<Sparse> nodes;
    Shares states;
    std::vector<double> gram;
    double mistakes = 0.0;
  };

  static double dot(const Sparse& a, const Sparse& b) {
    double sum = 0.0;
    for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
      if (x->first == y->first) {
        sum += (x++)->second * (y++)->second;
      } else if (x->first < y->first) {
        ++x;
      } else {
        ++y;
      }
    }
    return sum;
  }

  std::vector<Block> blocks_;
  Oracle oracle_;
};

/// W and T hold the sum of subgradients; `late` those where the k-th counts k times.
class Subgradient final : public Judge {
 public:
  Subgradient(const Problem& problem, double* late_W, double* late_T)
      : Judge(problem), late_W_(late_W), late_T_(late_T) {}

  double step(std::size_t i) override {
    const double scale = p_.C * static_cast<double>(p_.n_sequences);
    oracle_.decode(p_, i, scale / std::max(t_, 1.0));
    t_ += 1.0;
    const auto& y = oracle_.labels;
    const Index* truth = p_.truth + first(i);
    if (std::equal(y.begin(), y.end(), truth)) return 0.0;
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (const auto& [label, sign] : {std::pair{truth[t], 1.0}, std::pair{y[t], -1.0}}) {
        p_.add(p_.W, first(i) + t, label, sign);
        p_.add(late_W_, first(i) + t, label, sign * t_);
      }
      if (t + 1 == y.size()) break;
      const auto cell = [&](Index a, Index b) {
        return static_cast<std::size_t>(a) * p_.n_labels + static_cast<std::size_t>(b);
      };
      for (const auto& [at, sign] :
           {std::pair{cell(truth[t], truth[t + 1]), 1.0}, std::pair{cell(y[t], y[t + 1]), -1.0}}) {
        p_.T[at] += sign;
        late_T_[at] += sign * t_;
      }
    }
    return 0.0;
  }

 private:
  double *late_W_, *late_T_;
  double t_ = 0.0;
  Oracle oracle_;
};

class SoftBcfw final : public Judge {
 public:
  explicit SoftBcfw(const Problem& problem) : Judge(problem) {
    const std::size_t K = p_.n_labels, n = static_cast<std::size_t>(p_.begin[p_.n_sequences]);
    nodes_.assign(n * K, 0.0);
    pairs_.resize(n);
    for (std::size_t t = 0; t < n; ++t) {
      nodes_[t * K + static_cast<std::size_t>(p_.truth[t])] = 1.0;
    }
    for (std::size_t i = 0; i < p_.n_sequences; ++i) {
      for (std::size_t t = first(i); t + 1 < first(i) + length(i); ++t) {
        Pair& pair = pairs_[t];
        pair.shares[{p_.truth[t], p_.truth[t + 1]}] = 1.0;
        pair.first[p_.truth[t]] = pair.second[p_.truth[t + 1]] = 1.0;
      }
    }
    scores_.resize(K);
    costs_[0].assign(K, 0.0);
    costs_[1].assign(K, 0.0);
  }

  double step(std::size_t i) override {
    const std::size_t begin = first(i), end = begin + length(i);
    for (std::size_t t = begin; t < end; ++t) node(t, begin, end);
    for (std::size_t t = begin; t + 1 < end; ++t) pair(t);
    return 0.0;
  }

 private:
  struct Pair {
    Shares shares;
    Sparse first, second;
  };

  void node(std::size_t t, std::size_t begin, std::size_t end) {
    const std::size_t K = p_.n_labels;
    const double C = p_.C, rho = p_.rho;
    double* p = nodes_.data() + t * K;
    p_.scores(t, 1.0, scores_.data());
    for (double& score : scores_) score = -C * (score + 1.0);
    scores_[static_cast<std::size_t>(p_.truth[t])] += C;
    double n_beside = 0.0;
    const auto pull = [&](const Sparse& marginal) {
      n_beside += 1.0;
      for (std::size_t l = 0; l < K; ++l) scores_[l] += rho * p[l];
      for (const auto& [label, share] : marginal) {
        scores_[static_cast<std::size_t>(label)] -= rho * share;
      }
    };
    if (t + 1 < end) pull(pairs_[t].first);
    if (t > begin) pull(pairs_[t - 1].second);
    const auto best = static_cast<std::size_t>(std::min_element(scores_.begin(), scores_.end()) -
                                               scores_.begin());
    double slope = scores_[best], norm = 1.0 - 2.0 * p[best];
    for (std::size_t l = 0; l < K; ++l) {
      slope -= p[l] * scores_[l];
      norm += p[l] * p[l];
    }
    const double gamma = line(slope, (C * C * p_.dot(t, t) + rho * n_beside) * norm);
    if (gamma == 0.0) return;
    for (std::size_t l = 0; l < K; ++l) {
      const double change = gamma * ((l == best ? 1.0 : 0.0) - p[l]);
      if (change == 0.0) continue;
      p_.add(p_.W, t, static_cast<Index>(l), -C * change);
      p[l] += change;
    }
  }

  /// The oracle looks at all states.
  void pair(std::size_t t) {
    const std::size_t K = p_.n_labels;
    const double C = p_.C, rho = p_.rho;
    Pair& at = pairs_[t];
    const Sparse* marginals[2] = {&at.first, &at.second};
    for (std::size_t side = 0; side < 2; ++side) {
      const double* p = nodes_.data() + (t + side) * K;
      for (std::size_t l = 0; l < K; ++l) costs_[side][l] = -rho / C * p[l];
      for (const auto& [label, share] : *marginals[side]) {
        costs_[side][static_cast<std::size_t>(label)] += rho / C * share;
      }
    }
    double most = -1e300;
    std::pair<Index, Index> best{0, 0};
    for (std::size_t a = 0; a < K; ++a) {
      const double* row = p_.T + a * K;
      double top = -1e300;
      for (std::size_t b = 0; b < K; ++b) top = std::max(top, row[b] - costs_[1][b]);
      if (top - costs_[0][a] <= most) continue;
      most = top - costs_[0][a];
      std::size_t b = 0;
      while (row[b] - costs_[1][b] != top) ++b;
      best = {static_cast<Index>(a), static_cast<Index>(b)};
    }
    Shares direction;
    for (const auto& [state, share] : at.shares) direction[state] -= share;
    direction[best] += 1.0;
    double slope = 0.0, norm = 0.0;
    for (const auto& [state, share] : direction) {
      const auto a = static_cast<std::size_t>(state.first);
      const auto b = static_cast<std::size_t>(state.second);
      slope -= C * share * (p_.T[a * K + b] - costs_[0][a] - costs_[1][b]);
      norm += share * share;
    }
    const double ends = distance(at.first, best.first) + distance(at.second, best.second);
    const double gamma = line(slope, C * C * norm + rho * ends);
    if (gamma == 0.0) return;
    for (const auto& [state, share] : direction) {
      p_.pair(state.first, state.second) -= gamma * C * share;
    }
    for (auto& [state, share] : at.shares) share *= 1.0 - gamma;
    at.shares[best] += gamma;
    std::erase_if(at.shares, [](const auto& each) { return each.second <= 1e-12; });
    move(at.first, best.first, gamma);
    move(at.second, best.second, gamma);
  }

  static void move(Sparse& marginal, Index label, double gamma) {
    for (auto& [_, share] : marginal) share *= 1.0 - gamma;
    marginal[label] += gamma;
  }
  static double distance(const Sparse& marginal, Index label) {
    double sum = 1.0;
    for (const auto& [l, share] : marginal) {
      sum += l == label ? (1.0 - share) * (1.0 - share) - 1.0 : share * share;
    }
    return sum;
  }
  static double line(double slope, double curvature) {
    return slope >= 0.0 || curvature <= 0.0 ? 0.0 : std::min(1.0, -slope / curvature);
  }

  std::vector<double> nodes_, scores_, costs_[2];
  std::vector<Pair> pairs_;
};

}  // namespace

extern "C" {

void* judge_make(int method, std::size_t n_sequences, std::size_t n_labels,
                 const std::int64_t* begin, const std::int64_t* indptr, const Index* indices,
                 const double* values, const Index* truth, double C, double rho, double* W,
                 double* T, double* late_W, double* late_T) {
  const Problem problem{n_sequences, n_labels, begin, indptr, indices, values, truth, C, rho, W, T};
  if (method == 0) return new Bcfw(problem);
  if (method == 1) return new Subgradient(problem, late_W, late_T);
  return new SoftBcfw(problem);
}
double judge_step(void* judge, std::size_t i) { return static_cast<Judge*>(judge)->step(i); }
double judge_mistakes(void* judge) { return static_cast<Judge*>(judge)->mistakes(); }
void judge_free(void* judge) { delete static_cast<Judge*>(judge); }

}  // extern "C"
