// The extension module sublearn._core: one line per binding file.
#include <nanobind/nanobind.h>

namespace sublearn::bindings {
void bind_core(nanobind::module_& m);
void bind_embed(nanobind::module_& m);
void bind_features(nanobind::module_& m);
void bind_forecast(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_hierarchy(nanobind::module_& m);
void bind_inverse_covariance(nanobind::module_& m);
void bind_io(nanobind::module_& m);
void bind_latent(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
void bind_linear_solvers(nanobind::module_& m);
void bind_label_scores(nanobind::module_& m);
void bind_losses(nanobind::module_& m);
void bind_map(nanobind::module_& m);
void bind_mips(nanobind::module_& m);
void bind_multinomial(nanobind::module_& m);
void bind_pairwise_multilabel(nanobind::module_& m);
void bind_pd_sparse(nanobind::module_& m);
void bind_ppd_sparse(nanobind::module_& m);
void bind_prox(nanobind::module_& m);
void bind_skip_gram(nanobind::module_& m);
void bind_structured(nanobind::module_& m);
void bind_trim(nanobind::module_& m);
void bind_uai(nanobind::module_& m);
}  // namespace sublearn::bindings

NB_MODULE(_core, m) {
  // Objects that live until the end of the process, such as a taxonomy in a module of a user, are
  // no leaks; nanobind would print a line for each.
  nanobind::set_leak_warnings(false);
  m.doc() = "Compiled core of sublearn. Private: names and signatures may change in any release.";
  sublearn::bindings::bind_core(m);
  sublearn::bindings::bind_embed(m);
  sublearn::bindings::bind_features(m);
  sublearn::bindings::bind_forecast(m);
  sublearn::bindings::bind_graph(m);
  sublearn::bindings::bind_hierarchy(m);
  sublearn::bindings::bind_inverse_covariance(m);
  sublearn::bindings::bind_io(m);
  sublearn::bindings::bind_latent(m);
  sublearn::bindings::bind_linear(m);
  sublearn::bindings::bind_linear_solvers(m);
  sublearn::bindings::bind_label_scores(m);
  sublearn::bindings::bind_losses(m);
  sublearn::bindings::bind_map(m);
  sublearn::bindings::bind_mips(m);
  sublearn::bindings::bind_multinomial(m);
  sublearn::bindings::bind_pairwise_multilabel(m);
  sublearn::bindings::bind_pd_sparse(m);
  sublearn::bindings::bind_ppd_sparse(m);
  sublearn::bindings::bind_prox(m);
  sublearn::bindings::bind_skip_gram(m);
  sublearn::bindings::bind_structured(m);
  sublearn::bindings::bind_trim(m);
  sublearn::bindings::bind_uai(m);
}
