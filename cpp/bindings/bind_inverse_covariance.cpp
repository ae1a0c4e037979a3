// Python face of sparse inverse covariance, and the door through which LAPACK comes in.
#include <nanobind/stl/optional.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/lapack.hpp"
#include "sublearn/solvers/covariance/solver.hpp"

namespace sublearn::bindings {
namespace {

/// The address in one of SciPy's capsules, whose name is the routine's C signature.
Lapack::OnTriangle* routine_in(const nb::capsule& capsule) {
  const char* signature = capsule.name();
  const bool has_int32 =
      signature != nullptr && std::strstr(signature, "(char *, int *,") != nullptr;
  if (!has_int32) {
    refuse("set_lapack", "get routines with 32-bit integers",
           signature == nullptr ? "a capsule without a name" : signature);
  }
  return reinterpret_cast<Lapack::OnTriangle*>(capsule.data());
}

std::span<const double> square(const Matrix<double>& A, std::size_t n, const char* name) {
  if (A.shape(0) != n || A.shape(1) != n) {
    throw std::invalid_argument(std::string(name) + " must be square and as large as S");
  }
  return {A.data(), n * n};
}

nb::dict fit(const Matrix<double>& S, const PairWeights& weights,
             const std::optional<Matrix<double>>& start, const InverseCovarianceSettings& settings,
             Monitor& monitor) {
  const std::size_t n = S.shape(0);
  if (n == 0) throw std::invalid_argument("S must not be empty");
  const auto from = start ? square(*start, n, "start") : std::span<const double>{};
  nb::dict out;
  std::vector<double> precision, covariance;
  Status status{};
  std::unique_ptr<InverseCovariance> solver;
  {
    nb::gil_scoped_release unlocked;
    solver = std::make_unique<InverseCovariance>(square(S, n, "S"), weights,
                                                 static_cast<offset_t>(n), from, settings);
    status = solver->solve(monitor);
    precision = solver->gather(false);
    covariance = solver->gather(true);
  }
  out["precision"] = to_numpy(std::move(precision), n, n);
  out["covariance"] = to_numpy(std::move(covariance), n, n);
  out["labels"] = to_numpy(std::move(solver->labels));
  out["status"] = status;
  out["objective"] = solver->objective();
  out["certificate"] = solver->certificate();
  out["n_iter"] = solver->n_iter();
  using Row = InverseCovarianceIteration;
  out["iterations"] =
      to_columns(solver->iterations, "seconds", &Row::seconds, "objective", &Row::objective, "gap",
                 &Row::gap, "nnz_primal", &Row::n_nonzero, "block", &Row::block, "n_active",
                 &Row::n_active, "work", &Row::work);
  return out;
}

}  // namespace

void bind_inverse_covariance(nb::module_& m) {
  m.def(
      "set_lapack",
      [](const nb::capsule& dpotrf, const nb::capsule& dpotri) {
        lapack() = {routine_in(dpotrf), routine_in(dpotri)};
      },
      "dpotrf"_a, "dpotri"_a, "Take the routines of scipy.linalg.cython_lapack.__pyx_capi__.");
  nb::enum_<InverseMethod>(m, "InverseMethod", "The solver inside a block.")
      .value("newton", InverseMethod::newton)
      .value("lhac", InverseMethod::lhac);
  nb::class_<InverseCovarianceSettings>(m, "InverseCovarianceSettings",
                                        "See solvers/covariance/solver.hpp.")
      .def(nb::init<>())
      .def_rw("method", &InverseCovarianceSettings::method)
      .def_rw("tol", &InverseCovarianceSettings::tol)
      .def_rw("max_iter", &InverseCovarianceSettings::max_iter)
      .def_rw("n_threads", &InverseCovarianceSettings::n_threads);
  m.def(
      "fit_inverse_covariance",
      [](Matrix<double> S, double l1, double diagonal, std::optional<Matrix<double>> start,
         const InverseCovarianceSettings& settings,
         Monitor& monitor) { return fit(S, {l1, diagonal, {}}, start, settings, monitor); },
      "S"_a.noconvert(), "l1"_a, "diagonal"_a, "start"_a.noconvert().none(), "settings"_a,
      "monitor"_a, "Solve with one weight off the diagonal and one on it.");
  m.def(
      "fit_inverse_covariance",
      [](Matrix<double> S, Matrix<double> l1, std::optional<Matrix<double>> start,
         const InverseCovarianceSettings& settings, Monitor& monitor) {
        const auto each = square(l1, S.shape(0), "l1");
        return fit(S, {0.0, 0.0, {each.begin(), each.end()}}, start, settings, monitor);
      },
      "S"_a.noconvert(), "l1"_a.noconvert(), "start"_a.noconvert().none(), "settings"_a,
      "monitor"_a, "Solve with one weight for each entry.");
}

}  // namespace sublearn::bindings
