#include "bench/experiments/feature_cost.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/experiments/gdpr_records.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "edgecase/machine.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

namespace routes = wire::routes;

constexpr std::uint64_t kRecordsPerRequest = 1'000;
constexpr const char* kMix = "mix";
constexpr double kSeconds = 5;  // at most, of a run

constexpr const char* kRetention = "90d";

enum class Protection : unsigned char { Plain, Features, Everything };

class FeatureRun {
 public:
  FeatureRun(const BenchOptions& options, std::uint64_t records, Protection protection)
      : options_(options),
        records_(records),
        protection_(protection),
        layout_(records),
        start_ns_(system_clock().wall_ns()) {}

  Status run(std::uint64_t operations, std::uint32_t clients, DaemonComparison& comparison) {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.devices = records_;
    wanted.audit_mode = is_protected() ? "strict" : "off";
    wanted.encrypted = is_protected();
    wanted.transport = has_everything() ? Transport::Tls : Transport::Tcp;
    if (has_everything()) wanted.retention = kRetention;
    EC_ASSIGN_OR_RETURN(const auto daemon, DaemonProcess::create(wanted));
    EC_TRY(daemon->start());
    if (is_protected()) EC_TRY(take_token(daemon->endpoint()));
    EC_ASSIGN_OR_RETURN(const Endpoint endpoint, daemon->tcp_endpoint());
    EC_TRY(send_all(endpoint, namespaces(), 1, 0).status());
    EC_TRY(send_all(endpoint, loads(), 1, 0).status());
    const std::vector<std::string> requests = mix(operations);
    return comparison
        .measure(static_cast<std::size_t>(protection_), *daemon, endpoint,
                 {kMix, &requests, clients, kSeconds})
        .status();
  }

 private:
  bool is_protected() const { return protection_ != Protection::Plain; }
  bool has_everything() const { return protection_ == Protection::Everything; }

  // From then on every request shows it.
  Status take_token(const Endpoint& endpoint) {
    HttpClient client(endpoint);
    std::string body;
    EC_TRY(client
               .exchange(
                   http_request("POST", std::string(routes::kTokens) + "?ns=*&admin=true", "", ""),
                   [&body](std::string_view piece) { body.append(piece); })
               .status());
    const auto json = nlohmann::json::parse(body, nullptr, false);
    if (!json.is_object() || !json.contains("token")) return io_error("no token: " + body);
    headers_ = "Authorization: Bearer " + json.value("token", "") + "\r\n";
    return ok();
  }

  GdprRecord record(std::uint64_t number) const {
    GdprRecord record = layout_.record(number);
    record.time_ns = start_ns_ + static_cast<std::int64_t>(number);
    return record;
  }

  std::vector<std::string> namespaces() const {
    std::vector<std::string> requests;
    for (std::uint32_t i = 0; i < kGdprTtlSeconds.size(); ++i) {
      requests.push_back(http_request(
          "POST", std::string(routes::kNamespaces) + "?name=" + gdpr_namespace(i), headers_, ""));
    }
    return requests;
  }

  std::vector<std::string> loads() const {
    std::vector<std::string> requests;
    for (std::uint64_t first = 0; first < records_; first += kRecordsPerRequest) {
      std::string said, measured;
      for (std::uint64_t i = first; i < std::min(first + kRecordsPerRequest, records_); ++i) {
        said += gdpr_description(i, record(i)) + "\n";
        measured += gdpr_reading(i, record(i)) + "\n";
      }
      if (is_protected())
        requests.push_back(http_request("POST", routes::kDevices, headers_, said));
      requests.push_back(http_request("POST", routes::kReadings, headers_, measured));
    }
    return requests;
  }

  std::vector<std::string> mix(std::uint64_t operations) const {
    SeededRandom random(options_.seed);
    ScrambledZipfian zipfian(records_);
    std::vector<std::string> requests;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const std::uint64_t number = zipfian.next(random);
      if (random.below(2) == 0) {
        GdprRecord updated = record(number);
        updated.version = static_cast<std::uint16_t>(random.below(0xffff));
        requests.push_back(
            http_request("POST", routes::kReadings, headers_, gdpr_reading(number, updated)));
        continue;
      }
      std::string path = std::string(routes::kLast) +
                         "?ns=" + gdpr_namespace(gdpr_ttl_class(number)) +
                         "&select=" + gdpr_key(number) + "/" + kGdprSensor;
      if (is_protected()) path += "&purpose=" + gdpr_purpose(gdpr_purpose_of(number));
      requests.push_back(http_request("GET", path, headers_, ""));
    }
    return requests;
  }

  const BenchOptions& options_;
  const std::uint64_t records_;
  const Protection protection_;
  const GdprLayout layout_;
  const std::int64_t start_ns_;
  std::string headers_;
};

}  // namespace

Result<FeatureCost> measure_feature_cost(const BenchOptions& options, std::uint64_t records,
                                         std::uint64_t operations, std::uint32_t clients) {
  DaemonComparison comparison({"plain", "features", "everything"});
  for (std::uint32_t round = 0; round < options.rounds_or(3); ++round) {
    EC_TRY(comparison.take_turns([&](std::size_t variant) {
      const auto protection = static_cast<Protection>(variant);
      return FeatureRun(options, records, protection).run(operations, clients, comparison);
    }));
  }
  const auto rate = [&](Protection of) {
    return comparison.rate(kMix, static_cast<std::size_t>(of));
  };
  const auto ratio = [&](Protection of) {
    return comparison.ratio(kMix, static_cast<std::size_t>(of));
  };
  return FeatureCost{.plain_per_second = rate(Protection::Plain),
                     .features_per_second = rate(Protection::Features),
                     .features_ratio = ratio(Protection::Features),
                     .everything_per_second = rate(Protection::Everything),
                     .everything_ratio = ratio(Protection::Everything)};
}

}  // namespace edgecase::cli::bench
