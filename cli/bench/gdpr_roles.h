// Who does what in GDPRbench, and how often: each role's operations, drawn beforehand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/gdpr_records.h"

namespace edgecase::cli::bench {

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
