#include "output.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace edgecase::cli {
namespace {

// Standard input and error are a pipe and a file for as long as this lives: no terminal.
class NoTerminal {
 public:
  NoTerminal() : input_(dup(STDIN_FILENO)), error_(dup(STDERR_FILENO)) {
    REQUIRE(std::freopen("/dev/null", "r", stdin) != nullptr);
    captured_ = std::tmpfile();
    REQUIRE(captured_ != nullptr);
    std::fflush(stderr);
    dup2(fileno(captured_), STDERR_FILENO);
  }
  ~NoTerminal() {
    std::fflush(stderr);
    dup2(error_, STDERR_FILENO);
    dup2(input_, STDIN_FILENO);
    close(error_);
    close(input_);
    std::fclose(captured_);
  }
  NoTerminal(const NoTerminal&) = delete;
  NoTerminal& operator=(const NoTerminal&) = delete;

  std::string said() const {
    std::fflush(stderr);
    std::rewind(captured_);
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), captured_));
    return text;
  }

 private:
  int input_, error_;
  std::FILE* captured_ = nullptr;
};

TEST_CASE("without a terminal nothing is destroyed unless --yes says so") {
  const NoTerminal no_terminal;
  CHECK_FALSE(confirmed("this erases 12 readings of \x1b[31mkitchen", false));
  CHECK_FALSE(confirmed("this drops namespace plant", false, "plant"));
  const std::string said = no_terminal.said();
  CHECK(said.find("12 readings") != std::string::npos);
  CHECK(said.find("--yes") != std::string::npos);
  CHECK(said.find('\x1b') == std::string::npos);
  CHECK(confirmed("this erases 12 readings", true));
}

}  // namespace
}  // namespace edgecase::cli
