// The main program of harnesses where the compiler has no libFuzzer: tries every file of the given
// folders, then seeded mutations of them. It takes libFuzzer's options -runs, -seed,
// -max_total_time and -artifact_prefix, and passes over others.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes current;
std::string artifact_prefix;

/// Called as the process dies: keeps the input that it dies of.
void keep_current() {
  const std::string name = artifact_prefix + "crash-driver";
  if (std::FILE* file = std::fopen(name.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s\n", name.c_str());
  }
}

void try_input(Bytes input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

std::vector<Bytes> read_all(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder)) {
      paths.emplace_back(folder);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> out;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}

class Mutator {
 public:
  Mutator(std::vector<Bytes> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), rng_(seed) {
    if (seeds_.empty()) seeds_.push_back({});
  }

  Bytes next() {
    Bytes out = seeds_[below(seeds_.size())];
    for (std::size_t n = 1 + below(4); n > 0; --n) change(out);
    return out;
  }

 private:
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(rng_);
  }

  void change(Bytes& out) {
    static const std::string pieces[] = {
        "0",    "-1", "4294967296",         "1e400", "nan", "\n", " ", ":", ",", "\xff",
        "\x80", "\t", "9999999999999999999"};
    const std::size_t at = below(out.size() + 1);
    const auto place = out.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:  // a bit
        if (at < out.size()) out[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:  // a byte
        if (at < out.size()) out[at] = static_cast<std::uint8_t>(below(256));
        break;
      case 2:  // a gap
        out.erase(place,
                  place + static_cast<std::ptrdiff_t>(std::min(out.size() - at, 1 + below(8))));
        break;
      case 3: {  // something hostile
        const std::string& piece = pieces[below(std::size(pieces))];
        out.insert(place, piece.begin(), piece.end());
        break;
      }
      case 4: {  // a part of another file
        const Bytes& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size() + 1);
        const std::size_t length = std::min(other.size() - from, 1 + below(32));
        out.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(from + length));
        break;
      }
      default:
        out.resize(at);
    }
  }

  std::vector<Bytes> seeds_;
  std::mt19937_64 rng_;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, double> options = {{"runs", 100'000}, {"seed", 1}, {"max_total_time", 0}};
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (word[0] != '-') {
      folders.push_back(word);
    } else if (word.rfind("-artifact_prefix=", 0) == 0) {
      artifact_prefix = word.substr(equals + 1);
    } else if (equals != std::string::npos && options.count(word.substr(1, equals - 1)) > 0) {
      options[word.substr(1, equals - 1)] = std::atof(word.c_str() + equals + 1);
    }
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_current);
  const std::vector<Bytes> seeds = read_all(folders);
  for (const Bytes& seed : seeds) try_input(seed);
  Mutator mutator(seeds, static_cast<std::uint64_t>(options["seed"]));
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::size_t n = 0;
  const double limit = options["max_total_time"];
  for (; static_cast<double>(n) < options["runs"] && (limit <= 0 || seconds() < limit); ++n)
    try_input(mutator.next());
  std::printf("%zu files, %zu mutations, %.1f s\n", seeds.size(), n, seconds());
  return 0;
}
