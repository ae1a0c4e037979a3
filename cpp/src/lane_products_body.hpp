// The loops of lane_products.cpp, compiled in a namespace for each instruction set. No guard: it
// is included several times. `kLane` is the number of floats in a register of that set.

typedef float Lane __attribute__((vector_size(kLane * sizeof(float))));
constexpr int kParts = kPackRows / kLane;  // registers that hold a line of a pack

// A register at a time: an array of them copied as a whole goes through memory.
static inline Lane load(const float* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof lane);
  return lane;
}
static inline void store(float* to, const Lane& lane) { std::memcpy(to, &lane, sizeof lane); }

/// One pack by a few queries, whose sums stay in registers.
template <int kQueries>
static inline void pack_by(const float* pack, offset_t dim, const float* queries,
                           offset_t query_stride, float* out, offset_t out_stride) {
  Lane sums[kQueries][kParts] = {};
  for (offset_t d = 0; d < dim; ++d) {
    Lane line[kParts];
    for (int p = 0; p < kParts; ++p) line[p] = load(pack + d * kPackRows + p * kLane);
    for (int q = 0; q < kQueries; ++q) {
      const float number = queries[q * query_stride + d];
      for (int p = 0; p < kParts; ++p) sums[q][p] += line[p] * number;
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int p = 0; p < kParts; ++p) store(out + q * out_stride + p * kLane, sums[q][p]);
  }
}

static void all(const float* packs, offset_t count, offset_t dim, const float* queries,
                offset_t n_queries, offset_t query_stride, float* out, offset_t out_stride) {
  constexpr int kQueries = kLane < 16 ? 4 : 8;  // as many as registers can hold
  for (offset_t p = 0; p < count; ++p, packs += dim * kPackRows, out += kPackRows) {
    offset_t q = 0;
    for (; q + kQueries <= n_queries; q += kQueries)
      pack_by<kQueries>(packs, dim, queries + q * query_stride, query_stride, out + q * out_stride,
                        out_stride);
    for (; q < n_queries; ++q)
      pack_by<1>(packs, dim, queries + q * query_stride, query_stride, out + q * out_stride,
                 out_stride);
  }
}
