// Answers in gzip or zstd, for clients that take it (Accept-Encoding).
//
// Text and JSON are packed: whole bodies from kPackedMinBytes on, and what is sent in pieces. Each
// piece leaves whole with its part of the stream: nothing of it waits in the packer, so that what
// is erased meanwhile can still be dropped (answer_stream.h), and a reader sees it at once. A cut
// answer lacks the end of its coding, as it has no last chunk.
#pragma once

#include <cstddef>

#include "http/request_head.h"

namespace edgecase::http {

struct Response;

// Below this the head grows by as much as the body shrinks.
inline constexpr std::size_t kPackedMinBytes = 1'024;

// Packs the body, or has the pieces packed when they are sent, where the client takes it and it
// pays; says in the head what depends on Accept-Encoding.
void pack_response(const RequestHead& request, Response& response);

}  // namespace edgecase::http
