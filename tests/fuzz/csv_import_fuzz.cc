// Any bytes as a CSV file that `edgecase import` is given.
#include <iterator>

#include "fuzz/readings_demand.h"
#include "import/csv_decoder.h"

namespace edgecase::test {

void take_csv_import(std::string_view bytes) {
  constexpr std::size_t kErrorsMax = 5;
  constexpr const char* kTimeFormats[] = {"unix", "unix_ms", "%d.%m.%Y %H:%M:%S.%f%z",
                                          "%b %j %y %I %p %s", "%F %T %% %D"};
  cli::CsvForm form;
  // A first byte that no header has: the file is somebody else's, read in one of some ways.
  if (!bytes.empty() && bytes[0] > 0 && bytes[0] < '\t') {
    const auto choice = static_cast<std::size_t>(bytes[0]);
    bytes.remove_prefix(1);
    form.time_columns = {"t"};
    if (choice % 2 == 0) form.time_columns.push_back("u");
    if (choice % 3 == 0) form.device = "d";
    if (choice % 4 == 0) form.sensor_column = "s";
    auto format = cli::TimeFormat::parse(kTimeFormats[choice % std::size(kTimeFormats)]);
    demand(format.ok());
    form.time_format = std::move(format).value();
  }
  auto decoder = cli::CsvDecoder::create(bytes, wire::kDefaultNamespace, kErrorsMax, form);
  if (!decoder.ok()) return;
  wire::ReadingBatch batch;
  while (decoder->next(batch)) {
    demand(batch.readings.size() <
           cli::CsvDecoder::kReadingsPerSlice + cli::CsvDecoder::kValueColumnsMax);
    for (const wire::Reading& reading : batch.readings) demand_storable(reading);
    demand_round_trip(batch);
    batch.clear();
  }
  demand(decoder->errors().size() <= kErrorsMax);
  demand(decoder->errors().size() <= decoder->bad_lines());
}

}  // namespace edgecase::test
