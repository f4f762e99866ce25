#include "bench/experiments/gdpr_records.h"

#include <array>
#include <memory>
#include <utility>

#include "bench/loads.h"
#include "edgecase/machine.h"

namespace edgecase::cli::bench {
namespace {

struct FieldRow {
  const char* label;
  const char* text;
  std::uint32_t values;  // 0: one a user
};
constexpr std::array<FieldRow, kGdprFields> kRecordFields = {{{"USR", "usr", 0},
                                                              {"OBJ", "obj", 100},
                                                              {"DEC", "dec", 2},
                                                              {"ACL", "acl", 10},
                                                              {"SHR", "shr", 10},
                                                              {"SRC", "src", 10},
                                                              {"CAT", "cat", 10}}};

const FieldRow& row_of(GdprField field) {
  return kRecordFields[static_cast<std::size_t>(field)];
}

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

constexpr std::uint32_t kLogLinesMax = 1000;

constexpr std::array kController = {GdprRole::Part{GdprAct::CreateRecord, 25},
                                    GdprRole::Part{GdprAct::DeleteRecord, 25},
                                    GdprRole::Part{GdprAct::UpdateMetadataOfPurpose, 25},
                                    GdprRole::Part{GdprAct::UpdateMetadataOfUser, 25}};
constexpr std::array kCustomer = {
    GdprRole::Part{GdprAct::ReadData, 20}, GdprRole::Part{GdprAct::ReadMetadata, 20},
    GdprRole::Part{GdprAct::UpdateData, 20}, GdprRole::Part{GdprAct::UpdateMetadata, 20},
    GdprRole::Part{GdprAct::DeleteRecord, 20}};
constexpr std::array kProcessor = {GdprRole::Part{GdprAct::ReadData, 20},
                                   GdprRole::Part{GdprAct::ReadDataOfPurpose, 40},
                                   GdprRole::Part{GdprAct::ReadDataOfUser, 40}};
constexpr std::array kRegulator = {GdprRole::Part{GdprAct::ReadMetadataOfUser, 46},
                                   GdprRole::Part{GdprAct::ReadLog, 31},
                                   GdprRole::Part{GdprAct::VerifyDeletion, 23}};

}  // namespace

std::uint32_t GdprLayout::value(std::uint64_t number, GdprField field) const {
  const std::uint32_t values = row_of(field).values;
  return static_cast<std::uint32_t>(number % (values == 0 ? users_ : values));
}

GdprRecord GdprLayout::record(std::uint64_t number) const {
  GdprRecord record;
  for (std::size_t i = 0; i < kGdprFields; ++i)
    record.values[i] = value(number, static_cast<GdprField>(i));
  return record;
}

std::string gdpr_key(std::uint64_t number) {
  return "key" + std::to_string(number);
}

std::uint32_t gdpr_ttl_class(std::uint64_t number) {
  return static_cast<std::uint32_t>(number % kGdprTtlSeconds.size());
}

std::string gdpr_namespace(std::uint32_t ttl_class) {
  return "ttl" + std::to_string(kGdprTtlSeconds[ttl_class]);
}

std::uint32_t gdpr_purpose_of(std::uint64_t number) {
  return static_cast<std::uint32_t>(number % kGdprPurposes);
}

std::string gdpr_purpose(std::uint32_t value) {
  return "pur" + std::to_string(value);
}

const char* gdpr_label(GdprField field) {
  return row_of(field).label;
}

std::string gdpr_text(GdprField field, std::uint32_t value) {
  return row_of(field).text + std::to_string(value);
}

std::string gdpr_data(std::uint64_t number, std::uint16_t version) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  std::string data;
  std::uint64_t state = number << 16 | version;
  while (data.size() < kGdprDataBytes) {
    state = ycsb_hash(state);
    std::uint64_t bits = state * 0x9e3779b97f4a7c15;
    for (int i = 0; i < 10 && data.size() < kGdprDataBytes; ++i, bits >>= 6)
      data += kLetters[bits & 63];
  }
  return data;
}

std::uint64_t gdpr_user_bytes(std::uint64_t number, const GdprRecord& record) {
  constexpr std::size_t kNameBytes = sizeof("PUR=") - 1;
  std::uint64_t bytes = gdpr_key(number).size() + kGdprDataBytes;
  bytes += kNameBytes + gdpr_purpose(gdpr_purpose_of(number)).size();
  bytes += kNameBytes + std::to_string(kGdprTtlSeconds[gdpr_ttl_class(number)]).size();
  for (std::size_t i = 0; i < kGdprFields; ++i)
    bytes += kNameBytes + gdpr_text(static_cast<GdprField>(i), record.values[i]).size();
  return bytes;
}

std::string gdpr_description(std::uint64_t number, const GdprRecord& record) {
  const auto text = [&record](GdprField field) {
    return quoted(gdpr_text(field, record.values[static_cast<std::size_t>(field)]));
  };
  std::string json = "{\"namespace\":" + quoted(gdpr_namespace(gdpr_ttl_class(number))) +
                     ",\"device\":" + quoted(gdpr_key(number)) +
                     ",\"owner\":" + text(GdprField::User) + ",\"purposes\":[" +
                     quoted(gdpr_purpose(gdpr_purpose_of(number))) + "],\"objections\":[" +
                     text(GdprField::Objection) + "],\"labels\":{";
  for (std::size_t i = static_cast<std::size_t>(GdprField::Decision); i < kGdprFields; ++i) {
    const auto field = static_cast<GdprField>(i);
    if (field != GdprField::Decision) json += ',';
    json += quoted(gdpr_label(field)) + ':' + text(field);
  }
  return json + "}}";
}

std::string gdpr_reading(std::uint64_t number, const GdprRecord& record) {
  return "{\"namespace\":" + quoted(gdpr_namespace(gdpr_ttl_class(number))) +
         ",\"device\":" + quoted(gdpr_key(number)) + ",\"sensor\":" + quoted(kGdprSensor) +
         ",\"time\":" + std::to_string(record.time_ns) +
         ",\"value\":" + quoted(gdpr_data(number, record.version)) + "}";
}

std::span<const GdprRole> gdpr_roles() {
  static constexpr std::array kRoles = {GdprRole{"controller", GdprDraw::Uniform, kController},
                                        GdprRole{"customer", GdprDraw::Zipfian, kCustomer},
                                        GdprRole{"processor", GdprDraw::Uniform, kProcessor},
                                        GdprRole{"regulator", GdprDraw::Zipfian, kRegulator}};
  return kRoles;
}

std::vector<GdprOperation> draw_operations(const GdprRole& role, std::uint64_t count,
                                           std::uint64_t records, std::uint64_t seed) {
  SeededRandom random(seed);
  ScrambledZipfian zipfian(records);
  std::vector<GdprOperation> operations;
  unsigned percent = 0;
  for (const GdprRole::Part& part : role.parts) {
    percent += part.percent;
    while (operations.size() < count * percent / 100) {
      GdprOperation operation;
      operation.act = part.act;
      operation.field = static_cast<GdprField>(random.below(kGdprFields));
      operation.number = static_cast<std::uint32_t>(
          role.draw == GdprDraw::Zipfian ? zipfian.next(random) : random.below(records));
      operation.other = static_cast<std::uint32_t>(
          part.act == GdprAct::ReadLog ? 1 + random.below(kLogLinesMax) : random.below(records));
      operations.push_back(operation);
    }
  }
  for (std::size_t i = operations.size(); i > 1; --i)
    std::swap(operations[i - 1], operations[random.below(i)]);
  return operations;
}

}  // namespace edgecase::cli::bench
