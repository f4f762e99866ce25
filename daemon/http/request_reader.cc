#include "http/request_reader.h"

#include <algorithm>
#include <utility>

#include "net/channel.h"

namespace edgecase::http {
namespace {

constexpr std::size_t kReceiveBytes = 256u << 10;
constexpr std::size_t kReceiveChunkedBytes = 64u << 10;
// Memory is reserved at once for bodies of usual size, and grown into for larger ones: what is
// grown out of has to be wiped. Pages that no byte has come for are not there.
constexpr std::size_t kReserveBytes = 4u << 20;

}  // namespace

RequestReader::Progress RequestReader::feed(std::string_view bytes) {
  if (stage_ == Stage::Body && input_.empty()) {
    std::size_t used = 0;
    const Progress progress = continue_body(bytes, used);
    if (progress != Progress::Refused) input_.assign(bytes.substr(used));
    return progress;
  }
  input_.append(bytes);
  if (stage_ == Stage::Head) {
    std::size_t used = 0;
    switch (parse_request_head(input_, request_.head, used, refusal_, head_limits_)) {
      case HeadOutcome::NeedMore: return Progress::NeedMore;
      case HeadOutcome::Refused: return Progress::Refused;
      case HeadOutcome::Complete: break;
    }
    net::drop_front(input_, used);
    if (begin_body() == Progress::Refused) return Progress::Refused;
  }
  std::size_t used = 0;
  const Progress progress = continue_body(input_, used);
  net::drop_front(input_, used);
  return progress;
}

RequestReader::Progress RequestReader::begin_body() {
  const RequestHead& head = request_.head;
  if (head.content_length > body_limit_bytes_) {
    return refuse(
        too_large("the body has more than " + std::to_string(body_limit_bytes_) + " bytes"));
  }
  const auto length = static_cast<std::size_t>(head.content_length);
  request_.body.reserve(std::min(length, kReserveBytes));
  chunks_ = ChunkedDecoder();
  owes_continue_ = head.expects_continue && head.http_1_1;
  stage_ = Stage::Body;
  return Progress::NeedMore;
}

RequestReader::Progress RequestReader::continue_body(std::string_view bytes, std::size_t& used) {
  if (!bytes.empty()) owes_continue_ = false;
  if (request_.head.framing == BodyFraming::Length) {
    const std::uint64_t missing = request_.head.content_length - request_.body.size();
    used = static_cast<std::size_t>(std::min<std::uint64_t>(missing, bytes.size()));
    if (!request_.share.grow(used)) {
      return refuse(overloaded("too many request bodies are being received"));
    }
    request_.body.append(bytes.substr(0, used));
    if (used < missing) return Progress::NeedMore;
  } else {
    switch (chunks_.feed(bytes, body_limit_bytes_, request_.share, request_.body, used)) {
      case ChunkedDecoder::Progress::NeedMore: return Progress::NeedMore;
      case ChunkedDecoder::Progress::Done: break;
      case ChunkedDecoder::Progress::Malformed:
        return refuse(bad_request("the chunked body is malformed"));
      case ChunkedDecoder::Progress::TooLarge:
        return refuse(
            too_large("the body has more than " + std::to_string(body_limit_bytes_) + " bytes"));
      case ChunkedDecoder::Progress::OverBudget:
        return refuse(overloaded("too many request bodies are being received"));
    }
  }
  owes_continue_ = false;
  stage_ = Stage::Complete;
  return Progress::Complete;
}

ReceivedRequest RequestReader::take() {
  stage_ = Stage::Head;
  return std::exchange(request_, ReceivedRequest{{}, {}, net::BudgetShare(budget_)});
}

bool RequestReader::claim_continue() {
  return std::exchange(owes_continue_, false);
}

std::size_t RequestReader::wanted_bytes() const {
  if (stage_ == Stage::Head) return head_limits_.bytes;
  if (request_.head.framing == BodyFraming::Chunked) return kReceiveChunkedBytes;
  const std::uint64_t missing = request_.head.content_length - request_.body.size();
  return static_cast<std::size_t>(std::min<std::uint64_t>(missing, kReceiveBytes));
}

RequestReader::Progress RequestReader::refuse(Refusal refusal) {
  refusal_ = std::move(refusal);
  request_.body = std::string();
  request_.share.release();
  return Progress::Refused;
}

}  // namespace edgecase::http

// Memory of one's own, and what a frame's head says, zstd calls experimental; every version
// since 1.3 has had both.

#define ZSTD_STATIC_LINKING_ONLY

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <charconv>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

#include "wire/encoding.h"

namespace edgecase::http {
namespace {

constexpr std::size_t kInflateStepBytes = 64u << 10;
// The rest of a body that goes on behind this much is measured before it is kept.
constexpr std::size_t kUnmeasuredBytes = 2u << 20;
constexpr int kWindowBits = 15;
constexpr int kGzipWrapper = 16;

std::string over_limit_text(std::size_t limit_bytes) {
  return "the body has more than " + std::to_string(limit_bytes) + " bytes after decompression";
}

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

int window_bits(wire::Coding coding, std::string_view compressed) {
  if (coding == wire::Coding::Gzip) return kWindowBits + kGzipWrapper;
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
  Inflater(std::string_view compressed, wire::Coding coding) {
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
    stream.zfree = wire::give_back_for_codec;
    return stream;
  }

  z_stream stream_ = fresh_stream();
  bool ready_ = false;
};

// What a step means, if not that there is more.
enum class StepEnd : unsigned char { More, Done, Refused };

StepEnd judge_step(Inflater& inflater, wire::Coding coding, int outcome, std::size_t filled,
                   Refusal& refusal) {
  if (outcome == Z_STREAM_END) {
    if (!inflater.input_left()) return StepEnd::Done;
    if (coding == wire::Coding::Gzip && inflater.next_member()) return StepEnd::More;
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
Refusal measure(Inflater& inflater, wire::Coding coding, std::size_t limit_bytes,
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

// Frames of zstd, one behind another. What they hold is added up before any of it is kept: a bomb
// may be of many small ones.
class ZstdBody {
 public:
  ZstdBody(std::string_view compressed, std::size_t limit_bytes, net::BudgetShare& share)
      : left_(compressed),
        over_limit_(over_limit_text(limit_bytes)),
        limit_bytes_(limit_bytes),
        share_(share) {}
  ~ZstdBody() { share_.shrink(window_bytes_); }
  ZstdBody(const ZstdBody&) = delete;
  ZstdBody& operator=(const ZstdBody&) = delete;

  Refusal decode(std::string& body) {
    if (decoder_ == nullptr) return overloaded("no memory for decompression");
    while (!left_.empty()) {
      const Refusal refusal = add_frame();
      if (refusal.http_status != 0) return refusal;
    }
    // Before a byte of it is kept: what frames say of themselves may be a lie.
    if (!share_.grow(total_bytes_)) return overloaded("too many request bodies are being received");
    reserve_exactly(total_bytes_, body);
    for (const Frame& frame : frames_) {
      const std::size_t before = body.size();
      body.resize(before + frame.size_bytes);
      const std::size_t filled =
          ZSTD_decompressDCtx(decoder_.get(), body.data() + before, frame.size_bytes,
                              frame.packed.data(), frame.packed.size());
      if (filled != frame.size_bytes) return bad_request("the compressed body is damaged");
    }
    return {};
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* decoder) const { ZSTD_freeDCtx(decoder); }
  };
  struct Frame {
    std::string_view packed;
    std::size_t size_bytes = 0;
  };

  Refusal add_frame() {
    ZSTD_frameHeader head;
    const std::size_t lacks = ZSTD_getFrameHeader(&head, left_.data(), left_.size());
    const std::size_t frame_bytes = ZSTD_findFrameCompressedSize(left_.data(), left_.size());
    if (ZSTD_isError(lacks) != 0) {
      return bad_request(frames_.empty() ? "the compressed body is damaged"
                                         : "the compressed body is followed by something else");
    }
    if (lacks > 0 || ZSTD_getErrorCode(frame_bytes) == ZSTD_error_srcSize_wrong)
      return bad_request("the compressed body is cut short");
    if (ZSTD_isError(frame_bytes) != 0) return bad_request("the compressed body is damaged");
    if (++frame_count_ > kZstdFramesMax) {
      return too_large("the compressed body has more than " + std::to_string(kZstdFramesMax) +
                       " frames");
    }
    const std::string_view packed = left_.substr(0, frame_bytes);
    left_.remove_prefix(frame_bytes);
    if (head.frameType == ZSTD_skippableFrame) return {};
    unsigned long long size = head.frameContentSize;
    const bool is_told = size != ZSTD_CONTENTSIZE_UNKNOWN;
    const std::size_t room = limit_bytes_ - total_bytes_;
    if (is_told && size > room) return too_large(over_limit_);
    // What it says may be a lie, and takes memory before that shows.
    if (!is_told || size > std::max(kUnmeasuredBytes, packed.size() * 8)) {
      const Refusal refusal = measure_frame(packed, head, room, size);
      if (refusal.http_status != 0) return refusal;
    }
    frames_.push_back({packed, static_cast<std::size_t>(size)});
    total_bytes_ += size;
    return {};
  }

  // How much a frame holds, found out in the memory of its window.
  Refusal measure_frame(std::string_view frame, const ZSTD_frameHeader& head, std::size_t room,
                        unsigned long long& size) {
    if (head.windowSize > kZstdWindowMaxBytes) {
      return too_large("the compressed body looks back more than " +
                       std::to_string(kZstdWindowMaxBytes) + " bytes");
    }
    if (head.windowSize > window_bytes_) {
      if (!share_.grow(head.windowSize - window_bytes_))
        return overloaded("too many request bodies are being received");
      window_bytes_ = head.windowSize;
    }
    ZSTD_DCtx_reset(decoder_.get(), ZSTD_reset_session_only);
    std::string scratch(kInflateStepBytes, '\0');
    ZSTD_inBuffer in{frame.data(), frame.size(), 0};
    size = 0;
    for (std::size_t lacks = 1; lacks != 0;) {
      ZSTD_outBuffer out{scratch.data(), scratch.size(), 0};
      lacks = ZSTD_decompressStream(decoder_.get(), &out, &in);
      size += out.pos;
      if (size > room) return too_large(over_limit_);
      const bool is_stuck = lacks != 0 && in.pos == in.size && out.pos < out.size;
      if (ZSTD_isError(lacks) != 0 || is_stuck)
        return bad_request("the compressed body is damaged");
    }
    return {};
  }

  std::string_view left_;
  std::vector<Frame> frames_;
  std::size_t frame_count_ = 0;  // with those that hold nothing
  std::size_t total_bytes_ = 0;
  const std::string over_limit_;
  const std::size_t limit_bytes_;
  net::BudgetShare& share_;
  std::uint64_t window_bytes_ = 0;  // taken from the share
  const std::unique_ptr<ZSTD_DCtx, Free> decoder_{
      ZSTD_createDCtx_advanced({wire::allocate_for_zstd, wire::give_back_for_codec, nullptr})};
};

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

Refusal inflate_body(std::string_view compressed, wire::Coding coding, std::size_t limit_bytes,
                     net::BudgetShare& share, std::string& body) {
  body.clear();
  if (compressed.empty()) return {};
  if (coding == wire::Coding::Zstd) return ZstdBody(compressed, limit_bytes, share).decode(body);
  const std::string over_limit = over_limit_text(limit_bytes);
  const std::uint32_t stated =
      coding == wire::Coding::Gzip ? stated_gzip_bytes(compressed) : std::uint32_t{0};
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
