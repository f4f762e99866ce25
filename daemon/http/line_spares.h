// Spares for decoding and storing line protocol, kept from one request to the next: names that were
// built, series that were found, and memory that need not be asked for again. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "wire/line_names.h"
#include "wire/reading.h"

namespace edgecase::http {

// The catalog, as names of lines ask it.
class CatalogSeries final : public wire::KnownSeries {
 public:
  explicit CatalogSeries(const catalog::Catalog& catalog) : catalog_(catalog) {}
  bool has_device(std::string_view namespace_name, std::string_view device) const override;
  bool has_series(std::string_view namespace_name, std::string_view device, std::string_view sensor,
                  const wire::SeriesIdentity& identity) const override;
  bool has_series_of(std::string_view namespace_name, std::string_view device,
                     std::string_view prefix) const override;

 private:
  const catalog::Catalog& catalog_;
};

// Spares of one request at a time; between two it holds nothing of either but names.
struct LineSpare {
  std::string namespace_name;
  std::uint64_t generation = 0;  // of the catalog when it was made
  std::shared_ptr<const wire::LineRules> rules;
  std::uint64_t forgets = 0;  // calls of forget() before it was lent
  wire::ReadingBatch batch;
  wire::LineNames names;
  ingest::IngestBuffers buffers;

  std::size_t names_bytes() const { return batch.names.memory_bytes() + names.memory_bytes(); }
  std::size_t memory_bytes() const {
    return sizeof(LineSpare) + batch.memory_bytes() + names.memory_bytes() + buffers.memory_bytes();
  }
};

class LineSpares {
 public:
  // How many spares are kept, and what they take. Each gets the same share, half of it for names: a
  // single sender may have many. It is set aside in the engine.
  static constexpr std::size_t kSparesMax = 4;
  static constexpr std::size_t kSparesMaxBytes = 12u << 20;
  static_assert(kSparesMaxBytes / 2 >= wire::kRememberedBytesMax);
  // What one takes beside names.
  static constexpr std::size_t kBuffersMaxBytes = 3u << 20;

  LineSpares(Engine& engine, const catalog::Catalog& catalog)
      : catalog_(catalog), series_(catalog), set_aside_(engine) {
    spares_.reserve(kSparesMax);
  }

  class Loan {
   public:
    Loan(LineSpares& spares, std::unique_ptr<LineSpare> spare)
        : spares_(spares), spare_(std::move(spare)) {}
    ~Loan() { spares_.give_back(std::move(spare_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    LineSpare* operator->() { return spare_.get(); }

   private:
    LineSpares& spares_;
    std::unique_ptr<LineSpare> spare_;
  };
  // One that served the namespace, where there is one. Those that may know names that were erased
  // since are gone.
  Loan take(std::string_view namespace_name);
  // Lines that come from now on obey these rules. Forgets the spares that nobody has.
  void set_rules(std::shared_ptr<const wire::LineRules> rules);
  std::shared_ptr<const wire::LineRules> rules() const;
  // Forgets all spares: one that is lent goes when it comes back.
  void forget();

 private:
  friend class Loan;
  void give_back(std::unique_ptr<LineSpare> spare);
  std::size_t share_bytes() const EC_REQUIRES(mutex_);

  const catalog::Catalog& catalog_;
  const CatalogSeries series_;
  mutable Mutex mutex_;
  std::shared_ptr<const wire::LineRules> rules_ EC_GUARDED_BY(mutex_) =
      std::make_shared<const wire::LineRules>();
  catalog::SetAside set_aside_ EC_GUARDED_BY(mutex_);
  std::uint64_t forgets_ EC_GUARDED_BY(mutex_) = 0;
  std::size_t lent_ EC_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<LineSpare>> spares_
      EC_GUARDED_BY(mutex_);  // the one used last comes last
};

}  // namespace edgecase::http
