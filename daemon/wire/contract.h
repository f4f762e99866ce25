// The fixed words between the daemon and those who talk to it: errors and exit codes, the paths and
// headers of the HTTP face, the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

// Errors: one table of status code, name in JSON, HTTP status, exit code.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitNotAllowed = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitPartly = 6;
inline constexpr int kExitCorruption = 7;

std::string_view error_code_name(StatusCode code);  // "not_found"
StatusCode status_code_of(std::string_view error_code_name);
int http_status_of(
    StatusCode code);  // Busy, OutOfSpace, IoError, Unavailable: 503; LimitReached: 400
int exit_code_of(StatusCode code);

// {"error":{"code":"…","message":"…","line":n?}}
std::string error_json(const Status& status, std::uint64_t line = 0);

// The version of EdgeCase: "0.1.0".
std::string_view version();

}  // namespace edgecase::wire

// Paths of the HTTP face, once.

namespace edgecase::wire::routes {

inline constexpr char kInfluxWrite[] = "/write";
inline constexpr char kInfluxWriteV2[] = "/api/v2/write";
inline constexpr char kInfluxPing[] = "/ping";
inline constexpr char kInfluxHealth[] = "/health";
inline constexpr char kInfluxReady[] = "/ready";
inline constexpr char kInfluxQuery[] = "/query";
inline constexpr char kInfluxQueryV2[] = "/api/v2/query";
inline constexpr char kInfluxBuckets[] = "/api/v2/buckets";
inline constexpr char kInfluxOrgs[] = "/api/v2/orgs";
inline constexpr char kReadings[] = "/api/v1/readings";
inline constexpr char kBlob[] = "/api/v1/blob";  // then /NS/DEVICE/SENSOR, each percent-encoded
inline constexpr char kQuery[] = "/api/v1/query";
inline constexpr char kLast[] = "/api/v1/last";
inline constexpr char kTail[] = "/api/v1/tail";
inline constexpr char kFind[] = "/api/v1/find";
inline constexpr char kSeries[] = "/api/v1/series";
inline constexpr char kDevices[] = "/api/v1/devices";
inline constexpr char kNamespaces[] = "/api/v1/namespaces";
inline constexpr char kRetention[] = "/api/v1/retention";
inline constexpr char kRetentionPreview[] = "/api/v1/retention/preview";
inline constexpr char kErase[] = "/api/v1/erase";
inline constexpr char kErasePreview[] = "/api/v1/erase/preview";
inline constexpr char kErasures[] = "/api/v1/erasures";
inline constexpr char kFences[] = "/api/v1/fences";
inline constexpr char kWhere[] = "/api/v1/where";
inline constexpr char kDevice[] = "/api/v1/device";
inline constexpr char kForward[] = "/api/v1/forward";
inline constexpr char kTokens[] = "/api/v1/tokens";
inline constexpr char kBackups[] = "/api/v1/backups";
inline constexpr char kReport[] = "/api/v1/report";
inline constexpr char kReportKey[] = "/api/v1/report/key";
inline constexpr char kAudit[] = "/api/v1/audit";
inline constexpr char kAuditVerify[] = "/api/v1/audit/verify";
inline constexpr char kStatus[] = "/api/v1/status";
inline constexpr char kOpenApi[] = "/api/v1/openapi.json";
inline constexpr char kMqttTest[] = "/api/v1/mqtt/test";
inline constexpr char kInfluxTest[] = "/api/v1/influx/test";
inline constexpr char kInfluxRules[] = "/api/v1/influx/rules";
inline constexpr char kHealthz[] = "/healthz";
inline constexpr char kReadyz[] = "/readyz";
inline constexpr char kMetrics[] = "/metrics";
// Headers of an answer with readings. Withheld: devices that were left out, since their purposes do
// not allow it. Left out: what is damaged, a JSON array as text of ASCII. An answer that is sent in
// pieces may come to damage when its head has left: who asks with kReportHeader: inline is answered
// with the same header and gets, behind the body, the array and its length in 8 digits. Others get
// no proper end of such an answer.
inline constexpr char kLeftOutHeader[] = "X-EdgeCase-Left-Out";
inline constexpr char kReportHeader[] = "X-EdgeCase-Report";
inline constexpr char kReportInline[] = "inline";
inline constexpr std::size_t kReportLengthDigits = 8;
inline constexpr std::size_t kReportMaxBytes = 48u << 10;
// The store that forwards to this one: its number and its runs (ingest/origins.h). Names in such a
// request are the sender's.
inline constexpr char kOriginHeader[] = "X-EdgeCase-Origin";
// "identity": the format has no place for the identities of series that their names do not tell.
inline constexpr char kNotToldHeader[] = "X-EdgeCase-Not-Told";
// Which windows of tiers an answer is made of, and where it could not be ("1h before 2026-...").
inline constexpr char kTiersHeader[] = "X-EdgeCase-Tiers";
inline constexpr char kWithheldHeader[] = "X-EdgeCase-Withheld-Devices";
// Headers of an answer with new readings: where the next one begins, how many came and went
// between, and how many the answer holds.
inline constexpr char kCursorHeader[] = "X-EdgeCase-Cursor";
inline constexpr char kMissedHeader[] = "X-EdgeCase-Missed-Readings";
inline constexpr char kReadingsHeader[] = "X-EdgeCase-Readings";
inline constexpr char kPage[] = "/";

}  // namespace edgecase::wire::routes
