#include "tls/tls_ends.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "app/serve.h"
#include "config/configuration.h"
#include "daemon/http/http_fixture.h"
#include "daemon/mqtt/listener/listener_fixture.h"
#include "http/http_front.h"
#include "support/loopback.h"
#include "support/temp_directory.h"
#include "support/test_certificate.h"
#include "support/test_share.h"

using namespace edgecase;
using namespace edgecase::test;
using edgecase::tls::TlsServer;

namespace {

bool runs(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

// True: the test can go on.
bool have(const char* program) {
  const bool found = runs(std::string("command -v ") + program);
  if (!found) MESSAGE("skipped: " << program << " is not installed");
  return found;
}

std::shared_ptr<TlsServer> load(const TestCertificate& files) {
  return TlsServer::load({files.certificate, files.key}, nullptr).value();
}

net::ChannelMaker channels_of(const std::shared_ptr<TlsServer>& server) {
  return {[server](net::Socket socket) { return server->accept(std::move(socket), 1); },
          tls::kTlsChannelBytes};
}

// A front that answers GET with `answer_bytes` letters and POST with the body's size.
struct TlsFront {
  explicit TlsFront(const net::ChannelMaker& channels, std::size_t answer_bytes = 1,
                    http::FrontOptions options = {}) {
    router.add("GET", "/", http::Effect::Reads, [answer_bytes](http::Call& call) {
      call.answer_text(200, "text/plain", std::string(answer_bytes, 'x'));
    });
    router.add("POST", "/", http::Effect::Changes, [](http::Call& call) {
      call.answer_text(200, "text/plain", std::to_string(call.body().size()));
    });
    net::Socket socket = net::listen_on_tcp(net::loopback_host(), 0).value();
    port = net::tcp_port_of(socket);
    std::vector<http::FrontListener> listeners;
    listeners.push_back({std::move(socket), net::ListenerKind::Tcp, channels});
    front = http::Front::start(options, std::move(listeners), router).value();
  }
  std::string url() const { return "https://" + edgecase::test::loopback_authority(port) + "/"; }

  http::Router router;
  std::uint16_t port = 0;
  std::unique_ptr<http::Front> front;
};

}  // namespace

TEST_CASE("tls: curl talks to it, with either kind of key, and only to the one it trusts") {
  if (!have("curl")) return;
  const TempDirectory directory;
  for (const KeyKind kind : {KeyKind::Elliptic, KeyKind::Rsa}) {
    const TestCertificate files = make_test_certificate(directory.path(), "board", kind);
    const TestCertificate other = make_test_certificate(directory.path(), "other");
    const TlsFront f(channels_of(load(files)));
    const std::string curl = "curl -sf --max-time 60 --cacert ";
    CHECK(runs("test \"$(" + curl + files.certificate + " " + f.url() + ")\" = x"));
    CHECK_FALSE(runs(curl + other.certificate + " " + f.url()));
    // In clear there is no answer.
    CHECK_FALSE(
        runs("curl -s --max-time 60 http://" + edgecase::test::loopback_authority(f.port) + "/"));
    // What is not safe any more is not spoken.
    CHECK_FALSE(runs(curl + files.certificate +
                     " --tlsv1.0 --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 " + f.url()));
    CHECK_FALSE(runs(curl + files.certificate + " --tls-max 1.2 --ciphers AES128-SHA " + f.url()));
    CHECK(f.front->connections() < 8);
  }
}

TEST_CASE("tls: large bodies, large answers and many requests a connection pass whole") {
  if (!have("curl")) return;
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "board");
  constexpr std::size_t kAnswerBytes = 5'000'000;
  const TlsFront f(channels_of(load(files)), kAnswerBytes);
  const std::string curl = "curl -sf --max-time 120 --cacert " + files.certificate + " ";
  const std::string body = directory / "body";
  REQUIRE(runs("head -c 3000000 /dev/zero > " + body));
  // Announced by "Expect: 100-continue", as curl does for large bodies.
  CHECK(runs("test \"$(" + curl + "--data-binary @" + body + " " + f.url() + ")\" = 3000000"));
  CHECK(runs("test \"$(" + curl + f.url() + " | wc -c)\" = " + std::to_string(kAnswerBytes)));
  // A reader that takes its time: records are cut where the socket is full.
  CHECK(runs("test \"$(" + curl + "--limit-rate 8M " + f.url() + " | tr -d x | wc -c)\" = 0"));
  // One connection for all: what a record held beyond one request is the next one's.
  const std::string three = f.url() + " " + f.url() + " " + f.url();
  CHECK(runs("test \"$(" + curl + three + " | wc -c)\" = " + std::to_string(3 * kAnswerBytes)));
}

TEST_CASE("tls: two requests in one record are both answered") {
  if (!have("python3")) return;
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "board");
  const TlsFront f(channels_of(load(files)));
  const std::string program = directory / "two.py";
  std::ofstream(program) << R"(import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
with context.wrap_socket(socket.create_connection(("localhost", int(sys.argv[2])), 60),
                         server_hostname="localhost") as s:
    s.settimeout(60)
    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
    got = b""
    while got.count(b"HTTP/1.1 200") < 2 or not got.endswith(b"x"):
        piece = s.recv(4096)
        assert piece, got
        got += piece
    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    while s.recv(4096):  # an end without close_notify would raise
        pass
)";
  CHECK(runs("python3 " + program + " " + files.certificate + " " + std::to_string(f.port)));
}

TEST_CASE("tls: who never finishes its handshake is closed, and costs others nothing") {
  const TempDirectory directory;
  http::FrontOptions options;
  options.head_ns = options.idle_ns = http::kSecondNs / 5;
  options.sweep_ns = http::kSecondNs / 50;
  const TlsFront f(channels_of(load(make_test_certificate(directory.path(), "board"))), 1, options);
  http::test::Client silent = http::test::Client::over_tcp(f.port);
  http::test::Client half = http::test::Client::over_tcp(f.port);
  CHECK(half.send(std::string("\x16\x03\x01\x02\x00\x01", 6)));
  CHECK(silent.closed());
  CHECK(half.closed());
  http::test::Client stranger = http::test::Client::over_tcp(f.port);
  CHECK(stranger.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(stranger.closed());
}

TEST_CASE("tls: what waits until the keys are agreed on can be sent once receiving has done that") {
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "board");
  std::array<int, 2> pair{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
  const auto client = tls::TlsClient::open(tls::TlsClient::load(files.certificate, {}).value(),
                                           net::Socket(pair[0]), "localhost", std::nullopt);
  const auto server = load(files)->accept(net::Socket(pair[1]), 1);
  char byte = 0;
  for (int flight = 0; flight < 2; ++flight) {
    REQUIRE(client->send("x").outcome == net::Outcome::Blocked);
    REQUIRE(client->send_awaits_receive());
    REQUIRE(server->receive(&byte, 1).outcome == net::Outcome::Blocked);
  }
  // The server's last flight is on its way, after which it says nothing more.
  REQUIRE(client->receive(&byte, 1).outcome == net::Outcome::Blocked);
  CHECK_FALSE(client->send_awaits_receive());
  CHECK(client->send("x").outcome == net::Outcome::Done);
  CHECK(server->receive(&byte, 1).bytes == 1);
  CHECK(byte == 'x');
}

TEST_CASE("tls: connections take their memory from the budget, and idle ones give way") {
  const TempDirectory directory;
  http::FrontOptions options;
  options.in_flight_limit_bytes = 3 * tls::kTlsChannelBytes;
  options.slow_ns = 0;
  const TlsFront f(channels_of(load(make_test_certificate(directory.path(), "board"))), 1, options);
  std::vector<http::test::Client> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(http::test::Client::over_tcp(f.port));
  CHECK(clients.front().closed());
  CHECK(eventually([&] {
    return f.front->connections() == 3 && f.front->in_flight_bytes() == 3 * tls::kTlsChannelBytes;
  }));
}

TEST_CASE("tls: mqtt clients publish through it at every version and QoS") {
  if (!have("mosquitto_pub")) return;
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "board");
  const TestCertificate other = make_test_certificate(directory.path(), "other");
  ListenerFixture room({}, 1'000, channels_of(load(files)));
  const std::string publish = "mosquitto_pub -h " + net::loopback_host() + " -p " +
                              std::to_string(room.listener->port()) + " --cafile ";
  int sent = 0;
  for (const char* const version : {"mqttv311", "mqttv5"}) {
    for (const char* const qos : {"1", "2", "0"}) {
      ++sent;
      CHECK(runs(publish + files.certificate + " -V " + version + " -q " + qos + " -t s/d/x -m " +
                 std::to_string(sent)));
    }
  }
  CHECK(eventually([&] { return room.stored() == static_cast<std::size_t>(sent); }));
  CHECK_FALSE(runs(publish + other.certificate + " -q 1 -t s/d/x -m 1"));
  CHECK_FALSE(runs("mosquitto_pub -h " + net::loopback_host() + " -p " +
                   std::to_string(room.listener->port()) + " -q 1 -t s/d/x -m 1"));
  // Many messages at once, whose records and acknowledgements cross.
  const std::string lines = directory / "lines";
  const std::size_t count = share_of(2'000);
  std::ofstream file(lines);
  for (std::size_t i = 0; i < count; ++i)
    file << std::string(300, '1' + static_cast<char>(i % 9)) << '\n';
  file.close();
  CHECK(runs(publish + files.certificate + " -q 1 -l -t s/many/x < " + lines));
  CHECK(room.stored("many") == count);
}

TEST_CASE("tls: a client's certificate names it if it is good, and ends the connection if not") {
  const TempDirectory directory;
  const auto make = [&](const char* name, const char* begins, const char* ends) {
    return make_test_certificate(directory.path(), name, KeyKind::Elliptic, ends, begins);
  };
  constexpr const char* kLongAgo = "20000101000000";
  constexpr const char* kFarOff = "20991231235959";
  const TestCertificate board = make("board", kLongAgo, kFarOff);
  const TestCertificate good = make("sensor-7", kLongAgo, kFarOff);
  const TestCertificate stranger = make("stranger", kLongAgo, kFarOff);
  const TestCertificate ended = make("ended", kLongAgo, "20200101000000");
  const TestCertificate to_come = make("to come", "20980101000000", kFarOff);
  const std::string known = directory / "known";
  for (const TestCertificate& each : {good, ended, to_come})
    REQUIRE(runs("cat '" + each.certificate + "' >> " + known));
  const auto server = TlsServer::load({board.certificate, board.key, known}, nullptr).value();
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t k2019 = 1'546'300'800 * kSecond, k2021 = 1'609'459'200 * kSecond;
  struct Case {
    const TestCertificate* shown;          // null: none
    std::optional<std::int64_t> at_least;  // of a clock that is not trusted
    bool is_let_in;
    std::vector<std::string> names;
  };
  for (const Case& c :
       {Case{&good, {}, true, {"sensor-7", "localhost"}}, Case{nullptr, {}, true, {}},
        Case{&good, k2019, true, {"sensor-7", "localhost"}}, Case{&stranger, {}, false, {}},
        Case{&stranger, k2019, false, {}}, Case{&ended, {}, false, {}},
        Case{&ended, k2021, false, {}}, Case{&ended, k2019, true, {"ended", "localhost"}},
        Case{&to_come, {}, false, {}}, Case{&to_come, k2019, true, {"to come", "localhost"}}}) {
    CAPTURE(c.shown == nullptr ? "none" : c.shown->certificate);
    std::array<int, 2> pair{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
    const tls::TlsFiles own =
        c.shown == nullptr ? tls::TlsFiles{} : tls::TlsFiles{c.shown->certificate, c.shown->key};
    const auto client = tls::TlsClient::open(tls::TlsClient::load(board.certificate, own).value(),
                                             net::Socket(pair[0]), "localhost", std::nullopt);
    const auto channel = server->accept(net::Socket(pair[1]), 1, c.at_least);
    net::Transfer got{net::Outcome::Blocked, 0};
    char byte = 0;
    for (int flight = 0; flight < 8 && got.outcome == net::Outcome::Blocked; ++flight) {
      static_cast<void>(client->send("x"));
      got = channel->receive(&byte, 1);
      if (client->send_awaits_receive()) static_cast<void>(client->receive(&byte, 1));
    }
    CHECK((got.outcome == net::Outcome::Done) == c.is_let_in);
    CHECK(channel->peer_names() == c.names);
  }
}

TEST_CASE("tls: files that cannot be used are named with what is wrong with them") {
  const TempDirectory directory;
  const TestCertificate good = make_test_certificate(directory.path(), "good");
  const TestCertificate other = make_test_certificate(directory.path(), "other");
  const auto error = [](const std::string& certificate, const std::string& key) {
    return TlsServer::load({certificate, key}, nullptr).status().to_string();
  };
  CHECK(error(directory / "none", good.key).ends_with("/none: No such file or directory"));
  CHECK(error(good.certificate, directory / "none").ends_with("/none: No such file or directory"));
  CHECK(error(directory.path(), good.key).ends_with("is not a file of at most 1 MiB"));
  CHECK(error(good.key, good.key).find("good.key: is no certificate") != std::string::npos);
  CHECK(error(good.certificate, good.certificate).find("is no key") != std::string::npos);
  CHECK(error(good.certificate, other.key).find("is not the key of the certificate in") !=
        std::string::npos);
  chmod(good.key.c_str(), 0644);
  CHECK(error(good.certificate, good.key).find("chmod 0640") != std::string::npos);
  chmod(good.key.c_str(), 0600);
  CHECK(TlsServer::load({good.certificate, good.key}, nullptr).ok());
}

TEST_CASE("tls: a renewed certificate is taken up, a wrong one is not") {
  const TempDirectory directory;
  const TestCertificate files =
      make_test_certificate(directory.path(), "board", KeyKind::Elliptic, "20380101000000");
  std::vector<std::string> complaints;
  const auto server = TlsServer::load({files.certificate, files.key}, [&](const std::string& what) {
                        complaints.push_back(what);
                      }).value();
  std::int64_t now_ns = TlsServer::kReloadNs;
  const auto look = [&] {
    std::array<int, 2> pair{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
    const net::Socket peer(pair[1]);
    CHECK(server->accept(net::Socket(pair[0]), now_ns) != nullptr);
    now_ns += TlsServer::kReloadNs;
    return server->expires_ns() / 1'000'000'000;
  };
  CHECK(look() == 2'145'916'800);
  std::ofstream(files.certificate) << "nonsense";
  CHECK(look() == 2'145'916'800);
  REQUIRE(complaints.size() == 1);
  CHECK(complaints[0].find("is no certificate") != std::string::npos);
  make_test_certificate(directory.path(), "board", KeyKind::Elliptic, "20400229235959");
  CHECK(look() == 2'214'172'799);
  CHECK(complaints.size() == 1);
}

TEST_CASE("tls: settings that cannot work are found before the daemon starts, with their place") {
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "board");
  const auto check = [](const config::NamedTexts& flags) {
    const auto configuration =
        config::load_configuration({.file = "", .environment = {}, .flags = flags});
    return configuration.ok() ? app::check_parts(*configuration) : configuration.status();
  };
  for (const std::string section : {"http", "mqtt"}) {
    const std::string certificate = section + ".tls-cert";
    const std::string key = section + ".tls-key";
    CHECK(check({{certificate, files.certificate}, {key, files.key}}).ok());
    CHECK(check({{certificate, files.certificate}})
              .message()
              .ends_with(certificate + ": is set but " + key + " is empty, set both or neither"));
    CHECK(check({{key, files.key}})
              .message()
              .ends_with(key + ": is set but " + certificate + " is empty, set both or neither"));
    const Status wrong = check({{certificate, files.key}, {key, files.key}});
    CHECK(wrong.code() == StatusCode::InvalidArgument);
    CHECK_MESSAGE(wrong.message().find("--" + certificate + ": " + certificate + ": ") == 0,
                  wrong.message());
  }
}
