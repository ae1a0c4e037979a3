// SUBLEARN_MULTIVERSION before a function compiles it once per instruction set; the loader picks
// one. Needs ELF ifuncs, which sanitizers and other object formats do not have: there it means
// nothing.
#pragma once

#if defined(__has_attribute)
#if __has_attribute(target_clones) && defined(__x86_64__) && defined(__ELF__) && \
    !defined(SUBLEARN_SANITIZE) && !defined(SUBLEARN_NATIVE)
#define SUBLEARN_MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#endif
#ifndef SUBLEARN_MULTIVERSION
#define SUBLEARN_MULTIVERSION
#endif

/// For the body of a multiversioned function: compiled for the instruction set of its caller.
#define SUBLEARN_INLINE __attribute__((always_inline)) inline
