// The two LAPACK routines that the core needs, as pointers that its user fills in.
//
// NumPy's and SciPy's wheels carry a tuned LAPACK, and SciPy hands out the addresses of its
// routines. Taking these keeps the core free of a BLAS at link time, and a process free of a second
// one.
#pragma once

#include <stdexcept>

namespace sublearn {

struct Lapack {
  /// Cholesky factor of a symmetric matrix, and the inverse from that factor, in place, by the
  /// Fortran interface with 32-bit integers: (uplo, n, a, lda, info).
  using OnTriangle = void(char*, int*, double*, int*, int*);

  OnTriangle* dpotrf = nullptr;
  OnTriangle* dpotri = nullptr;
};

/// The routines of this process.
inline Lapack& lapack() {
  static Lapack routines;
  return routines;
}

/// Runs one of them on the triangle with column >= row of a row-major n x n matrix (LAPACK counts
/// by columns and calls it the lower one). True if LAPACK reports success.
inline bool run_on_triangle(Lapack::OnTriangle* routine, int n, double* a) {
  if (routine == nullptr) throw std::logic_error("the core has not been given LAPACK");
  char uplo = 'L';
  int info = 0;
  routine(&uplo, &n, a, &n, &info);
  return info == 0;
}

}  // namespace sublearn
