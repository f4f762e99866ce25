// The records of GDPRbench (Shastri et al., VLDB 13(7), 2020), and who does what with them: each
// role's operations, drawn beforehand. Record N is the key `key<N>` with nine fields of metadata
// and 100 bytes of data, every field made of N alone: the value N mod (number of values) of the
// field's list.
//
// In the store a record is the device `key<N>`: its owner is USR, its purpose PUR, its objection
// OBJ, its labels DEC, ACL, SHR, SRC and CAT; its data is one reading of the sensor `data`. A
// retention rule is of a namespace, so there is one namespace for each TTL of the list.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace edgecase::cli::bench {

inline constexpr std::size_t kGdprDataBytes = 100;
inline constexpr std::uint32_t kGdprPurposes = 25;
inline constexpr std::uint64_t kGdprRecordsPerUser = 10;  // 10,000 users for 100,000 records
inline constexpr const char* kGdprSensor = "data";

// Seconds that records are kept; N mod 10.
inline constexpr std::array<std::uint32_t, 10> kGdprTtlSeconds = {
    30, 10'000, 12'000, 14'000, 16'000, 18'000, 20'000, 22'000, 24'000, 1'000'000};

// Fields that are updated, in the order of GdprRecord::values.
enum class GdprField : unsigned char { User, Objection, Decision, Access, Share, Source, Category };
inline constexpr std::size_t kGdprFields = 7;

// What changes of a record; the rest is made of its number.
struct GdprRecord {
  std::array<std::uint32_t, kGdprFields> values{};  // each the number of a value in its list
  std::uint16_t version = 0;                        // of the data
  bool is_erased = false;
  std::int64_t time_ns = 0;  // of the reading
};

class GdprLayout {
 public:
  explicit GdprLayout(std::uint64_t records)
      : users_(records < kGdprRecordsPerUser ? 1 : records / kGdprRecordsPerUser) {}

  // Without a time.
  GdprRecord record(std::uint64_t number) const;
  std::uint32_t value(std::uint64_t number, GdprField field) const;
  std::uint32_t users() const { return static_cast<std::uint32_t>(users_); }

 private:
  std::uint64_t users_;
};

std::string gdpr_key(std::uint64_t number);
std::uint32_t gdpr_ttl_class(std::uint64_t number);
std::string gdpr_namespace(std::uint32_t ttl_class);
std::uint32_t gdpr_purpose_of(std::uint64_t number);
std::string gdpr_purpose(std::uint32_t value);
// "SHR", and "shr7": a label and its value. Owner and objection have a text only.
const char* gdpr_label(GdprField field);
std::string gdpr_text(GdprField field, std::uint32_t value);
// kGdprDataBytes of letters and digits that cannot be compressed much.
std::string gdpr_data(std::uint64_t number, std::uint16_t version);

// What a user hands in with a record: key, data, and each field as NAME=VALUE.
std::uint64_t gdpr_user_bytes(std::uint64_t number, const GdprRecord& record);
// As POST /api/v1/devices and /api/v1/readings take it.
std::string gdpr_description(std::uint64_t number, const GdprRecord& record);
std::string gdpr_reading(std::uint64_t number, const GdprRecord& record);

enum class GdprAct : unsigned char {
  CreateRecord,
  DeleteRecord,
  UpdateMetadataOfPurpose,
  UpdateMetadataOfUser,
  UpdateMetadata,
  UpdateData,
  ReadData,
  ReadMetadata,
  ReadDataOfPurpose,
  ReadDataOfUser,
  ReadMetadataOfUser,
  ReadLog,
  VerifyDeletion,
};

struct GdprOperation {
  GdprAct act = GdprAct::ReadData;
  GdprField field = GdprField::Share;  // that is updated
  std::uint32_t number = 0;            // of the record
  std::uint32_t other = 0;             // the record whose value is taken; lines of the log
};

enum class GdprDraw : unsigned char { Uniform, Zipfian };

struct GdprRole {
  struct Part {
    GdprAct act;
    unsigned percent;
  };
  const char* name;
  GdprDraw draw;
  std::span<const Part> parts;
};

// Controller, customer, processor, regulator: in this order, since the latter look for what the
// former have erased.
std::span<const GdprRole> gdpr_roles();

// `count` operations on records below `records`: of each part as many as its share says, in an
// order drawn with `seed`.
std::vector<GdprOperation> draw_operations(const GdprRole& role, std::uint64_t count,
                                           std::uint64_t records, std::uint64_t seed);

}  // namespace edgecase::cli::bench
