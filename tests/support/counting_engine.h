// A model engine that counts what its users look at: entries that iterators come to, lookups,
// questions for statistics. Thread-safe as the model is; the count belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "support/model_engine.h"

namespace edgecase::test {

class CountingEngine final : public Engine {
 public:
  std::uint64_t looks() const { return looks_; }
  // Called once, at the look of that number.
  void at_look(std::uint64_t number, std::function<void()> done) {
    at_ = number;
    done_ = std::move(done);
  }

  Result<Bytes> get(NamespaceId id, ByteView key, const ReadOptions& options) override {
    ++looks_;
    return model_.get(id, key, options);
  }
  Result<std::unique_ptr<Iterator>> scan(NamespaceId id, const KeyRange& range,
                                         const ReadOptions& options) override {
    EC_ASSIGN_OR_RETURN(std::unique_ptr<Iterator> iterator, model_.scan(id, range, options));
    return std::unique_ptr<Iterator>(new Counting(std::move(iterator), *this));
  }
  Result<RangeStats> range_stats(NamespaceId id, const KeyRange& range,
                                 const ReadOptions& options) override {
    ++looks_;
    return model_.range_stats(id, range, options);
  }

  Result<NamespaceId> create_namespace(std::string_view name,
                                       const NamespaceOptions& options) override {
    return model_.create_namespace(name, options);
  }
  Status drop_namespace(NamespaceId id) override { return model_.drop_namespace(id); }
  Result<NamespaceInfo> find_namespace(std::string_view name) const override {
    return model_.find_namespace(name);
  }
  std::vector<NamespaceInfo> namespaces() const override { return model_.namespaces(); }
  Status write(const WriteBatch& batch, Durability durability) override {
    return model_.write(batch, durability);
  }
  void set_commit_companion(CommitCompanion* companion) override {
    model_.set_commit_companion(companion);
  }
  Result<std::uint64_t> approximate_size(NamespaceId id, const KeyRange& range) override {
    return model_.approximate_size(id, range);
  }
  std::shared_ptr<const Snapshot> snapshot() override { return model_.snapshot(); }
  CommitPosition committed() const override { return model_.committed(); }
  Status set_feed_bounds(std::vector<CommitPosition> bounds) override {
    return model_.set_feed_bounds(std::move(bounds));
  }
  std::weak_ptr<const void> held_snapshots() override { return model_.held_snapshots(); }
  std::uint64_t revocations() const override { return model_.revocations(); }
  bool is_revoked(NamespaceId id, ByteView first, ByteView last,
                  std::uint64_t since) const override {
    return model_.is_revoked(id, first, last, since);
  }
  Status flush() override { return model_.flush(); }
  Status compact(const std::vector<NamespaceId>& ids, const KeyRange& range) override {
    return model_.compact(ids, range);
  }
  Result<ErasureReport> erase() override { return model_.erase(); }
  Result<std::vector<FileShare>> locate(NamespaceId id, const KeyRange& range) override {
    return model_.locate(id, range);
  }
  Status set_retention(std::vector<RetentionRule> rules) override {
    return model_.set_retention(std::move(rules));
  }
  std::vector<RetentionRule> retention_rules() const override { return model_.retention_rules(); }
  void each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                           const RetentionTaker& take) const override {
    model_.each_retention_rule(id, prefixes, take);
  }
  Eviction plan_eviction(const EvictionRequest& request) const override {
    return model_.plan_eviction(request);
  }
  Status evict(std::span<const NamespaceId> ids, std::int64_t before_ns) override {
    return model_.evict(ids, before_ns);
  }
  std::int64_t evicted_before_ns(NamespaceId id) const override {
    return model_.evicted_before_ns(id);
  }
  std::int64_t expiry_now_ns() override { return model_.expiry_now_ns(); }
  std::vector<DamagedFile> damaged_files() const override { return model_.damaged_files(); }
  bool is_short_of_memory() const override { return model_.is_short_of_memory(); }
  void set_aside(std::uint64_t before, std::uint64_t now) override {
    model_.set_aside(before, now);
  }
  Sealer* sealer() override { return model_.sealer(); }
  Stats stats() const override { return model_.stats(); }

 private:
  class Counting final : public Iterator {
   public:
    Counting(std::unique_ptr<Iterator> iterator, CountingEngine& engine)
        : iterator_(std::move(iterator)), engine_(engine) {
      engine_.count_look();
    }
    bool valid() const override { return iterator_->valid(); }
    void next() override {
      engine_.count_look();
      iterator_->next();
    }
    void seek(ByteView key) override {
      engine_.count_look();
      iterator_->seek(key);
    }
    ByteView key() const override { return iterator_->key(); }
    ByteView value() override { return iterator_->value(); }
    std::size_t take_numbers(ByteView end, NumberColumns& columns) override {
      const std::size_t taken = iterator_->take_numbers(end, columns);
      for (std::size_t i = 0; i < taken; ++i) engine_.count_look();
      return taken;
    }
    CommitPosition position() const override { return iterator_->position(); }
    const Status& status() const override { return iterator_->status(); }

   private:
    const std::unique_ptr<Iterator> iterator_;
    CountingEngine& engine_;
  };

  void count_look() {
    if (++looks_ == at_) std::exchange(done_, nullptr)();
  }

  ModelEngine model_;
  std::uint64_t looks_ = 0;
  std::uint64_t at_ = 0;
  std::function<void()> done_;
};

}  // namespace edgecase::test
