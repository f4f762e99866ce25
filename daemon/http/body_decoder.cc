#include "http/body_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "wire/zlib_memory.h"

namespace edgecase::http {
namespace {

constexpr std::size_t kInflateStepBytes = 64u << 10;
// The rest of a body that goes on behind this much is measured before it is kept.
constexpr std::size_t kUnmeasuredBytes = 2u << 20;
constexpr int kWindowBits = 15;
constexpr int kGzipWrapper = 16;

// string::reserve() takes twice what there was, if that is more.
void reserve_exactly(std::size_t bytes, std::string& body) {
  std::string larger;
  larger.reserve(bytes);
  larger.append(body);
  body = std::move(larger);
}

// The length that a gzip body says it has, modulo 2^32: its last four bytes.
std::uint32_t stated_gzip_bytes(std::string_view compressed) {
  if (compressed.size() < 18) return 0;
  std::uint32_t stated = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    stated = stated << 8 | static_cast<unsigned char>(compressed[compressed.size() - 1 - i]);
  }
  return stated;
}

int window_bits(ContentCoding coding, std::string_view compressed) {
  if (coding == ContentCoding::Gzip) return kWindowBits + kGzipWrapper;
  // A zlib header is 8 in the low bits, and a multiple of 31 as a 16-bit number.
  if (compressed.size() >= 2) {
    const auto first = static_cast<unsigned char>(compressed[0]);
    const auto second = static_cast<unsigned char>(compressed[1]);
    if ((first & 0x0f) == 8 && (first * 256 + second) % 31 == 0) return kWindowBits;
  }
  return -kWindowBits;
}

class Inflater {
 public:
  Inflater(std::string_view compressed, ContentCoding coding) {
    ready_ = inflateInit2(&stream_, window_bits(coding, compressed)) == Z_OK;
    // zlib does not write through next_in; its type is older than const.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
    stream_.avail_in = static_cast<uInt>(compressed.size());
  }
  // Goes on from where `other` is.
  explicit Inflater(Inflater& other) {
    ready_ = other.ready_ && inflateCopy(&stream_, &other.stream_) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  bool input_left() const { return stream_.avail_in > 0; }
  bool next_member() { return inflateReset(&stream_) == Z_OK; }
  // Fills up to `size` bytes at `out`; `filled` tells how many.
  int step(char* out, std::size_t size, std::size_t& filled) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    const int outcome = inflate(&stream_, Z_NO_FLUSH);
    filled = size - stream_.avail_out;
    return outcome;
  }

 private:
  static z_stream fresh_stream() {
    z_stream stream{};
    stream.zalloc = wire::allocate_for_zlib;
    stream.zfree = wire::give_back_for_zlib;
    return stream;
  }

  z_stream stream_ = fresh_stream();
  bool ready_ = false;
};

// What a step means, if not that there is more.
enum class StepEnd : unsigned char { More, Done, Refused };

StepEnd judge_step(Inflater& inflater, ContentCoding coding, int outcome, std::size_t filled,
                   Refusal& refusal) {
  if (outcome == Z_STREAM_END) {
    if (!inflater.input_left()) return StepEnd::Done;
    if (coding == ContentCoding::Gzip && inflater.next_member()) return StepEnd::More;
    refusal = bad_request("the compressed body is followed by something else");
    return StepEnd::Refused;
  }
  if (outcome == Z_BUF_ERROR || (outcome == Z_OK && filled == 0 && !inflater.input_left())) {
    refusal = bad_request("the compressed body is cut short");
    return StepEnd::Refused;
  }
  if (outcome == Z_OK) return StepEnd::More;
  refusal = bad_request("the compressed body is damaged");
  return StepEnd::Refused;
}

// How much the rest of a body is, or why it is refused, found out in little memory.
Refusal measure(Inflater& inflater, ContentCoding coding, std::size_t limit_bytes,
                const std::string& over_limit, std::size_t& total) {
  std::string scratch(kInflateStepBytes, '\0');
  Refusal refusal;
  total = 0;
  while (true) {
    std::size_t filled = 0;
    const int outcome = inflater.step(scratch.data(), scratch.size(), filled);
    total += filled;
    if (total > limit_bytes) return too_large(over_limit);
    if (judge_step(inflater, coding, outcome, filled, refusal) != StepEnd::More) return refusal;
  }
}

}  // namespace

ChunkedDecoder::Progress ChunkedDecoder::feed(std::string_view bytes, std::size_t limit_bytes,
                                              net::BudgetShare& share, std::string& body,
                                              std::size_t& used) {
  used = 0;
  while (used < bytes.size() && stage_ != Stage::Done) {
    if (stage_ == Stage::Payload) {
      const auto take =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_in_chunk_, bytes.size() - used));
      if (!share.grow(take)) return Progress::OverBudget;
      // Never more than the limit.
      if (body.capacity() < body.size() + take) {
        const std::size_t ample = std::max(2 * body.capacity(), body.size() + take);
        reserve_exactly(std::min(limit_bytes, ample), body);
      }
      body.append(bytes.substr(used, take));
      used += take;
      left_in_chunk_ -= take;
      if (left_in_chunk_ == 0) stage_ = Stage::PayloadEnd;
      continue;
    }
    const char c = bytes[used++];
    line_.push_back(c);
    if (stage_ == Stage::Trailers && ++trailer_bytes_ > kTrailersMaxBytes) {
      return Progress::Malformed;
    }
    if (c != '\n') {
      if (line_.size() > kChunkLineMaxBytes) return Progress::Malformed;
      continue;
    }
    if (line_.size() < 2 || line_[line_.size() - 2] != '\r') return Progress::Malformed;
    const std::string line = std::exchange(line_, std::string());
    const std::string_view text = std::string_view(line).substr(0, line.size() - 2);
    if (stage_ == Stage::SizeLine) {
      const Progress progress = size_line(text, limit_bytes - body.size());
      if (progress != Progress::NeedMore) return progress;
    } else if (stage_ == Stage::PayloadEnd) {
      if (!text.empty()) return Progress::Malformed;
      stage_ = Stage::SizeLine;
    } else if (text.empty()) {
      stage_ = Stage::Done;
    }
  }
  return stage_ == Stage::Done ? Progress::Done : Progress::NeedMore;
}

ChunkedDecoder::Progress ChunkedDecoder::size_line(std::string_view line, std::size_t room) {
  const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
  std::uint64_t size = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, size, 16);
  if (error == std::errc::result_out_of_range) return Progress::TooLarge;
  // from_chars takes no sign for unsigned numbers, so "-2" ends here.
  if (error != std::errc{} || stop != end) return Progress::Malformed;
  if (size > room) return Progress::TooLarge;
  left_in_chunk_ = size;
  stage_ = size == 0 ? Stage::Trailers : Stage::Payload;
  return Progress::NeedMore;
}

Refusal inflate_body(std::string_view compressed, ContentCoding coding, std::size_t limit_bytes,
                     net::BudgetShare& share, std::string& body) {
  body.clear();
  const std::string over_limit =
      "the body has more than " + std::to_string(limit_bytes) + " bytes after decompression";
  if (compressed.empty()) return {};
  const std::uint32_t stated =
      coding == ContentCoding::Gzip ? stated_gzip_bytes(compressed) : std::uint32_t{0};
  if (compressed.size() > std::numeric_limits<uInt>::max()) return too_large(over_limit);
  Inflater inflater(compressed, coding);
  if (!inflater.ready()) return overloaded("no memory for decompression");
  // A bomb that says so, or a body cut anywhere: either way nothing of it is kept.
  std::size_t left = 0;
  if (stated > limit_bytes) {
    const Refusal refusal = measure(inflater, coding, limit_bytes, over_limit, left);
    return refusal.http_status != 0 ? refusal : bad_request("the compressed body is damaged");
  }
  // Deflate packs at most about a thousandfold; more than eightfold is rare in honest bodies.
  body.reserve(std::min<std::size_t>(stated, compressed.size() * 8));

  std::size_t most = limit_bytes;  // the body's size, once it was measured
  Refusal refusal;
  while (true) {
    const std::size_t before = body.size();
    if (before >= kUnmeasuredBytes && most == limit_bytes) {
      // A bomb need not say so.
      Inflater rest(inflater);
      if (!rest.ready()) return overloaded("no memory for decompression");
      refusal = measure(rest, coding, limit_bytes - before, over_limit, left);
      if (refusal.http_status != 0) return refusal;
      most = before + left;
      reserve_exactly(most + 1, body);
    }
    // One byte beyond the limit tells "too large" from "exactly at the limit".
    const std::size_t step = std::min(std::max(kInflateStepBytes, before), most + 1 - before);
    if (!share.grow(step)) return overloaded("too many request bodies are being received");
    body.resize(before + step);
    std::size_t filled = 0;
    const int outcome = inflater.step(body.data() + before, step, filled);
    body.resize(before + filled);
    share.shrink(step - filled);
    if (body.size() > limit_bytes) return too_large(over_limit);
    if (judge_step(inflater, coding, outcome, filled, refusal) != StepEnd::More) return refusal;
  }
}

}  // namespace edgecase::http
