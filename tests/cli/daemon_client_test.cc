#include "daemon_client.h"

#include <doctest/doctest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "wire/contract.h"

namespace edgecase::cli {
namespace {

// Answers every connection with the same bytes, then closes it.
class CannedServer {
 public:
  explicit CannedServer(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener_, 8) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~CannedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  ConnectionArguments connection() const {
    return {.host = "http://127.0.0.1:" + std::to_string(port_),
            .socket = "",
            .token = "secret",
            .tls_ca = ""};
  }

 private:
  void run() {
    int fd = -1;
    while ((fd = accept(listener_, nullptr, nullptr)) >= 0) {
      // The request's head is enough: no test sends a body that must be read first.
      std::string head;
      char byte = 0;
      while (!head.ends_with("\r\n\r\n") && read(fd, &byte, 1) == 1) head += byte;
      [[maybe_unused]] const ssize_t sent = write(fd, answer_.data(), answer_.size());
      shutdown(fd, SHUT_WR);
      while (read(fd, &byte, 1) == 1) continue;
      close(fd);
    }
  }

  const std::string answer_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

TEST_CASE("paths carry any text") {
  CHECK(percent_encode("a b/ü*") == "a%20b%2F%C3%BC%2A");
  CHECK(path_with("/q", {{"ns", "default"}, {"select", "a/*"}}) == "/q?ns=default&select=a%2F%2A");
  CHECK(path_with("/q", {}) == "/q");
}

TEST_CASE("an answer in chunks arrives piece by piece and whole") {
  CannedServer server(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  DaemonClient client(server.connection());
  std::string body;
  CHECK(client
            .get("/x",
                 [&body](std::string_view piece) {
                   body += piece;
                   return true;
                 })
            .ok());
  CHECK(body == "abcde");
}

TEST_CASE("an answer without its last chunk is a failure") {
  for (const char* tail : {"", "3\r\nab", "3\r\nabc\r\n", "0\r\n"}) {
    CAPTURE(tail);
    CannedServer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" +
                        std::string(tail));
    DaemonClient client(server.connection());
    const Status status = client.get("/x", [](std::string_view) { return true; });
    if (std::string_view(tail) == "0\r\n") continue;  // the end was told; its last line is spare
    CHECK(status.code() == StatusCode::IoError);
    CHECK(report_failure(status) == wire::kExitFailed);
  }
}

TEST_CASE("an answer shorter than announced is a failure") {
  CannedServer server("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  DaemonClient client(server.connection());
  CHECK(client.get_small("/x").status().code() == StatusCode::IoError);
}

TEST_CASE("the daemon's errors come with their code and words") {
  struct Case {
    const char* answer;
    StatusCode code;
    const char* message;
    int exit_code;
  };
  for (const Case& c : {
           Case{"404 Not Found\r\nContent-Length: 66\r\n\r\n"
                "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no series a/b yet\"}}",
                StatusCode::NotFound, "there is no series a/b yet", 3},
           Case{"403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", StatusCode::NotAllowed,
                "the daemon answered HTTP 403", 4},
           Case{"401 Unauthorized\r\nContent-Length: 0\r\n\r\n", StatusCode::NotAllowed,
                "the daemon answered HTTP 401", 4},
           Case{"400 Bad Request\r\nContent-Length: 15\r\n\r\n{\"error\":\"bad\"}",
                StatusCode::InvalidArgument, "bad", 2},
           Case{"503 Service Unavailable\r\nContent-Length: 56\r\n\r\n"
                "{\"error\":{\"code\":\"unavailable\",\"message\":\"values gone\"}}",
                StatusCode::IoError, "values gone", 1},
           Case{"500 Internal Server Error\r\nContent-Length: 50\r\n\r\n"
                "{\"error\":{\"code\":\"corruption\",\"message\":\"bad bit\"}}",
                StatusCode::Corruption, "bad bit", 7},
           Case{"500 Internal Server Error\r\nContent-Length: 5\r\n\r\nhello", StatusCode::IoError,
                "the daemon answered HTTP 500", 1},
       }) {
    CAPTURE(c.answer);
    // The announced length is counted here, so that the table stays readable.
    std::string answer = c.answer;
    const std::size_t body = answer.find("\r\n\r\n") + 4;
    const std::size_t length = answer.find("Content-Length: ") + 16;
    answer.replace(length, answer.find("\r\n", length) - length,
                   std::to_string(answer.size() - body));
    CannedServer server("HTTP/1.1 " + answer);
    DaemonClient client(server.connection());
    const Status status = client.get("/x", [](std::string_view) { return true; });
    CHECK(status.code() == c.code);
    CHECK(status.message() == c.message);
    CHECK(report_failure(status) == c.exit_code);
    const Result<std::string> posted = client.post("/x", "", "text/plain");
    CHECK(posted.status().code() == c.code);
  }
}

TEST_CASE("nobody there is exit code 5, with the socket that is not there") {
  DaemonClient by_socket(
      {.host = "", .socket = "/nonexistent/edgecase.sock", .token = "", .tls_ca = ""});
  const Status status = by_socket.get_small("/x").status();
  CHECK(status.code() == StatusCode::Unavailable);
  CHECK(status.file() == "/nonexistent/edgecase.sock");
  CHECK(status.system_error() == ENOENT);
  CHECK(report_failure(status) == wire::kExitUnreachable);

  // A port that was free a moment ago.
  ConnectionArguments gone;
  {
    CannedServer server("");
    gone = server.connection();
    DaemonClient client(gone);
    CHECK(report_failure(client.get_small("/x").status()) == wire::kExitUnreachable);
  }
  DaemonClient client(gone);
  CHECK(report_failure(client.get_small("/x").status()) == wire::kExitUnreachable);
}

TEST_CASE(
    "an address is taken in every spelling that curl takes, others are refused without their "
    "secrets") {
  struct Case {
    const char* text;
    const char* want;
  };
  for (const Case& c :
       {Case{"board.lan:8650", "http://board.lan:8650"}, Case{"board.lan", "http://board.lan:80"},
        Case{"board.lan/", "http://board.lan:80"},
        Case{"http://board.lan:8650/", "http://board.lan:8650"},
        Case{"http://board.lan:8650//", "http://board.lan:8650"},
        Case{"HTTP://Board.lan:8650", "http://Board.lan:8650"},
        Case{"https://board.lan", "https://board.lan:443"},
        Case{"https://board.lan:/", "https://board.lan:443"},
        Case{"Https://192.0.2.7:8650/", "https://192.0.2.7:8650"},
        Case{"[2001:db8::1]:8650", "http://[2001:db8::1]:8650"},
        Case{"http://[2001:db8::AF]/", "http://[2001:db8::AF]:80"},
        Case{"[fe80::1%25eth0]:8650", "http://[fe80::1%eth0]:8650"}}) {
    CAPTURE(c.text);
    const auto address = parse_daemon_address(c.text);
    REQUIRE(address.ok());
    CHECK(address->text() == c.want);
  }
  for (const char* text : {"http://", "http://:8650", "ftp://board", "://board",
                           "http://board:86500", "http://board:x", "http://board/edgecase",
                           "board:1/?x", "http://board#x", "::1", "http://ec1_secret@board",
                           "u:secret@board:1", "http://a b", "board\n", "http:/board", "[::1"}) {
    CAPTURE(text);
    const auto address = parse_daemon_address(text);
    CHECK(address.status().code() == StatusCode::InvalidArgument);
    CHECK(address.status().message().find("secret") == std::string::npos);
  }
}

TEST_CASE("a daemon is found with a slash behind its address, and by the name of both loopbacks") {
  CannedServer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  ConnectionArguments plain = server.connection();
  const std::string port = plain.host.substr(plain.host.rfind(':'));
  for (const std::string& host : {plain.host + "/", "localhost" + port, "LOCALHOST" + port + "/"}) {
    CAPTURE(host);
    ConnectionArguments connection = plain;
    connection.host = host;
    CHECK(DaemonClient(connection).get_small("/x").ok());
  }
}

TEST_CASE("a host that is a path is a socket's, with or without unix: before it") {
  for (const char* text :
       {"/run/e.sock", "unix:/run/e.sock", "unix:///run/e.sock", "UNIX:/run/e.sock"}) {
    CAPTURE(text);
    ConnectionArguments given;
    given.host = text;
    const ConnectionArguments found = resolve_connection(given);
    CHECK(found.host.empty());
    CHECK(found.socket == "/run/e.sock");
  }
  for (const std::string text : {"unix:e.sock", "unix://host/e.sock", "//host"}) {
    CAPTURE(text);
    ConnectionArguments given;
    given.host = text;
    CHECK(resolve_connection(given).host == text);
    CHECK(!parse_daemon_address(text).ok());
  }
}

TEST_CASE("a receiver that has enough stops the transfer") {
  CannedServer server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
  DaemonClient client(server.connection());
  CHECK(client.get("/x", [](std::string_view) { return false; }).code() == StatusCode::Cancelled);
}

TEST_CASE("a Unix socket works as TCP does, and the token is shown") {
  std::string directory = (std::filesystem::temp_directory_path() / "edgecase-XXXXXX").string();
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  const std::string path = directory + "/s";
  httplib::Server server;
  server.set_address_family(AF_UNIX);
  server.Post("/x", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.get_header_value("Authorization") + "|" + request.body,
                         "text/plain");
  });
  REQUIRE(server.bind_to_port(path, 80));
  std::thread thread([&server] { server.listen_after_bind(); });
  {
    DaemonClient client({.host = "", .socket = path, .token = "t", .tls_ca = ""});
    const Result<std::string> answer = client.post("/x", "body", "text/plain");
    CHECK(answer.ok());
    if (answer.ok()) CHECK(*answer == "Bearer t|body");
  }
  server.stop();
  thread.join();
  std::filesystem::remove_all(directory);
}

TEST_CASE("what is sent arrives with its type, and what comes back is read") {
  CannedServer server(
      "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
  DaemonClient client(server.connection());
  for (const Result<std::string>& answer :
       {client.post("/x", "", "text/plain"), client.put("/x", "", "image/png"),
        client.remove("/x")}) {
    REQUIRE_MESSAGE(answer.ok(), answer.status().message());
    CHECK(*answer == "ok");
  }
}

TEST_CASE("a token that would be more than one word of a header is not sent") {
  for (const char* token : {"a\r\nX-Evil: 1", "a\n", "a b", "a\x7f", "\xc3\xa9"}) {
    CAPTURE(token);
    CannedServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ConnectionArguments connection = server.connection();
    connection.token = token;
    DaemonClient client(connection);
    const Status status = client.get_small("/x").status();
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(client.post("/x", "", "text/plain").status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("an address that is none is told") {
  DaemonClient client({.host = "gopher://x", .socket = "", .token = "", .tls_ca = ""});
  CHECK(client.get_small("/x").status().code() == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace edgecase::cli
