#include "bench/raw_connection.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "bench/store_session.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

// Answers one request a text, closes after each connection's last, and says what it was asked.
class ScriptedServer {
 public:
  ScriptedServer(const std::string& path, std::vector<std::vector<std::string>> connections)
      : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener_, 4) == 0);
    thread_ = std::thread([this, connections = std::move(connections)] {
      for (const auto& answers : connections) {
        const int peer = accept(listener_, nullptr, nullptr);
        for (const std::string& answer : answers) {
          std::string request;
          char byte = 0;
          while (request.find("\r\n\r\n") == std::string::npos && read(peer, &byte, 1) == 1) {
            request += byte;
          }
          requests.push_back(request);
          // In two pieces, so that no answer comes whole.
          const std::size_t half = answer.size() / 2;
          if (write(peer, answer.data(), half) < 0) break;
          if (write(peer, answer.data() + half, answer.size() - half) < 0) break;
        }
        close(peer);
      }
    });
  }
  ~ScriptedServer() {
    thread_.join();
    close(listener_);
  }
  std::vector<std::string> requests;

 private:
  int listener_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("http client: bodies by length and by chunks, and a connection that was closed") {
  auto directory = PrivateDirectory::create("/tmp");
  REQUIRE(directory.ok());
  const std::string path = (*directory)->path() + "/socket";
  {
    ScriptedServer server(
        path, {{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789"
                "\r\n0\r\n\r\n"},
               {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"},
               {"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"}});
    HttpClient client({path, 0});
    CHECK(client.get("/a").value() == "hello");
    CHECK(client.get("/b?x=1").value() == "abc0123456789");
    const auto third = client.exchange(http_request("POST", "/c", "X: y\r\n", ""));
    REQUIRE(third.ok());
    CHECK(third->status == 204);
    CHECK(third->body_bytes == 0);
    CHECK(client.get("/d").status().code() == StatusCode::Unavailable);
    CHECK(server.requests.at(2) ==
          "POST /c HTTP/1.1\r\nHost: localhost\r\nX: y\r\nContent-Length: 0\r\n\r\n");
  }
  CHECK(HttpClient({"/nowhere/socket", 0}).get("/").status().code() == StatusCode::Unavailable);
}

TEST_CASE("private directory: gone at the end, with all it holds") {
  std::string path;
  {
    auto directories = create_store_directories("/tmp", "");
    REQUIRE(directories.ok());
    path = directories->metadata_parent->path();
    CHECK(access(directories->values.c_str(), W_OK) == 0);
    CHECK(directories->metadata != directories->values);
  }
  CHECK(access(path.c_str(), F_OK) != 0);
  CHECK_FALSE(create_store_directories("/nowhere", "").ok());
}
