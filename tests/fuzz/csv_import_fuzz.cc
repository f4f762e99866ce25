// Any bytes as a CSV file that `edgecase import` is given.
#include "fuzz/readings_demand.h"
#include "import/csv_decoder.h"

namespace edgecase::test {

void take_csv_import(std::string_view bytes) {
  constexpr std::size_t kErrorsMax = 5;
  auto decoder = cli::CsvDecoder::create(bytes, wire::kDefaultNamespace, kErrorsMax);
  if (!decoder.ok()) return;
  wire::ReadingBatch batch;
  while (decoder->next(batch)) {
    demand(batch.readings.size() <= cli::CsvDecoder::kReadingsPerSlice);
    for (const wire::Reading& reading : batch.readings) demand_storable(reading);
    demand_round_trip(batch);
    batch.clear();
  }
  demand(decoder->errors().size() <= kErrorsMax);
  demand(decoder->errors().size() <= decoder->bad_lines());
}

}  // namespace edgecase::test
