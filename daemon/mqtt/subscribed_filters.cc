#include "mqtt/subscribed_filters.h"

#include "mqtt/record_namespace.h"

namespace edgecase::mqtt {
namespace {

constexpr char kFilterRecord = 'F';
constexpr char kRecordVersion = 1;

}  // namespace

Result<std::unique_ptr<SubscribedFilters>> SubscribedFilters::open(Engine& engine,
                                                                   std::string_view client_id,
                                                                   std::string_view broker) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, open_record_namespace(engine));
  std::string prefix(1, kFilterRecord);
  prefix.append(client_id).push_back('\0');
  prefix.append(broker).push_back('\0');
  std::unique_ptr<SubscribedFilters> filters(new SubscribedFilters(engine, id, std::move(prefix)));
  EC_TRY(filters->load());
  return filters;
}

Status SubscribedFilters::load() {
  KeyRange range;
  range.lower = prefix_;
  range.upper = prefix_;
  range.upper.back() = '\1';
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each,
                      engine_.scan(namespace_id_, range, without_damaged()));
  for (; each->valid(); each->next()) {
    filters_.insert(std::string(each->key().substr(prefix_.size())));
  }
  return each->status();
}

Status SubscribedFilters::add(const std::string& filter) {
  if (filters_.contains(filter)) return ok();
  WriteBatch batch;
  batch.put(namespace_id_, prefix_ + filter, std::string(1, kRecordVersion));
  EC_TRY(engine_.write(batch, Durability::Sync));
  filters_.insert(filter);
  return ok();
}

Status SubscribedFilters::remove(const std::string& filter) {
  WriteBatch batch;
  batch.remove(namespace_id_, prefix_ + filter);
  EC_TRY(engine_.write(batch, Durability::Sync));
  filters_.erase(filter);
  return ok();
}

}  // namespace edgecase::mqtt
