#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/serve.h"

namespace edgecase::app {
namespace {

// Many pages of constants.
constexpr std::size_t kConstants = 64 << 10;
constexpr std::array<std::uint32_t, kConstants> make_constants() {
  std::array<std::uint32_t, kConstants> constants{};
  for (std::uint32_t i = 0; i < kConstants; ++i) constants[i] = i * 2654435761u;
  return constants;
}
constexpr std::array<std::uint32_t, kConstants> kTable = make_constants();

std::uint64_t wrong_constants() {
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < kConstants; ++i) wrong += kTable[i] == i * 2654435761u ? 0u : 1u;
  return wrong;
}

}  // namespace

TEST_CASE("memory that is given back was not needed, whatever runs meanwhile") {
  static int variable = 7;
  std::vector<std::string> kept;
  for (int i = 0; i < 1'000; ++i) kept.push_back(std::string(100, 'k') + std::to_string(i));
  std::uint64_t wrong = 0;
  std::thread other([&wrong] {
    for (int round = 0; round < 50; ++round) wrong += wrong_constants();
  });
  for (int round = 0; round < 50; ++round) {
    give_memory_back();
    variable += 1;
  }
  other.join();
  CHECK(wrong == 0);
  CHECK(variable == 57);
  for (int i = 0; i < 1'000; ++i) {
    CHECK(kept[static_cast<std::size_t>(i)] == std::string(100, 'k') + std::to_string(i));
  }
}

namespace {

TEST_CASE("a notification is one datagram to the socket of the environment") {
  std::string directory = (std::filesystem::temp_directory_path() / "edgecase-XXXXXX").string();
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  const std::string path = directory + "/notify";
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);

  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "3000000", 1);
  unsetenv("WATCHDOG_PID");
  Notifier notifier = Notifier::from_environment();
  CHECK(notifier.watchdog_interval_ns() == 1'500'000'000);
  notifier.send("READY=1\nSTATUS=up");
  char text[64];
  const ssize_t got = recv(fd, text, sizeof text, 0);
  CHECK(std::string(text, static_cast<std::size_t>(got < 0 ? 0 : got)) == "READY=1\nSTATUS=up");

  setenv("WATCHDOG_PID", "1", 1);  // meant for another process
  CHECK(Notifier::from_environment().watchdog_interval_ns() == 0);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  CHECK(Notifier::from_environment().watchdog_interval_ns() == 1'500'000'000);
  for (const char* nonsense : {"", "x", "-5", "5s"}) {
    setenv("WATCHDOG_USEC", nonsense, 1);
    CHECK(Notifier::from_environment().watchdog_interval_ns() == 0);
  }

  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  unsetenv("WATCHDOG_PID");
  Notifier::from_environment().send("READY=1");  // nobody to tell
  close(fd);
  notifier.send("READY=1");  // nobody listens any more
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace edgecase::app
