// Python face of core/: status, monitor, and what tests need to see of generator and threads.
#include "sublearn/core/monitor.hpp"

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/dense.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/top_k.hpp"

namespace sublearn::bindings {

template <class T>
void bind_append_above(nb::module_& m) {
  m.def(
      "append_above",
      [](Vector<T> scores, T threshold) {
        std::vector<index_t> out;
        append_above(as_span<T>(scores), threshold, out);
        return to_numpy(std::move(out));
      },
      "scores"_a.noconvert(), "threshold"_a, "Positions whose score is above the threshold.");
}

/// Results of top_k as two arrays (ids, scores).
template <class T>
nb::tuple ids_and_scores(std::span<const Scored<T>> best) {
  std::vector<index_t> ids(best.size());
  std::vector<T> scores(best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    ids[i] = best[i].id;
    scores[i] = best[i].score;
  }
  return nb::make_tuple(to_numpy(std::move(ids)), to_numpy(std::move(scores)));
}

inline std::size_t checked_k(std::int64_t k) {
  if (k < 0) refuse("top_k.k", "be non-negative", std::to_string(k));
  return static_cast<std::size_t>(k);
}

template <class T>
void bind_top_k(nb::module_& m) {
  m.def(
      "top_k",
      [](Vector<T> scores, std::int64_t k) {
        TopK<T> scratch;
        return ids_and_scores(top_k(as_span<T>(scores), checked_k(k), scratch));
      },
      "scores"_a.noconvert(), "k"_a,
      "Positions and scores of the `k` best, best first; ties by position, NaN last.");
  m.def(
      "top_k",
      [](Vector<T> scores, std::int64_t k, Vector<index_t> candidates) {
        const std::span<const index_t> ids = as_span<index_t>(candidates);
        check_ids("top_k.candidates", ids, static_cast<offset_t>(scores.size()));
        TopK<T> scratch;
        return ids_and_scores(top_k(ids, as_span<T>(scores), checked_k(k), scratch));
      },
      "scores"_a.noconvert(), "k"_a, "candidates"_a.noconvert(),
      "The same among the candidate positions only.");
}

void bind_status(nb::module_& m) {
  nb::enum_<Status>(m, "Status", "How a solver ended; sublearn.trace.Status has the sentences.")
      .value("converged", Status::converged)
      .value("max_iter", Status::max_iter)
      .value("time_limit", Status::time_limit)
      .value("stopped", Status::stopped)
      .value("stalled", Status::stalled);
}

void bind_monitor(nb::module_& m) {
  nb::class_<Monitor>(m, "Monitor", "Counters of a running solver, and the way to stop it.")
      .def(nb::init<>())
      .def("request_stop", &Monitor::request_stop)
      .def_prop_ro("stop_requested", &Monitor::stop_requested)
      .def(
          "add_done", [](Monitor& s, std::int64_t n) { s.n_done += n; }, "n"_a,
          "Count items that were finished earlier.")
      .def(
          "add",
          [](Monitor& s, double objective, double gap, std::int64_t nnz_primal,
             std::int64_t nnz_dual, std::int64_t work) {
            Monitor::add(s.objective, objective);
            Monitor::add(s.gap, gap);
            s.nnz_primal += nnz_primal;
            s.nnz_dual += nnz_dual;
            s.work += work;
          },
          "objective"_a, "gap"_a, "nnz_primal"_a, "nnz_dual"_a, "work"_a,
          "Add the totals of items that were finished elsewhere.")
      .def_prop_ro("n_done", [](const Monitor& s) { return s.n_done.load(); })
      .def_prop_ro("objective", [](const Monitor& s) { return s.objective.load(); })
      .def_prop_ro("gap", [](const Monitor& s) { return s.gap.load(); })
      .def_prop_ro("nnz_primal", [](const Monitor& s) { return s.nnz_primal.load(); })
      .def_prop_ro("nnz_dual", [](const Monitor& s) { return s.nnz_dual.load(); })
      .def_prop_ro("work", [](const Monitor& s) { return s.work.load(); });
}

void bind_random(nb::module_& m) {
  m.def(
      "random_uniform",
      [](std::uint64_t seed, std::uint64_t stream, std::size_t n) {
        Rng rng = Rng(seed).split(stream);
        std::vector<double> out(n);
        for (auto& value : out) value = rng.uniform();
        return to_numpy(std::move(out));
      },
      "seed"_a, "stream"_a, "n"_a, "The first `n` uniform numbers of stream (seed, stream).");

  m.def(
      "random_permutation",
      [](std::uint64_t seed, std::uint64_t stream, std::size_t n) {
        Rng rng = Rng(seed).split(stream);
        std::vector<index_t> out(n);
        for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<index_t>(i);
        rng.shuffle(std::span<index_t>(out));
        return to_numpy(std::move(out));
      },
      "seed"_a, "stream"_a, "n"_a, "A permutation of 0..n-1 drawn from stream (seed, stream).");
}

void bind_core(nb::module_& m) {
  bind_status(m);
  bind_monitor(m);
  bind_random(m);
  bind_append_above<float>(m);
  bind_append_above<double>(m);
  bind_top_k<float>(m);
  bind_top_k<double>(m);
}

}  // namespace sublearn::bindings
