#include "http/router.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "edgecase/machine.h"

namespace edgecase::http {
namespace {

std::string_view reason_phrase(int http_status) {
  switch (http_status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Payload Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
  }
  return http_status < 400 ? "OK" : "Error";
}

// Whether a body follows, be it empty.
bool has_body(int http_status) {
  return http_status != 204 && http_status != 304;
}

void append_header(std::string_view name, std::string_view value, std::string& text) {
  text.append(name).append(": ");
  // What is stored may be told in a header: no line of an answer may end in it.
  for (const char c : value) text.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  text.append("\r\n");
}

auto find_header(const Response& response, std::string_view name) {
  return std::find_if(response.headers.begin(), response.headers.end(),
                      [name](const auto& each) { return each.first == name; });
}

bool send_pieces(const Response& response, bool is_chunked, AnswerStream& stream,
                 const std::atomic<bool>& is_cut) {
  PieceWriter writer(stream, is_chunked, response.packer.get());
  const std::uint64_t most = response.pieces_bytes.value_or(UINT64_MAX);
  Sent sent = Sent::More;
  while (sent == Sent::More && writer.written_bytes() < most) {
    if (is_cut || stream.failed()) return false;
    sent = response.pieces(writer);
  }
  if (sent == Sent::Broken) return false;
  // A client that was told a length waits for all of it.
  if (response.pieces_bytes && writer.written_bytes() != *response.pieces_bytes) return false;
  return writer.finish();
}

}  // namespace

bool PieceWriter::write(std::string_view piece) {
  written_bytes_ += piece.size();
  if (packer_ == nullptr) return send(piece);
  std::string packed;
  return packer_->pack(piece, packed) && send(packed);
}

bool PieceWriter::finish() {
  std::string end;
  if (packer_ != nullptr && (!packer_->finish(end) || !send(end))) return false;
  return !is_chunked_ || stream_.write("0\r\n\r\n");
}

bool PieceWriter::send(std::string_view piece) {
  if (piece.empty()) return !stream_.failed();  // an empty chunk would be the last
  if (!is_chunked_) return stream_.write(piece);
  char length[2 * sizeof(std::size_t) + 2];
  char* const end = std::to_chars(std::begin(length), std::end(length) - 2, piece.size(), 16).ptr;
  end[0] = '\r';
  end[1] = '\n';
  return stream_.write({length, static_cast<std::size_t>(end + 2 - length)}) &&
         stream_.write(piece) && stream_.write("\r\n");
}

bool Response::has_header(std::string_view name) const {
  return find_header(*this, name) != headers.end();
}

void Response::set_header(std::string_view name, std::string value) {
  std::erase_if(headers, [name](const auto& each) { return each.first == name; });
  add_header(name, std::move(value));
}

void Response::add_header(std::string_view name, std::string value) {
  headers.emplace_back(name, std::move(value));
}

void Response::set_pieces(std::string_view content_type, SendPiece send,
                          std::optional<std::uint64_t> bytes) {
  set_header("Content-Type", std::string(content_type));
  pieces = std::move(send);
  pieces_bytes = bytes;
}

std::string head_text(const Response& response, bool is_chunked, bool closes) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text.append(reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) append_header(name, value, text);
  if (is_chunked) {
    append_header("Transfer-Encoding", "chunked", text);
  } else if (response.pieces ? response.pieces_bytes.has_value() : has_body(response.status)) {
    const std::uint64_t bytes = response.pieces ? *response.pieces_bytes : response.body.size();
    append_header("Content-Length", std::to_string(bytes), text);
  }
  if (closes) append_header("Connection", "close", text);
  return text.append("\r\n");
}

bool send_response(const RequestHead& request, const Response& response, bool closes,
                   AnswerStream& stream, const std::atomic<bool>& is_cut) {
  const bool is_chunked = response.pieces && !response.pieces_bytes && request.http_1_1;
  if (!stream.write(head_text(response, is_chunked, closes))) return false;
  if (request.method == "HEAD") return true;
  if (response.pieces) return send_pieces(response, is_chunked, stream, is_cut);
  return response.body.empty() || stream.write(response.body);
}

namespace {

constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr std::int64_t kWholeSecondNs = 1'000'000'000;
constexpr std::int64_t kToldEveryNs = 50 * kMillisecondNs;

}  // namespace

net::Outcome send_output(net::Channel& channel, std::string& output) {
  const net::Outcome outcome = net::send_some(channel, output);
  if (output.empty() && output.capacity() > kOutputKeptBytes) output = std::string();
  return outcome;
}

bool AnswerStream::write(std::string_view bytes) {
  if (failed_) return false;
  output_.append(bytes);
  written_bytes_ += bytes.size();
  // Head and body of a small answer leave together, when the worker is done with it.
  return output_.size() <= kOutputKeptBytes || flush();
}

bool is_any_revoked(const std::deque<WatchedPart>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const WatchedPart& part) { return part.is_revoked(); });
}

std::deque<WatchedPart> AnswerStream::take_parts() {
  if (output_.empty()) return {};
  return std::exchange(parts_, {});
}

// What was sent is not asked about.
bool AnswerStream::drop_revoked() {
  const std::uint64_t sent_bytes =
      written_bytes_ - std::min<std::uint64_t>(written_bytes_, output_.size());
  while (!parts_.empty() && parts_.front().end_bytes <= sent_bytes) parts_.pop_front();
  if (!is_any_revoked(parts_)) return false;
  output_ = std::string();
  parts_.clear();
  failed_ = true;
  return true;
}

bool AnswerStream::flush() {
  while (!failed_) {
    if (!parts_.empty() && drop_revoked()) break;
    const std::size_t before = output_.size();
    const net::Outcome outcome = send_output(channel_, output_);
    if (outcome == net::Outcome::Failed) break;
    if (client_ != nullptr) client_->sent(before - output_.size());
    if (outcome == net::Outcome::Done || output_.size() <= kOutputKeptBytes) return true;
    if (!wait_for_reader()) break;
  }
  failed_ = true;
  return false;
}

// Only time spent waiting counts: a query that computes for long is no slow reader.
bool AnswerStream::wait_for_reader() {
  const std::uint64_t sent_bytes =
      written_bytes_ - std::min<std::uint64_t>(written_bytes_, output_.size());
  const std::int64_t allowed_ns =
      grace_ns_ + static_cast<std::int64_t>(sent_bytes / kReadBytesPerSecondMin) * kWholeSecondNs;
  const std::int64_t left_ns = std::min(grace_ns_, allowed_ns - waited_ns_);
  if (left_ns <= 0) return false;
  if (turn_ != nullptr) turn_->rest();
  const std::int64_t begin_ns = system_clock().boot_ns();
  std::int64_t passed_ns = 0;
  int outcome = 0;
  while (outcome == 0 && passed_ns < left_ns) {
    outcome = await(std::min(left_ns - passed_ns, kToldEveryNs));
    if (outcome == 0 && told_) told_();
    if (outcome == 0 && !parts_.empty() && drop_revoked()) return false;
    passed_ns = system_clock().boot_ns() - begin_ns;
  }
  waited_ns_ += passed_ns;
  if (turn_ != nullptr) turn_->resume();
  return outcome > 0 || (outcome < 0 && errno == EINTR);
}

int AnswerStream::await(std::int64_t most_ns) {
  const short awaited = channel_.send_awaits_receive() ? POLLIN : POLLOUT;
  pollfd ready{channel_.descriptor(), awaited, 0};
  return poll(&ready, 1, static_cast<int>(most_ns / kMillisecondNs + 1));
}

namespace {

bool is_packable(std::string_view content_type) {
  constexpr std::array kWhole = {std::string_view("application/json"),
                                 std::string_view("application/x-ndjson"),
                                 std::string_view("application/csv")};
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.starts_with("text/") || std::find(kWhole.begin(), kWhole.end(), type) != kWhole.end();
}

std::string_view content_type_of(const Response& response) {
  for (const auto& [name, value] : response.headers)
    if (name == "Content-Type") return value;
  return {};
}

}  // namespace

void pack_response(const RequestHead& request, Response& response) {
  const bool is_large = response.pieces != nullptr ? !response.pieces_bytes.has_value()
                                                   : response.body.size() >= kPackedMinBytes;
  if (response.status != 200 || !is_large || response.has_header("Content-Encoding") ||
      !is_packable(content_type_of(response))) {
    return;
  }
  response.set_header("Vary", "Accept-Encoding");
  const wire::Coding coding = request.accepts.best();
  if (coding == wire::Coding::Identity || request.method == "HEAD") return;
  auto packer = wire::Packer::create(coding);
  if (packer == nullptr) return;
  if (response.pieces != nullptr) {
    response.packer = std::move(packer);
  } else {
    std::string packed;
    if (!packer->pack(response.body, packed) || !packer->finish(packed)) return;
    response.body = std::move(packed);
  }
  response.set_header("Content-Encoding", std::string(wire::name_of(coding)));
}

}  // namespace edgecase::http
