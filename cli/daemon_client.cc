#include "daemon_client.h"

#include <grp.h>
#include <httplib.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "output.h"
#include "secure/tls_door.h"
#include "wire/contract.h"
#include "wire/encoding.h"

namespace edgecase::cli {
namespace {

constexpr time_t kConnectTimeoutSeconds = 10;
// A query may read for a while before its first row.
constexpr time_t kReadTimeoutSeconds = 300;
constexpr time_t kWriteTimeoutSeconds = 60;
constexpr std::size_t kErrorBodyMaxBytes = 64u << 10;

StatusCode code_of_http(int http_status) {
  switch (http_status) {
    case 400:
    case 405:
    case 413:
    case 414:
    case 415: return StatusCode::InvalidArgument;
    case 401:
    case 403: return StatusCode::NotAllowed;
    case 404: return StatusCode::NotFound;
    case 409: return StatusCode::AlreadyExists;
    case 503: return StatusCode::Busy;
    default: return StatusCode::IoError;
  }
}

bool is_one_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// The daemon's own words, when the body is its JSON; else the HTTP status.
Status error_of(int http_status, const std::string& body) {
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  if (document.is_object()) {
    const auto error = document.find("error");
    if (error != document.end() && error->is_object()) {
      const std::string message = error->value("message", "");
      const std::string code = error->value("code", "");
      if (!message.empty()) {
        StatusCode status = wire::status_code_of(code);
        if (code.empty()) status = code_of_http(http_status);
        // A drive is missing, not the daemon: Unavailable is what this client says of the latter.
        if (status == StatusCode::Unavailable) status = StatusCode::IoError;
        return {status, message};
      }
    }
    if (error != document.end() && error->is_string()) {
      return {code_of_http(http_status), error->get<std::string>()};
    }
  }
  return {code_of_http(http_status), "the daemon answered HTTP " + std::to_string(http_status)};
}

// The group that may use a socket; "edgecase" where that cannot be told.
std::string group_of(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return "edgecase";
  std::vector<char> room(4096);
  group entry = {};
  group* result = nullptr;
  if (getgrgid_r(found.st_gid, &entry, room.data(), room.size(), &result) != 0 || result == nullptr)
    return "edgecase";
  return result->gr_name;
}

// Asks again, since the library keeps the reason to itself.
Status why_no_socket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return invalid_argument("the socket's path is longer than " +
                            std::to_string(sizeof address.sun_path - 1) + " bytes: " + path);
  path.copy(address.sun_path, path.size());
  const int asked = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (asked < 0) return io_error(std::string("no socket can be made: ") + std::strerror(errno));
  const bool connected =
      ::connect(asked, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = connected ? 0 : errno;
  ::close(asked);
  constexpr const char* kStart =
      "; systemctl status edgecased says what became of it, sudo systemctl start edgecased starts "
      "it";
  switch (error) {
    case EACCES:
    case EPERM: {
      const std::string group = group_of(path);
      return not_allowed("you may not use " + path + ": not a member of group " + group +
                         "; try: sudo usermod -aG " + group + " $USER && newgrp " + group);
    }
    case ENOENT:
    case ENOTDIR:
      return Status::of_file(StatusCode::Unavailable, "no daemon: there is no ", path, kStart,
                             error);
    case ECONNREFUSED: return unavailable("no daemon: nobody listens at " + path + kStart);
    case EAGAIN: return unavailable("the daemon at " + path + " takes no more connections now");
    case 0: return unavailable("the daemon at " + path + " was not there a moment ago; try again");
    default: return unavailable("no daemon at " + path + ": " + std::strerror(error));
  }
}

// "": it has an address.
std::string why_no_host(const std::string& host) {
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return {};
}

}  // namespace

std::string path_with(std::string_view path, const Parameters& parameters) {
  std::string out(path);
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    out += separator;
    out += name;
    out += '=';
    out += percent_encode(value);
    separator = '&';
  }
  return out;
}

struct DaemonClient::State {
  explicit State(const ConnectionArguments& connection) {
    if (!connection.host.empty()) {
      const auto parsed = parse_daemon_address(connection.host);
      address_status = parsed.status();
      if (!parsed.ok()) return;
      place = parsed->text();
      address = parsed->at.text();
      host = parsed->at.host;
      if (parsed->is_secure) {
        if (!open_door(connection.tls_ca)) return;
      } else {
        client = std::make_unique<httplib::Client>(host, *parsed->at.port);
      }
      headers.emplace("Host", address);
    } else {
      place = connection.socket;
      socket = connection.socket;
      client = std::make_unique<httplib::Client>(connection.socket, 80);
      client->set_address_family(AF_UNIX);
      headers.emplace("Host", "localhost");
    }
    client->set_connection_timeout(kConnectTimeoutSeconds);
    client->set_read_timeout(kReadTimeoutSeconds);
    client->set_write_timeout(kWriteTimeoutSeconds);
    client->set_url_encode(false);
    // A kept connection may be closed by the daemon just when the next request leaves.
    client->set_keep_alive(false);
    client->set_tcp_nodelay(true);
    // The library would take gzip: between programs of one machine it costs more than it saves.
    headers.emplace("Accept-Encoding", "identity");
    if (!connection.token.empty()) headers.emplace("Authorization", "Bearer " + connection.token);
    // The library writes headers as they are: one line must not become two.
    if (!is_one_word(connection.token)) {
      token_status = invalid_argument(
          "the token holds a space, a line break or another character that no token has; give it "
          "as `edgecase token create` printed it (--token, EDGECASE_TOKEN)");
    }
  }

  // The library of some builds knows no TLS, that of others another one than the daemon.
  bool open_door(const std::string& authorities) {
    auto opened = TlsDoor::open(address, authorities);
    if (!opened.ok()) {
      address_status = opened.status();
      return false;
    }
    door = *std::move(opened);
    client = std::make_unique<httplib::Client>(door->name(), 80);
    client->set_address_family(AF_UNIX);
    return true;
  }

  Status check_address() const {
    EC_TRY(address_status);
    return token_status;
  }

  Status transport_error(httplib::Error error, bool answered) const {
    const DoorFailure failure = door ? door->take_failure() : DoorFailure();
    if (failure.kind == DoorFailure::Kind::NotReached) error = httplib::Error::Connection;
    if (failure.kind == DoorFailure::Kind::NoTls && !answered) {
      return unavailable(
          "no trusted TLS connection to " + place + ": " + failure.why +
          "; --tls-ca FILE names certificates to trust; without TLS: --host http://" + address);
    }
    switch (error) {
      case httplib::Error::Connection:
      case httplib::Error::ConnectionTimeout:
      case httplib::Error::BindIPAddress:
        if (!socket.empty()) return why_no_socket(socket);
        if (const std::string why = why_no_host(host); !why.empty()) {
          return unavailable("the host \"" + host + "\" of " + place + " is not known: " + why);
        }
        return unavailable("no daemon answers at " + place +
                           "; is it running there (systemctl status edgecased), and at this port? "
                           "It is 8650 unless http.listen says otherwise");
      default: break;
    }
    if (answered) return io_error("the daemon's answer broke off");
    return unavailable("the daemon at " + place + " closed the connection without an answer" +
                       (socket.empty() && door == nullptr
                            ? "; where its port speaks TLS: --host https://" + address
                            : std::string()));
  }

  std::string place;    // for messages
  std::string address;  // HOST:PORT, where it is no socket
  std::string socket;   // where that is one
  std::string host;     // else
  std::unique_ptr<TlsDoor> door;
  Status address_status;
  Status token_status;
  std::unique_ptr<httplib::Client> client;
  httplib::Headers headers;
  httplib::Headers answer_headers;
  std::string refusal;
};

DaemonClient::DaemonClient(const ConnectionArguments& connection)
    : state_(std::make_unique<State>(resolve_connection(connection))) {}
DaemonClient::~DaemonClient() = default;
DaemonClient::DaemonClient(DaemonClient&&) noexcept = default;

void DaemonClient::keep_connection() {
  if (state_->client) state_->client->set_keep_alive(true);
}

std::string DaemonClient::answer_header(const char* name) const {
  const auto found = state_->answer_headers.find(name);
  return found == state_->answer_headers.end() ? "" : found->second;
}

const std::string& DaemonClient::refusal() const {
  return state_->refusal;
}

Status DaemonClient::get(const std::string& path, const Receive& receive) {
  EC_TRY(state_->check_address());
  state_->answer_headers.clear();
  int http_status = 0;
  bool stopped = false;
  bool has_report = false;
  std::string left_out;  // as the head tells it
  BodyWithReport body(receive);
  std::string error_body;
  httplib::Headers headers = state_->headers;
  headers.emplace(wire::routes::kReportHeader, wire::routes::kReportInline);
  const httplib::Result result = state_->client->Get(
      path, headers,
      [&](const httplib::Response& response) {
        http_status = response.status;
        state_->answer_headers = response.headers;
        has_report =
            response.get_header_value(wire::routes::kReportHeader) == wire::routes::kReportInline;
        left_out = response.get_header_value(wire::routes::kLeftOutHeader);
        say_beside([&response](const char* name) { return response.get_header_value(name); });
        return true;
      },
      [&](const char* data, std::size_t size) {
        if (http_status != 200) {
          error_body.append(data, std::min(size, kErrorBodyMaxBytes - error_body.size()));
          return true;
        }
        stopped = !(has_report ? body.push({data, size}) : receive({data, size}));
        return !stopped;
      });
  if (stopped) return cancelled("stopped");
  if (!result) return state_->transport_error(result.error(), http_status != 0);
  if (http_status != 200) return error_of(http_status, error_body);
  if (!has_report) {
    name_left_out(left_out);
    return ok();
  }
  std::string report;
  bool goes_on = true;
  if (!body.finish(report, goes_on)) return io_error("the daemon's answer has no end");
  // What came last knows of all.
  name_left_out(report == "[]" ? left_out : report);
  return goes_on ? ok() : cancelled("stopped");
}

Result<std::string> DaemonClient::get_small(const std::string& path) {
  std::string body;
  const Status status = get(path, [&body](std::string_view piece) {
    body += piece;
    return body.size() <= kSmallAnswerMaxBytes;
  });
  if (status.code() == StatusCode::Cancelled) return io_error("the daemon's answer is too large");
  EC_TRY(status);
  return body;
}

Result<std::string> DaemonClient::send(const char* method, const std::string& path,
                                       const std::string& body, const std::string& content_type) {
  EC_TRY(state_->check_address());
  httplib::Request request;
  request.method = method;
  request.path = path;
  request.headers = state_->headers;
  request.body = body;
  if (!content_type.empty()) request.set_header("Content-Type", content_type);
  // Taken piece by piece, since the library would keep as much as it is sent.
  std::string answer;
  bool is_too_large = false, is_begun = false;
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    is_begun = true;
    is_too_large = size > kSmallAnswerMaxBytes - answer.size();
    if (!is_too_large) answer.append(data, size);
    return !is_too_large;
  };
  const httplib::Result result = state_->client->send(request);
  if (is_too_large) return io_error("the daemon's answer is too large");
  if (!result) return state_->transport_error(result.error(), is_begun);
  if (result->status / 100 == 2) {
    name_left_out(result->get_header_value(wire::routes::kLeftOutHeader));
    return answer;
  }
  state_->refusal = answer;
  return error_of(result->status, answer);
}

Result<std::string> DaemonClient::post(const std::string& path, const std::string& body,
                                       const std::string& content_type) {
  return send("POST", path, body, content_type);
}

Result<std::string> DaemonClient::put(const std::string& path, const std::string& body,
                                      const std::string& content_type) {
  return send("PUT", path, body, content_type);
}

Result<std::string> DaemonClient::remove(const std::string& path) {
  return send("DELETE", path, "", "");
}

int report_failure(const Status& status) {
  print_error("edgecase: %s\n",
              status.message().empty() ? status.to_string().c_str() : status.message().c_str());
  if (status.code() == StatusCode::Unavailable) return wire::kExitUnreachable;
  return wire::exit_code_of(status.code());
}

}  // namespace edgecase::cli
