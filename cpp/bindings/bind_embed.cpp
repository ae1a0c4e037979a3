// Python face of the last layer of models with very many labels.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/solvers/embed/output_layer.hpp"

namespace sublearn::bindings {
namespace {

using Rows = Matrix<float>;
using Ids = Vector<index_t>;
using Offsets = Vector<offset_t>;
using Labels = Arrays<offset_t, index_t>;  ///< of samples: where those of each begin, and ids

OutputLossKind loss_kind(const std::string& name) {
  if (name == "softmax" || name == "nca") return OutputLossKind::softmax;
  if (name == "margin") return OutputLossKind::margin;
  if (name == "triplet" || name == "metric_triplet") return OutputLossKind::triplet;
  if (name == "smoothed_margin") return OutputLossKind::smoothed_margin;
  refuse("loss", "be softmax, nca, margin, triplet, metric_triplet or smoothed_margin", name);
}

GradientKind gradient_kind(const std::string& name) {
  if (name == "exact") return GradientKind::exact;
  if (name == "sampled") return GradientKind::sampled;
  if (name == "mips") return GradientKind::mips;
  if (name == "decomposed") return GradientKind::decomposed;
  refuse("gradient", "be exact, sampled, mips or decomposed", name);
}

StepRule step_rule(const std::string& name) {
  if (name == "sgd") return StepRule::sgd;
  if (name == "adagrad") return StepRule::adagrad;
  if (name == "adam") return StepRule::adam;
  refuse("optimizer", "be sgd, adagrad or adam", name);
}

LayerSettings make_settings(const std::string& loss, double mu, const std::string& gradient,
                            offset_t n_candidates, offset_t n_probe, offset_t n_sampled, double tau,
                            offset_t n_messages, bool widens, double refresh, bool counts_mean,
                            double l2, int n_threads) {
  if (!(mu > 0.0)) refuse("mu", "be positive", std::to_string(mu));
  if (n_candidates < 1 || n_probe < 1 || n_sampled < 1)
    throw std::invalid_argument("n_candidates, n_probe and n_sampled must be positive");
  if (n_messages < 0) refuse("n_messages", "be at least 0", std::to_string(n_messages));
  if (!(refresh >= 0.0)) refuse("refresh", "be at least 0", std::to_string(refresh));
  if (!(l2 >= 0.0)) refuse("l2", "be at least 0", std::to_string(l2));
  LayerSettings settings;
  settings.loss = {loss_kind(loss), mu};
  settings.candidates = {
      gradient_kind(gradient), n_candidates, n_probe, n_sampled, tau, n_messages, widens};
  settings.refresh = refresh;
  settings.counts_mean = counts_mean;
  settings.l2 = l2;
  settings.n_threads = n_threads;
  return settings;
}

/// Samples with their labels, checked against the layer.
struct Samples {
  Rows features;
  Labels labels;

  void check(const OutputLayer& layer) const {
    if (static_cast<offset_t>(features.shape(1)) != layer.stride())
      refuse("features", "have " + std::to_string(layer.stride()) + " columns",
             std::to_string(features.shape(1)));
    const auto offsets = as_span(std::get<0>(labels));
    const auto ids = as_span(std::get<1>(labels));
    check_compressed(offsets, ids, static_cast<offset_t>(features.shape(0)), layer.n_labels(),
                     "begin", "labels");
    check_offsets("begin", offsets, ids.size());
    if (!has_increasing_ids(offsets, ids))
      throw std::invalid_argument("labels must rise in each sample");
  }
  LabelBatch all() const {
    const auto& [begin, ids] = labels;
    return {features.data(), static_cast<offset_t>(features.shape(1)), begin.data(), ids.data(),
            static_cast<offset_t>(features.shape(0))};
  }
};

/// Some of the samples, copied side by side.
class Gathered {
 public:
  LabelBatch take(const LabelBatch& all, const offset_t* order, offset_t count) {
    features_.resize(static_cast<std::size_t>(count * all.stride));
    begin_.assign(1, 0);
    labels_.clear();
    for (offset_t i = 0; i < count; ++i) {
      std::copy_n(all.row(order[i]), all.stride, features_.data() + i * all.stride);
      const auto labels = all.labels_of(order[i]);
      labels_.insert(labels_.end(), labels.begin(), labels.end());
      begin_.push_back(static_cast<offset_t>(labels_.size()));
    }
    return {features_.data(), all.stride, begin_.data(), labels_.data(), count};
  }

 private:
  std::vector<float> features_;
  std::vector<offset_t> begin_;
  std::vector<index_t> labels_;
};

class Layer {
 public:
  /// `distances` has the first coordinate of each block whose scores are distances, and how many.
  Layer(Rows weights, offset_t dim, const std::string& optimizer, float damping,
        const std::vector<std::pair<offset_t, offset_t>>& distances)
      : layer_(std::vector<float>(weights.data(), weights.data() + weights.size()),
               static_cast<offset_t>(weights.shape(0)), dim, step_rule(optimizer), damping,
               checked(distances, dim)) {
    if (dim < 1 || static_cast<offset_t>(weights.shape(1)) != padded_dim(dim))
      refuse("weights",
             "have " + std::to_string(padded_dim(std::max<offset_t>(dim, 1))) + " columns",
             std::to_string(weights.shape(1)));
  }

  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  void clear_blocks() { layer_.clear_blocks(); }

  void add_block(offset_t first, offset_t count, Rows centres, Ids cluster_of) {
    if (first < 0 || count < 1 || first + count > layer_.dim())
      throw std::invalid_argument("first and count must lie within the dimensions");
    if (centres.shape(0) < 1 || static_cast<offset_t>(centres.shape(1)) != count)
      throw std::invalid_argument("centres must be as wide as the block");
    if (static_cast<offset_t>(cluster_of.size()) != layer_.n_labels())
      throw std::invalid_argument("cluster_of must have an entry for each label");
    check_ids("cluster_of", as_span<index_t>(cluster_of), static_cast<offset_t>(centres.shape(0)));
    nb::gil_scoped_release unlocked;
    std::vector<index_t> clusters(cluster_of.data(), cluster_of.data() + cluster_of.size());
    layer_.add_block(first, count, {centres.data(), centres.size()}, std::move(clusters));
  }

  /// loss, rows moved, inner products, samples seen, whether all of it was finite
  std::tuple<double, offset_t, offset_t, offset_t, bool> train(
      Rows features, Labels labels, Offsets order, const LayerSettings& settings,
      offset_t batch_size, std::pair<double, double> rates, std::uint64_t seed, Monitor& monitor) {
    const Samples samples{features, labels};
    samples.check(layer_);
    check_ready(settings);
    check_ids("order", as_span<offset_t>(order), static_cast<offset_t>(features.shape(0)));
    if (batch_size < 1) throw std::invalid_argument("batch_size must be positive");
    nb::gil_scoped_release unlocked;
    const auto n = static_cast<offset_t>(order.size());
    StepReport total;
    offset_t done = 0;
    for (; done < n && !monitor.stop_requested(); done += std::min(batch_size, n - done)) {
      const LabelBatch batch =
          gathered_.take(samples.all(), order.data() + done, std::min(batch_size, n - done));
      const StepReport step = layer_.differentiate(batch, settings, mixed(seed, done));
      if (!step.is_finite) return {total.loss, total.n_updates, total.work, done, false};
      const double share = static_cast<double>(done) / static_cast<double>(n);
      const double rate = rates.first + share * (rates.second - rates.first);
      layer_.move_rows(batch, settings, static_cast<float>(rate));
      total.loss += step.loss;
      total.n_updates += step.n_updates;
      total.work += step.work;
      monitor.n_done += batch.n_samples();
      Monitor::add(monitor.objective, step.loss);
      monitor.work += step.work;
    }
    return {total.loss, total.n_updates, total.work, done, true};
  }

  /// Losses by sample, gradient by (sample, label, value), and with respect to the features.
  std::tuple<NumpyVector<double>, NumpyVector<index_t>, NumpyVector<index_t>, NumpyVector<float>,
             NumpyMatrix<float>>
  differentiate(Rows features, Labels labels, const LayerSettings& settings, std::uint64_t seed) {
    last_ = Samples{features, labels};
    last_.check(layer_);
    check_ready(settings);
    std::vector<double> losses;
    std::vector<index_t> rows, columns;
    std::vector<float> values;
    std::vector<float> of_features(features.size());
    {
      nb::gil_scoped_release unlocked;
      layer_.differentiate(last_.all(), settings, seed);
      layer_.feature_gradient(of_features.data(), settings.n_threads);
      for (const SampleGradient& sample : layer_.gradients()) {
        for (const LabelGradient& item : sample.gradient) {
          rows.push_back(static_cast<index_t>(losses.size()));
          columns.push_back(item.label);
          values.push_back(item.value);
        }
        losses.push_back(sample.loss);
      }
    }
    return {to_numpy(std::move(losses)), to_numpy(std::move(rows)), to_numpy(std::move(columns)),
            to_numpy(std::move(values)),
            to_numpy(std::move(of_features), features.shape(0), features.shape(1))};
  }

  /// Moves the rows of the batch that `differentiate` has seen last.
  void move_rows(const LayerSettings& settings, double rate) {
    if (std::get<0>(last_.labels).size() == 0)
      throw std::invalid_argument("differentiate a batch first");
    nb::gil_scoped_release unlocked;
    layer_.move_rows(last_.all(), settings, static_cast<float>(rate));
  }

  void set_rows(Ids labels, Rows rows) {
    if (rows.shape(0) != labels.size() || static_cast<offset_t>(rows.shape(1)) != layer_.stride())
      throw std::invalid_argument("rows must have a row for each label, as wide as the weights");
    check_ids("labels", as_span<index_t>(labels), layer_.n_labels());
    nb::gil_scoped_release unlocked;
    layer_.set_rows(as_span<index_t>(labels), rows.data());
  }

  void count_towards_refresh(offset_t n_samples, const LayerSettings& settings) {
    nb::gil_scoped_release unlocked;
    layer_.count_towards_refresh(n_samples, settings);
  }

  NumpyMatrix<float> weights() const {
    const auto all = layer_.weights();
    return to_numpy(std::vector<float>(all.begin(), all.end()),
                    static_cast<std::size_t>(layer_.n_labels()),
                    static_cast<std::size_t>(layer_.stride()));
  }

 private:
  static std::vector<DistanceBlock> checked(
      const std::vector<std::pair<offset_t, offset_t>>& distances, offset_t dim) {
    std::vector<DistanceBlock> blocks;
    for (const auto& [first, count] : distances) {
      if (first < 0 || count < 0 || first > dim || count > dim - first - 2)
        throw std::invalid_argument("distances must lie within the dimensions");
      blocks.push_back({first, count});
    }
    return blocks;
  }
  static std::uint64_t mixed(std::uint64_t seed, offset_t step) {
    return Rng(seed).split(static_cast<std::uint64_t>(step))();
  }
  void check_ready(const LayerSettings& settings) {
    const std::size_t n = layer_.blocks().size();
    if (settings.candidates.kind == GradientKind::mips && n != 1)
      throw std::invalid_argument("gradient mips needs one block");
    if (settings.candidates.kind == GradientKind::decomposed && n == 0)
      throw std::invalid_argument("gradient decomposed needs blocks");
  }

  OutputLayer layer_;
  Gathered gathered_;
  Samples last_;
};

template <class T>
double loss_of(const std::string& loss, double mu, Vector<T> scores, offset_t n_positives,
               MutableVector<T> gradient) {
  if (gradient.size() != scores.size() || n_positives < 0 ||
      n_positives > static_cast<offset_t>(scores.size()))
    throw std::invalid_argument("gradient and n_positives must fit the scores");
  const OutputLoss wanted{loss_kind(loss), mu};
  std::vector<T> scratch;
  return output_loss<T>(wanted, as_span<T>(scores), static_cast<std::size_t>(n_positives),
                        std::span<T>(gradient.data(), gradient.size()), scratch);
}

/// Algorithm 11 on the scores of one sample in each block; changes `parts`, writes the gradient.
double pass_messages_of(const std::string& loss, double mu, MutableMatrix<double> parts,
                        offset_t n_positives, offset_t n_steps, double tau,
                        std::pair<double, double> rest, MutableVector<double> gradient) {
  if (gradient.size() != parts.shape(1) || parts.shape(0) < 1 || n_positives < 0 ||
      n_positives > static_cast<offset_t>(gradient.size()) || n_steps < 0)
    throw std::invalid_argument("gradient, n_positives and n_steps must fit the parts");
  MessagePassing<double> messages;
  return messages.run({loss_kind(loss), mu}, {parts.data(), parts.size()}, parts.shape(0),
                      static_cast<std::size_t>(n_positives), {n_steps, tau},
                      {rest.first, rest.second}, {gradient.data(), gradient.size()});
}

}  // namespace

void bind_embed(nb::module_& m) {
  nb::class_<LayerSettings>(m, "LayerSettings");
  m.def("layer_settings", &make_settings, nb::kw_only(), "loss"_a, "mu"_a, "gradient"_a,
        "n_candidates"_a, "n_probe"_a, "n_sampled"_a, "tau"_a, "n_messages"_a = 0,
        "widens"_a = false, "refresh"_a = 0.25, "counts_mean"_a = false, "l2"_a = 0.0,
        "n_threads"_a, "How an OutputLayer looks for labels and measures them.");
  nb::class_<Layer>(m, "OutputLayer", "Weights of very many labels, and the steps to train them.")
      .def(nb::init<Rows, offset_t, const std::string&, float,
                    const std::vector<std::pair<offset_t, offset_t>>&>(),
           "weights"_a, "dim"_a, "optimizer"_a, "damping"_a = 0.0F,
           "distances"_a = std::vector<std::pair<offset_t, offset_t>>())
      .def("clear_blocks", &Layer::clear_blocks)
      .def("add_block", &Layer::add_block, "first"_a, "count"_a, "centres"_a, "cluster_of"_a,
           "Index a block of coordinates; cluster_of says where each row goes.")
      .def("train", &Layer::train, "features"_a, "labels"_a, "order"_a, "settings"_a,
           "batch_size"_a, "rates"_a, "seed"_a, "monitor"_a,
           "loss, rows moved, inner products, samples seen, whether all was finite.")
      .def("differentiate", &Layer::differentiate, "features"_a, "labels"_a, "settings"_a, "seed"_a)
      .def("move_rows", &Layer::move_rows, "settings"_a, "rate"_a)
      .def("count_towards_refresh", &Layer::count_towards_refresh, "n_samples"_a, "settings"_a)
      .def("set_rows", &Layer::set_rows, "labels"_a, "rows"_a)
      .def("weights", &Layer::weights, "A copy of the padded rows.");
  m.def("output_loss", &loss_of<float>, "loss"_a, "mu"_a, "scores"_a.noconvert(), "n_positives"_a,
        "gradient"_a.noconvert());
  m.def("output_loss", &loss_of<double>, "loss"_a, "mu"_a, "scores"_a.noconvert(), "n_positives"_a,
        "gradient"_a.noconvert(), "Loss of candidates, positives first; writes the gradient.");
  m.def("pass_messages", &pass_messages_of, "loss"_a, "mu"_a, "parts"_a.noconvert(),
        "n_positives"_a, "n_steps"_a, "tau"_a, "rest"_a, "gradient"_a.noconvert(),
        "Algorithm 11 from the scores of each block; rest is a count and a score.");
}

}  // namespace sublearn::bindings
