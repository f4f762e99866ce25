// Bytes of one connection to requests, one after another. Owned by one thread at a time; does no
// I/O, so that tests and fuzzers can drive it.
//
//   progress = reader.feed(bytes) until Complete or Refused; take(); then next() for what has
//   already been received of the following request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/body_decoder.h"
#include "http/refusal.h"
#include "http/request_head.h"
#include "net/byte_budget.h"

namespace edgecase::http {

// A complete request; its body still compressed as head.coding says.
struct ReceivedRequest {
  RequestHead head;
  std::string body;
  net::BudgetShare share;  // of the body's bytes
};

class RequestReader {
 public:
  enum class Progress : unsigned char { NeedMore, Complete, Refused };

  RequestReader(net::ByteBudget& budget, std::size_t body_limit_bytes,
                const HeadLimits& head_limits = {})
      : body_limit_bytes_(body_limit_bytes),
        head_limits_(head_limits),
        request_{{}, {}, net::BudgetShare(budget)},
        budget_(budget) {}

  Progress feed(std::string_view bytes);
  // After Complete, until take().
  const RequestHead& head() const { return request_.head; }
  // After Complete. next() may be called then.
  ReceivedRequest take();
  Progress next() { return feed({}); }

  // After Refused.
  const Refusal& refusal() const { return refusal_; }
  const std::string& target() const { return request_.head.target; }

  // Nothing of a request has come yet.
  bool is_idle() const { return stage_ == Stage::Head && input_.empty(); }
  bool in_body() const { return stage_ == Stage::Body; }
  // The client waits for "100 Continue"; asked for once.
  bool claim_continue();
  // How much to receive at once: never far beyond this request's end.
  std::size_t wanted_bytes() const;
  std::uint64_t body_bytes() const { return request_.body.size(); }

 private:
  enum class Stage : unsigned char { Head, Body, Complete };

  Progress begin_body();
  Progress continue_body(std::string_view bytes, std::size_t& used);
  Progress refuse(Refusal refusal);

  const std::size_t body_limit_bytes_;
  const HeadLimits head_limits_;
  Stage stage_ = Stage::Head;
  std::string input_;  // received, not yet understood
  ReceivedRequest request_;
  ChunkedDecoder chunks_;
  bool owes_continue_ = false;
  Refusal refusal_;
  net::ByteBudget& budget_;
};

}  // namespace edgecase::http
