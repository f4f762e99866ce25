#include "daemon/http/http_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "edgecase/file_system.h"

namespace edgecase::http::test {
namespace {

// Long enough for a sanitizer build on a busy machine.
constexpr int kPatienceSeconds = 60;

net::Socket connect_to(int family, const void* address, socklen_t size,
                       const sockaddr_in* own = nullptr) {
  net::Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (own != nullptr &&
      bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(own), sizeof(*own)) != 0) {
    return {};
  }
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(socket.descriptor(), static_cast<const sockaddr*>(address), size) != 0) return {};
  return socket;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

}  // namespace

Client Client::over_tcp(std::uint16_t port, std::uint32_t from) {
  // From an address of its own needs IPv4.
  if (from == INADDR_LOOPBACK && net::loopback_host() == "::1") {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    six.sin6_addr = in6addr_loopback;
    return Client(connect_to(AF_INET6, &six, sizeof(six)));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(from);
  return Client(connect_to(AF_INET, &address, sizeof(address), &own));
}

Client Client::over_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return Client(connect_to(AF_UNIX, &address, sizeof(address)));
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void Client::end_sending() const {
  shutdown(socket_.descriptor(), SHUT_WR);
}

void Client::await_reset() const {
  pollfd awaited{socket_.descriptor(), 0, 0};  // errors and the end come unasked
  CHECK(::poll(&awaited, 1, 1'000 * kPatienceSeconds) == 1);
}

bool Client::fill() {
  char buffer[16384];
  const ssize_t n = recv(socket_.descriptor(), buffer, sizeof(buffer), 0);
  if (n > 0) input_.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

bool Client::closed() {
  char buffer[16384];
  while (true) {
    const ssize_t n = recv(socket_.descriptor(), buffer, sizeof(buffer), 0);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return true;
    if (n < 0) return false;
  }
}

bool Client::take_line(std::string& line) {
  while (input_.find("\r\n") == std::string::npos) {
    if (!fill()) return false;
  }
  const std::size_t end = input_.find("\r\n");
  line = input_.substr(0, end);
  input_.erase(0, end + 2);
  return true;
}

bool Client::take(std::size_t size, std::string& bytes) {
  while (input_.size() < size) {
    if (!fill()) return false;
  }
  bytes += input_.substr(0, size);
  input_.erase(0, size);
  return true;
}

bool Client::receive_some(std::string& bytes) {
  const std::size_t size = bytes.size();
  bytes.clear();
  return take(size, bytes);
}

bool Client::receive_exactly(std::string_view expected) {
  std::string bytes;
  return take(expected.size(), bytes) && bytes == expected;
}

Answer Client::receive(std::string_view method) {
  Answer answer;
  std::string line;
  if (!take_line(line) || !line.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::atoi(line.c_str() + 9);
  while (take_line(line) && !line.empty()) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) return answer;
    answer.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
  }
  if (method == "HEAD" || answer.status == 204 || answer.status == 304) {
    answer.complete = true;
  } else if (answer.header("transfer-encoding") == "chunked") {
    std::size_t size = 1;
    while (size > 0 && take_line(line)) {
      size = std::strtoul(line.c_str(), nullptr, 16);
      if (!take(size, answer.body) || !take_line(line)) return answer;
    }
    answer.complete = size == 0;
  } else if (answer.headers.contains("content-length")) {
    const std::size_t size = std::strtoul(answer.header("content-length").c_str(), nullptr, 10);
    answer.complete = take(size, answer.body);
  } else {
    while (fill()) continue;
    answer.body = std::exchange(input_, {});
  }
  return answer;
}

Answer Client::ask(std::string_view method, std::string_view target, std::string_view body,
                   std::string_view headers) {
  std::string request = std::string(method) + " " + std::string(target) +
                        " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers);
  if (!body.empty() || method == "POST" || method == "PUT") {
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  // A refusal may come, and the connection end, before all of the body is sent.
  send(request + "\r\n" + std::string(body));
  return receive(method);
}

ServerFixture::ServerFixture(void (*adjust)(config::Settings&)) {
  settings.storage.metadata = directory.path();
  settings.storage.values = directory.path();
  settings.http.socket = directory / "http.sock";
  settings.http.listen = "localhost:0";
  if (adjust != nullptr) adjust(settings);
  catalog = catalog::Catalog::open(
                engine, {.devices = settings.limits.devices, .series = settings.limits.series})
                .value();
  devices = catalog::DeviceIndex::open(engine).value();
  retention = retention::RetentionService::open(engine, *catalog, kRetentionForever).value();
  if (settings.audit.mode == "strict") {
    const audit::AuditOptions options{.mode = audit::Mode::Strict,
                                      .head_directory = directory.path()};
    audit = audit::AuditLog::open(options, {engine, posix_file_system(), clock, random}).value();
  }
  erase =
      erase::EraseService::open({engine, *catalog, *devices, *retention, clock, random}).value();
  erase_worker = std::make_unique<erase::EraseWorker>(*erase, logger);
  const config::LimitSettings& limits = settings.limits;
  pipeline = std::make_unique<ingest::IngestPipeline>(
      engine, *catalog, clock, retention.get(), devices.get(), audit.get(), &erase->fences(),
      ingest::DeviceRateLimits{limits.device_rate, limits.device_burst, limits.devices});
  queries = std::make_unique<query::QueryService>(engine, *catalog, devices.get());
  tokens = auth::TokenStore::open(engine, clock, random).value();
  authenticator = std::make_unique<auth::Authenticator>(
      *tokens, clock,
      settings.http.allow_insecure ? auth::InsecureAccess::Allowed : auth::InsecureAccess::Refused);
  HttpServerParts parts{settings,
                        engine,
                        posix_file_system(),
                        clock,
                        *catalog,
                        *devices,
                        *pipeline,
                        *queries,
                        *retention,
                        *erase,
                        *authenticator,
                        metrics,
                        logger,
                        [] { return std::string(R"({"connected":true})"); },
                        [](std::string_view topic, std::string_view payload) {
                          return Result<std::string>("{\"topic\":\"" + std::string(topic) +
                                                     "\",\"payload\":\"" + std::string(payload) +
                                                     "\"}");
                        }};
  parts.audit = audit.get();
  origins = ingest::Origins::open(engine, clock).value();
  parts.origins = origins.get();
  signing_key = std::make_unique<sign::SigningKey>(engine, random);
  parts.signing_key = signing_key.get();
  auto started = HttpServer::start(std::move(parts));
  if (!started.ok()) std::abort();
  server = std::move(started).value();
}

ServerFixture::~ServerFixture() = default;

std::string ServerFixture::stored(const std::string& ns) const {
  const Answer answer = ask("GET", "/api/v1/query?ns=" + ns);
  std::string lines;
  std::string_view rest = answer.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    const auto json = nlohmann::json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(end + 1);
    if (!json.is_object() || !json.contains("device")) return "no readings: " + answer.body;
    lines += json["device"].get<std::string>() + "/" + json["sensor"].get<std::string>() + "@" +
             json["time"].get<std::string>() + "=" + json["value"].dump() + "\n";
  }
  return lines;
}

nlohmann::json json_of(const Answer& answer) {
  return nlohmann::json::parse(answer.body, nullptr, false);
}

std::string bearer(const std::string& token) {
  return "Authorization: Bearer " + token + "\r\n";
}

std::string compress(std::string_view text, Wrapper wrapper) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, static_cast<int>(wrapper), 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    std::abort();
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace edgecase::http::test
