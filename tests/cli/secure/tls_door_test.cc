#include "secure/tls_door.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "daemon_client.h"
#include "http/http_front.h"
#include "support/loopback.h"
#include "support/temp_directory.h"
#include "support/test_certificate.h"
#include "tls/tls_ends.h"

namespace edgecase::cli {
namespace {

constexpr int kLimitMs = 10'000;

int connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), size) != 0) return -1;
  return descriptor;
}

// Whether the other side ends the connection, within the limit.
bool is_ended(int descriptor) {
  pollfd ready = {descriptor, POLLIN, 0};
  char byte = 0;
  return poll(&ready, 1, kLimitMs) == 1 && read(descriptor, &byte, 1) == 0;
}

TEST_CASE("the door is open to its own process alone, and is no file") {
  const auto listener = net::listen_on_tcp(net::loopback_host(), 0);
  REQUIRE(listener.ok());
  const auto door = TlsDoor::open(test::loopback_authority(net::tcp_port_of(*listener)), "");
  REQUIRE_MESSAGE(door.ok(), door.status().message());
  const std::string name = (*door)->name();
  REQUIRE(name.size() > 1);
  CHECK(name[0] == '\0');

  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int stranger = connect_to(name);
    _exit(stranger >= 0 && is_ended(stranger) ? 0 : 1);
  }
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  CHECK(result == 0);

  // What comes from here reaches the daemon.
  const int own = connect_to(name);
  REQUIRE(own >= 0);
  pollfd ready = {listener->descriptor(), POLLIN, 0};
  CHECK(poll(&ready, 1, kLimitMs) == 1);
  close(own);
}

// What a client says of a daemon with this certificate; empty: it was answered.
std::string said_of(const test::TestCertificate& files) {
  const auto server = tls::TlsServer::load({files.certificate, files.key}, nullptr).value();
  http::Router router;
  router.add("GET", "/", http::Effect::Reads,
             [](http::Call& call) { call.answer_text(200, "text/plain", "here"); });
  net::Socket socket = net::listen_on_tcp(net::loopback_host(), 0).value();
  const std::string port = std::to_string(net::tcp_port_of(socket));
  std::vector<http::FrontListener> listeners;
  listeners.push_back(
      {std::move(socket),
       net::ListenerKind::Tcp,
       {[&server](net::Socket accepted) { return server->accept(std::move(accepted), 1); },
        tls::kTlsChannelBytes}});
  const auto front = http::Front::start({}, std::move(listeners), router).value();
  DaemonClient client({.host = "https://localhost:" + port,
                       .socket = "",
                       .token = "",
                       .tls_ca = files.certificate});
  const Result<std::string> answer = client.get_small("/");
  if (answer.ok()) return *answer == "here" ? "" : "another answer";
  CHECK(answer.status().code() == StatusCode::Unavailable);
  return answer.status().message();
}

TEST_CASE("a daemon whose certificate has ended, or has not begun, is not spoken to") {
  const test::TempDirectory directory;
  const auto made = [&directory](const char* begins, const char* ends) {
    return test::make_test_certificate(directory.path(), "board", test::KeyKind::Elliptic, ends,
                                       begins);
  };
  CHECK(said_of(made("20000101000000", "20990101000000")) == "");
  const std::string ended = said_of(made("20000101000000", "20240101000000"));
  CHECK_MESSAGE(ended.find("has expired") != std::string::npos, ended);
  const std::string early = said_of(made("20980101000000", "20990101000000"));
  CHECK_MESSAGE(early.find("in the future") != std::string::npos, early);
}

}  // namespace
}  // namespace edgecase::cli
