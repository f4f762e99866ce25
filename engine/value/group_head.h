// GroupHead: the bytes that every group begins with. Layout: group_format.h.
#pragma once

#include "base/coding.h"
#include "base/entry.h"
#include "value/group_format.h"

namespace edgecase::engine {

struct GroupHead {
  unsigned char flags = 0;
  ByteView prefix;  // the namespace's
  std::uint64_t entries = 0;
  SequenceNumber sequence_max = 0;
};

inline void append_group_head(Bytes& out, const GroupHead& head) {
  out.push_back(static_cast<char>(head.flags));
  out.append(head.prefix);
  append_varint64(out, head.entries);
  append_varint64(out, head.sequence_max);
}

[[nodiscard]] inline bool take_group_head(ByteView& group, GroupHead& head) {
  if (group.empty()) return false;
  head.flags = static_cast<unsigned char>(group.front());
  group.remove_prefix(1);
  return take_bytes(group, kNamespacePrefixBytes, head.prefix) &&
         take_varint64(group, head.entries) && head.entries > 0 &&
         head.entries <= kGroupEntriesMax && take_varint64(group, head.sequence_max);
}

}  // namespace edgecase::engine
