#include "app/notify.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace edgecase::app {
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
