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
