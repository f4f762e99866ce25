// Any bytes from an HTTP client, in one piece and cut up: each request is understood or refused,
// how the bytes were cut changes nothing, bodies stay within their limit and budget, and what was
// understood comes through the router whole. The first byte chooses the cuts.
#include <cstddef>
#include <string>
#include <string_view>

#include "fuzz/fuzz_targets.h"
#include "http/request_reader.h"
#include "http/router.h"

namespace edgecase::test {
namespace {

constexpr std::uint64_t kBodiesBudgetBytes = 256u << 10;
constexpr std::size_t kBodyMaxBytes = 32u << 10;
constexpr int kTakenStatus = 207;
constexpr const char* kTakenPath = "/taken/";

// Answers go nowhere.
class DeafChannel final : public net::Channel {
 public:
  DeafChannel() : Channel(net::Socket()) {}
  net::Transfer receive(char* /*buffer*/, std::size_t /*size*/) override {
    return {net::Outcome::Closed, 0};
  }
  net::Transfer send(std::string_view bytes) override { return {net::Outcome::Done, bytes.size()}; }
};

struct Front {
  http::Router router;
  std::string seen;  // of the last request that came through

  Front() {
    for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
      const auto effect =
          std::string_view(method) == "GET" ? http::Effect::Reads : http::Effect::Changes;
      router.add(method, std::string(kTakenPath) + "*", effect, [this](http::Call& call) {
        seen = call.request.path;
        for (const auto& parameter : call.request.parameters) {
          seen += "&" + parameter.first + "=" + parameter.second;
        }
        call.answer_text(kTakenStatus, "text/plain", seen);
      });
    }
  }
};

void route(Front& front, const http::RequestHead& head, const std::string& body) {
  DeafChannel channel;
  std::string output;
  const auth::Principal principal{auth::PrincipalKind::LocalSocket, "uid 0"};
  http::AnswerStream stream(channel, output, 1'000'000);
  net::ByteBudget long_answers(1);
  http::Exchange exchange{head, body, principal, stream, net::BudgetShare(long_answers)};
  static_cast<void>(front.router.answer(exchange));
}

std::string requests(Front& front, std::string_view bytes, std::size_t step) {
  net::ByteBudget budget(kBodiesBudgetBytes);
  std::string told;
  {
    http::RequestReader reader(budget, kBodyMaxBytes);
    auto progress = http::RequestReader::Progress::NeedMore;
    const auto settle = [&] {
      while (progress == http::RequestReader::Progress::Complete) {
        http::ReceivedRequest request = reader.take();
        std::string body;
        net::BudgetShare share(budget);
        const http::Refusal refusal =
            http::inflate_body(request.body, request.head.coding, kBodyMaxBytes, share, body);
        demand(refusal.http_status != 0 || body.size() <= kBodyMaxBytes);
        told += request.head.method + " " + request.head.target + " " +
                std::to_string(refusal.http_status) + " " + std::to_string(body.size()) + ";";
        front.seen.clear();
        if (refusal.http_status == 0) route(front, request.head, body);
        told += front.seen + "\n";
        progress = reader.next();
      }
    };
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      progress = reader.feed(bytes.substr(at, step));
      settle();
      demand(budget.used_bytes() <= kBodiesBudgetBytes);
      if (progress != http::RequestReader::Progress::Refused) continue;
      const http::Refusal& refusal = reader.refusal();
      // A client that begins TLS gets an alert in its own words, not an answer.
      demand(refusal.http_status >= 400 || refusal.http_status == http::kAlert);
      demand(!refusal.status.ok());
      demand(!http::refusal_text(reader.target(), refusal).empty());
      // A byte that can be in no head is refused as it comes, before the line around it is judged:
      // of several mistakes another one may be met first.
      told += "refused";
      break;
    }
  }
  demand(budget.used_bytes() == 0);
  return told;
}

}  // namespace

void take_http_front(std::string_view data) {
  static Front front;
  if (data.empty()) return;
  const std::string_view bytes = data.substr(1);
  const std::size_t step = 1 + static_cast<unsigned char>(data[0]);
  demand(requests(front, bytes, data.size()) == requests(front, bytes, step));
}

}  // namespace edgecase::test
