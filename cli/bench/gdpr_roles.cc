#include "bench/gdpr_roles.h"

#include <array>
#include <memory>
#include <utility>

#include "bench/ycsb_numbers.h"
#include "edgecase/random.h"

namespace edgecase::cli::bench {
namespace {

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
