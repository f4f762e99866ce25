// Answers in gzip, for clients that take it (Accept-Encoding).
//
// Text and JSON are packed: whole bodies from kPackedMinBytes on, and what is sent in pieces. Each
// piece leaves whole with its part of the stream: nothing of it waits in the packer, so that what
// is erased meanwhile can still be dropped (answer_stream.h), and a reader sees it at once. A cut
// answer has no gzip trailer, as it has no last chunk.
// One thread an answer; about 270 KB while it lasts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/request_head.h"

namespace edgecase::http {

struct Response;

// Below this the head grows by as much as the body shrinks.
inline constexpr std::size_t kPackedMinBytes = 1'024;

class Packer {
 public:
  // Null: there is no memory for it.
  static std::unique_ptr<Packer> create();
  virtual ~Packer() = default;
  // Appends all of `piece` to `out`, packed. False: it failed, and the answer with it.
  [[nodiscard]] virtual bool pack(std::string_view piece, std::string& out) = 0;
  // Appends the end.
  [[nodiscard]] virtual bool finish(std::string& out) = 0;
};

// Packs the body, or has the pieces packed when they are sent, where the client takes it and it
// pays; says in the head what depends on Accept-Encoding.
void pack_response(const RequestHead& request, Response& response);

}  // namespace edgecase::http
