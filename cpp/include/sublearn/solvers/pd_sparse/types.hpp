// Settings, reports and results of PD-Sparse; the method is in solvers/pd_sparse/solver.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

enum class PDSearch {
  automatic,  ///< exact, until counted work says that parts of the labels are cheaper
  exact,      ///< all labels (20)
  partition,  ///< one of several parts of the labels (24)
  sampled,    ///< the same with a sample of the features (25)
};

struct PDSettings {
  double l1 = 0.1;
  bool has_bias = false;  ///< the last feature is a constant, free of l1
  double tol = 1e-2;      ///< on the duality gap, relative to the objective
  int max_iter = 100;
  PDSearch search = PDSearch::automatic;
  int n_partitions = 3;          ///< parts of the labels where a search looks at one
  int n_candidates = 0;          ///< labels that a search may find; 0 adapts the number
  int n_iter_no_change = 3;      ///< passes without better held-out precision before the end
  bool refit = false;            ///< solve again without l1 on the weights found; keep it if better
  bool is_refit_closed = false;  ///< over the masses found alone, without a search (4.3)
  std::uint64_t seed = 0;
  int n_threads = 1;  ///< for the passes that only read: evaluation and held-out rows
};

/// How a pass ended.
struct PDPass {
  double seconds = 0.0;  ///< since the start of the fit
  double primal = 0.0;   ///< at the last evaluation
  double dual = 0.0;
  double active = 0.0;    ///< labels in the active set of a sample, mean
  double held_out = 0.0;  ///< precision of the best label on the held-out rows
  std::int64_t work = 0;  ///< entries of W, X and V visited since the start
  std::int64_t nnz_primal = 0;
  std::int64_t nnz_dual = 0;
  int n_candidates = 0;
  int n_partitions = 0;
  bool is_evaluated = false;  ///< whether `primal` is of this pass
  bool is_refit = false;
};

/// What a fit returns: weights by feature, labels increasing within a feature.
template <class T>
struct PDSolution {
  std::vector<offset_t> indptr;
  std::vector<index_t> labels;
  std::vector<T> values;
  std::vector<PDPass> passes;
  Status status = Status::max_iter;  ///< also where held-out rows ended the fit
  double primal = 0.0;
  double dual = 0.0;
  bool is_certified = false;  ///< primal and dual are those of the weights returned
  bool is_refit = false;
};

/// The dual variables of all samples at some pass; enough to make V and W again.
template <class T>
struct PDDuals {
  struct Mass {
    index_t label;
    T mass;
  };
  std::vector<T> positive;                  ///< in the order of the samples' labels
  std::vector<std::vector<Mass>> negative;  ///< by sample, none of them zero
};

}  // namespace sublearn
