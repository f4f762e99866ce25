// Counts the readings of one commit by device and by who brought them, for the audit log. Owned by
// one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "audit/audit_log.h"
#include "catalog/catalog.h"
#include "wire/reading.h"

namespace edgecase::ingest {

// The bringer of the readings from this one on, up to the next author's, for the audit log: where
// that is not the batch's principal.
struct Author {
  std::size_t first_reading = 0;
  std::string_view name;   // as a principal's
  std::string_view token;  // its id; empty: none
};

class StoredDevices {
 public:
  static constexpr std::string_view kOperation = "ingest";

  // `authors` are those of these readings; what is stored of them outlives drafts(). The same one
  // may come several times, between others.
  void add(audit::AuditLog& log, std::span<const wire::Reading> readings,
           std::span<const catalog::SeriesId> ids, std::span<const Author> authors);
  // A record for up to audit::kTargetsMax devices of one namespace and one author; what has no
  // author of its own is the principal's.
  std::vector<audit::Draft> drafts(const auth::Principal& principal) const;
  void clear();
  std::size_t memory_bytes() const {
    return devices_.capacity() * sizeof(Device) + index_.capacity() * sizeof(std::uint32_t);
  }

 private:
  struct Device {
    std::size_t author = 0;  // 0: none of its own; else behind that many of authors_
    NamespaceId namespace_id = 0;
    std::uint32_t id = 0;
    audit::Target target;

    auto place() const { return std::tuple(author, namespace_id, id); }
  };
  struct Namespace {
    NamespaceId id = 0;
    std::string name;
  };

  std::size_t author_of(const Author& author);
  Device& device_of(audit::AuditLog& log, std::size_t author, const wire::Reading& reading,
                    const catalog::SeriesId& id);
  std::string_view namespace_name(NamespaceId id) const;  // empty: not met yet
  std::uint32_t& place_of(NamespaceId namespace_id, std::uint32_t id);
  void make_index_larger();

  std::vector<Device> devices_;
  // An index over devices without an author: how many devices there were with it; 0: none. As many
  // as a power of two, half of them taken at most; the next ones are looked at where one is.
  std::vector<std::uint32_t> index_;
  std::size_t indexed_ = 0;
  std::vector<Namespace> namespaces_;
  std::vector<Author> authors_;
  std::unordered_map<std::string_view, std::size_t> author_numbers_;
};

}  // namespace edgecase::ingest
