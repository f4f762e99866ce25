// The list of what an answer about many things leaves out, since it cannot be read, is not there or
// may not be asked for. Each is named, the rest is told all the same. And which readings a damaged
// file has lost. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/status.h"
#include "wire/json_text.h"
#include "wire/selector.h"

namespace edgecase::query {

struct LeftOutReadings {
  std::string namespace_name, device, sensor;
  // Both included; not every reading between need be lost. Unset: from the first, to the last.
  std::optional<std::int64_t> from_ns, to_ns;
  Status why;
};

class LeftOut {
 public:
  static constexpr std::size_t kNamedMax = 64;

  // Readings of one series that follow one another are one.
  void add(LeftOutReadings readings);
  void add(const LeftOut& other) {
    for (const LeftOutReadings& each : other.named_) add(each);
    more_ += other.more_;
  }

  bool empty() const { return named_.empty(); }
  const std::vector<LeftOutReadings>& named() const { return named_; }
  std::uint64_t more() const { return more_; }  // that are not named
  // Why the first one is; Ok where there is none.
  Status status() const { return empty() ? ok() : named_.front().why; }

 private:
  std::vector<LeftOutReadings> named_;
  std::uint64_t more_ = 0;
};

// Notes that records of the catalog cannot be read while many series are asked for: what lay under
// the names in them is not among the answer, and nobody can say how it was called.
LeftOutReadings lost_names();

// A selector of several that names nothing, or nothing that may be asked for.
LeftOutReadings left_out_of(const std::string& namespace_name, const wire::LeftSelector& left);

// [{"namespace","device","sensor","from","to","code","reason"}, ...]; the last one {"more":n} where
// more are left out than `most`. `code` is that of errors: "corruption" where it is damaged.
wire::Json left_out_json(const LeftOut& left_out, std::size_t most = LeftOut::kNamedMax);

// Damage that scrubbing found, in words of users.
inline constexpr std::size_t kLostSeriesMax = 64;  // named of one file

struct LostSeries {
  std::string namespace_name;
  std::string device;  // empty: what the store notes for itself
  std::string sensor;
  std::int64_t from_ns = INT64_MIN;  // both included; not every reading between need be lost
  std::int64_t to_ns = INT64_MAX;
};

struct Damage {
  DamagedFile file;
  std::vector<LostSeries> lost;
  bool lost_more = false;  // than `lost` names
};

// A series that was erased meanwhile is not named.
std::vector<Damage> find_damage(const Engine& engine, const catalog::Catalog& catalog);

}  // namespace edgecase::query
