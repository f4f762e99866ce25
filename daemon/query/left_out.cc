#include "query/left_out.h"

#include <algorithm>
#include <utility>

#include "wire/errors.h"
#include "wire/time_text.h"

namespace edgecase::query {

void LeftOut::add(LeftOutReadings readings) {
  if (!named_.empty() && more_ == 0) {
    LeftOutReadings& last = named_.back();
    if (last.namespace_name == readings.namespace_name && last.device == readings.device &&
        last.sensor == readings.sensor) {
      // Damage weighs more than a drive that is away.
      if (readings.why.code() == StatusCode::Corruption &&
          last.why.code() == StatusCode::Unavailable)
        last.why = std::move(readings.why);
      if (last.from_ns)
        last.from_ns = readings.from_ns ? std::optional(std::min(*last.from_ns, *readings.from_ns))
                                        : std::nullopt;
      if (last.to_ns)
        last.to_ns =
            readings.to_ns ? std::optional(std::max(*last.to_ns, *readings.to_ns)) : std::nullopt;
      return;
    }
  }
  if (named_.size() == kNamedMax) {
    ++more_;
  } else {
    named_.push_back(std::move(readings));
  }
}

LeftOutReadings lost_names() {
  return {"*",
          "*",
          "*",
          {},
          {},
          corruption("records of the catalog are damaged: devices and sensors whose names are lost "
                     "with them are not here")};
}

LeftOutReadings left_out_of(const std::string& namespace_name, const wire::LeftSelector& left) {
  return {namespace_name.empty() ? "*" : namespace_name,
          left.selector.device,
          left.selector.sensor,
          {},
          {},
          left.why};
}

wire::Json left_out_json(const LeftOut& left_out, std::size_t most) {
  wire::Json list = wire::Json::array();
  const std::vector<LeftOutReadings>& named = left_out.named();
  for (std::size_t i = 0; i < named.size() && i < most; ++i) {
    list.push_back({{"namespace", named[i].namespace_name},
                    {"device", named[i].device},
                    {"sensor", named[i].sensor},
                    {"from", wire::time_or_null(named[i].from_ns)},
                    {"to", wire::time_or_null(named[i].to_ns)},
                    {"code", wire::error_code_name(named[i].why.code())},
                    {"reason", named[i].why.to_string()}});
  }
  const std::uint64_t more = left_out.more() + (named.size() > most ? named.size() - most : 0);
  if (more > 0) list.push_back({{"more", more}});
  return list;
}

}  // namespace edgecase::query
