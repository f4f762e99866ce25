// The side of the engine that compaction sees: hands each question on to the part that knows.
#pragma once

#include "compaction/compaction_host.h"
#include "core/engine_impl.h"

namespace edgecase::engine {

class EngineImpl::CompactionDoor final : public CompactionHost {
 public:
  explicit CompactionDoor(EngineImpl& engine) : engine_(engine) {}

  void schedule(std::int64_t delay_ns, std::function<void()> task) override;
  void publish() override;
  void revoke() override;
  void report(const Status& health) override;
  std::uint64_t user_bytes() const override;
  std::uint64_t flushed_bytes() const override;
  Status check_values() override;
  bool is_roomy() const override;
  bool release_reserve() override;
  std::set<FileNumber> lost_files() override;
  bool look_for_damage(const std::vector<TablePointer>& tables) override;
  ExpiryView expiry() override;
  Result<bool> clear_expired_log() override;
  Result<bool> finish_erasure(SequenceNumber through) override;

 private:
  EngineImpl& engine_;
};

}  // namespace edgecase::engine
