// The loops of inner_products.cpp, compiled in a namespace for each instruction set. No guard: it
// is included several times. `kLane` is the number of floats in a register of that set,
// SUBLEARN_WIDEN what makes floats of as many bytes: g++ 12 converts vectors of bytes number by
// number.

typedef float Lane __attribute__((vector_size(kLane * sizeof(float))));
static_assert(kRowFloats % kLane == 0);

// Functions and not lambdas or templates of the type: a vector type is taken apart for the
// instruction set of the function that it stands in.
static inline Lane load(const float* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof lane);
  return lane;
}

static inline Lane load(const std::int8_t* from) {
#if defined(SUBLEARN_WIDEN)
  const auto wide = SUBLEARN_WIDEN(from);
  Lane lane;
  static_assert(sizeof wide == sizeof lane);
  std::memcpy(&lane, &wide, sizeof lane);
  return lane;
#else
  typedef std::int8_t Bytes __attribute__((vector_size(kLane)));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Lane);
#endif
}

typedef float Four __attribute__((vector_size(4 * sizeof(float))));

/// The upper half is added to the lower one until one number is left. Four at a time: number by
/// number it took longer than the products of a row with 128 numbers.
static inline float total(const Lane& lane) {
  Four parts[kLane / 4];
  std::memcpy(parts, &lane, sizeof lane);
  for (int width = kLane / 8; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) parts[k] += parts[k + width];
  }
  const Four pairs = parts[0] + __builtin_shufflevector(parts[0], parts[0], 2, 3, 0, 1);
  return pairs[0] + pairs[1];
}

/// A few rows by a few queries: each number that is loaded is used several times, and the sums do
/// not wait for each other.
template <int kRows, int kQueries, class T>
static inline void block(const T* rows, offset_t n_rows, const float* queries, offset_t stride,
                         float* out) {
  Lane sums[kRows][kQueries] = {};
  for (offset_t d = 0; d < stride; d += kLane) {
    Lane query[kQueries];
    for (int q = 0; q < kQueries; ++q) query[q] = load(queries + q * stride + d);
    for (int r = 0; r < kRows; ++r) {
      const Lane row = load(rows + r * stride + d);
      for (int q = 0; q < kQueries; ++q) sums[r][q] += row * query[q];
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int r = 0; r < kRows; ++r) out[q * n_rows + r] = total(sums[r][q]);
  }
}

template <int kRows, int kQueries, class T>
static inline void all_rows(const T* rows, offset_t n_rows, const float* queries, offset_t stride,
                            float* out) {
  offset_t r = 0;
  for (; r + kRows <= n_rows; r += kRows)
    block<kRows, kQueries>(rows + r * stride, n_rows, queries, stride, out + r);
  for (; r < n_rows; ++r) block<1, kQueries>(rows + r * stride, n_rows, queries, stride, out + r);
}

template <class T>
static void all(const T* rows, offset_t n_rows, const float* queries, offset_t n_queries,
                offset_t stride, float* out) {
  offset_t q = 0;
  for (; q + 4 <= n_queries; q += 4)
    all_rows<3, 4>(rows, n_rows, queries + q * stride, stride, out + q * n_rows);
  for (; q + 2 <= n_queries; q += 2)
    all_rows<4, 2>(rows, n_rows, queries + q * stride, stride, out + q * n_rows);
  for (; q < n_queries; ++q)
    all_rows<8, 1>(rows, n_rows, queries + q * stride, stride, out + q * n_rows);
}
