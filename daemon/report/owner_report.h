// The report on one person: devices with their readings, purposes and objections, how long each
// series is kept, and who may read it.
//
//   {"owner","made","stored","devices":[{...,"series":[...]}],"recipients","erasures",
//    "automated_decisions", ...}
//
// It may be longer than memory has room for: numbers of its series are kept, 64 bytes each; names,
// and what is said of devices, are looked up each time that its text is written. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "auth/hashing.h"
#include "report/compliance_report.h"

namespace edgecase::report {

struct OwnerReport {
  // One series, as it was found.
  struct Series {
    std::uint64_t readings = 0, bytes = 0;
    catalog::WindowAmount windows;
    std::int64_t first_ns = 0, last_ns = 0, keep_ns = 0;
    catalog::SeriesRow row = 0;
    bool has_first = false, has_last = false;
  };

  std::string owner;
  wire::Json document;  // of its devices none
  std::vector<Series> series;
};

// The members of its objects as they are told, or sorted by their names.
enum class MemberOrder : unsigned char { AsTold, Sorted };

class OwnerReportText {
 public:
  OwnerReportText(const ReportParts& parts, std::shared_ptr<const OwnerReport> report,
                  MemberOrder order)
      : parts_(parts), report_(std::move(report)), order_(order) {}

  // Appends more of it: one object, without a line feed at its end. False: that was the last.
  // Errors: the engine's.
  Result<bool> fill(std::string& out);
  // What is told of devices, once it was; the same in any order.
  const auth::Digest& devices_digest() const { return digest_; }
  // Busy, before anything behind the devices, if what is told of them is something else.
  void expect_devices(const auth::Digest& digest) { expected_ = digest; }

 private:
  enum class Part : unsigned char { Head, Devices, Series, Tail, End };

  void append_members(bool are_before_devices, std::string& out) const;
  Result<bool> next_name();
  Result<bool> next_device(std::string& out);
  Result<bool> next_series(std::string& out);
  Status end_devices();
  void append_object(const wire::Json& object, std::size_t left_out, std::string& out);

  const ReportParts parts_;
  const std::shared_ptr<const OwnerReport> report_;
  const MemberOrder order_;
  Part part_ = Part::Head;
  std::vector<catalog::DeviceName> names_;  // a page of them
  std::size_t next_name_ = 0;
  std::size_t next_series_ = 0;
  bool is_last_page_ = false;
  bool is_first_device_ = true, is_first_series_ = true;
  auth::Sha256 told_;
  auth::Digest digest_{};
  std::optional<auth::Digest> expected_;
};

}  // namespace edgecase::report
