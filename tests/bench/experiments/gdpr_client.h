// One customer, controller, processor or regulator: asks a daemon over HTTP and compares each
// answer with the model.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <shared_mutex>
#include <string>

#include "bench/experiments/gdpr_model.h"
#include "bench/experiments/gdpr_records.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

// Shared by all clients of a run: what one changes in the store and the model, no other one looks
// at meanwhile. A change of one record holds `world` shared and its stripe; one of a group holds
// `world` alone. Groups are read only where nobody changes anything.
struct GdprLocks {
  std::shared_mutex world;
  std::array<std::mutex, 256> stripes;

  std::mutex& stripe(std::uint64_t number) { return stripes[number % stripes.size()]; }
};

struct GdprTarget {
  Endpoint endpoint;
  std::string headers;   // of every request, each ending in "\r\n"
  std::size_t page = 0;  // devices of a group that are asked for at once
};

class GdprClient {
 public:
  GdprClient(const GdprTarget& target, GdprModel& model, GdprLocks& locks)
      : target_(target), http_(target.endpoint), model_(model), locks_(locks) {}

  // Whether every answer was what the model says. Errors: no answer, or Busy for too long.
  Result<bool> run(const GdprOperation& operation);
  // Asks until all erasures are done, the last one of which is `number`.
  Status wait_until_gone(std::uint64_t number);

  std::uint64_t last_erasure() const { return last_erasure_; }
  std::uint64_t repeats() const { return repeats_; }  // of what was answered Busy
  // What the first wrong answer was; empty: none.
  const std::string& mistake() const { return mistake_; }

  struct Answer {
    int status = 0;
    std::string body;
  };
  // Again while the answer is 503.
  Result<Answer> ask(const char* method, const std::string& path, const std::string& body = "");

 private:
  Result<bool> create_record();
  Result<bool> delete_record(std::uint64_t number);
  Result<bool> update_data(std::uint64_t number);
  Result<bool> update_metadata(const GdprOperation& operation);
  Result<bool> update_group(const GdprOperation& operation);
  Result<bool> read_data(std::uint64_t number);
  Result<bool> read_metadata(std::uint64_t number);
  Result<bool> read_data_of_purpose(std::uint64_t number);
  Result<bool> read_data_of_user(std::uint64_t number);
  Result<bool> read_metadata_of_user(std::uint64_t number);
  Result<bool> read_log(std::uint32_t lines);
  Result<bool> verify_deletion(std::uint64_t number);

  // The devices that a list should name, and whether it does.
  Result<bool> list(const std::string& query, const std::vector<std::uint64_t>& expected);
  std::vector<std::uint64_t> group_of_user(std::uint64_t number) const;
  std::string query_of_user(std::uint64_t number) const;
  std::string query_of_purpose(std::uint64_t number) const;
  bool judged(bool is_right, const std::string& what, const Answer& answer);
  std::uint32_t value_of(const GdprOperation& operation) const;

  const GdprTarget target_;
  HttpClient http_;
  GdprModel& model_;
  GdprLocks& locks_;
  std::uint64_t last_erasure_ = 0;
  std::uint64_t repeats_ = 0;
  std::string mistake_;
};

}  // namespace edgecase::cli::bench
