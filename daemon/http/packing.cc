#include "http/packing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "http/response.h"

namespace edgecase::http {
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
