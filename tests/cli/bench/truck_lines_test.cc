#include "bench/loads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "wire/line_protocol.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

TruckLineOptions truck_options(std::uint64_t lines) {
  TruckLineOptions options;
  options.lines = lines;
  options.trucks = 20;
  options.seed = 3;
  return options;
}

// What is told of a stream, as shares of its lines.
struct TruckShares {
  double diagnostics = 0, late = 0, without_field = 0, without_tag = 0;
};

TruckShares shares_of(const TruckLines& made) {
  TruckShares shares;
  double lines = 0;
  std::string latest;  // place in the order in which lines are drawn
  std::set<std::string> seen;
  for (const std::string& body : made.bodies) {
    std::istringstream text(body);
    for (std::string line; std::getline(text, line); ++lines) {
      const std::string head = line.substr(0, line.find(' '));
      const std::string time = line.substr(line.rfind(' ') + 1);
      const bool is_diagnostics = head.starts_with("diagnostics");
      const auto tags = std::count(head.begin(), head.end(), '=');
      const auto fields = std::count(line.begin(), line.end(), '=') - tags;
      const bool lacks_capacity = line.find("load_capacity=") == std::string::npos ||
                                  line.find("fuel_capacity=") == std::string::npos ||
                                  line.find("nominal_fuel_consumption=") == std::string::npos;
      shares.diagnostics += is_diagnostics;
      // As they are drawn: by time, then readings before diagnostics, then by truck.
      const std::size_t at = head.find("truck_");
      const std::string truck = at == std::string::npos ? "" : head.substr(at + 6, 3);
      const std::string place = time + (is_diagnostics ? "d" : "a") +
                                (truck.find(',') == 1 ? "0" + truck : truck).substr(0, 2);
      shares.late += at != std::string::npos && place < latest;
      shares.without_tag += tags < 5 || lacks_capacity;
      shares.without_field += fields + lacks_capacity < (is_diagnostics ? 6 : 10);
      if (at != std::string::npos) latest = std::max(latest, place);
      if (tags == 5) CHECK(seen.insert(head + time).second);  // none comes twice
    }
  }
  for (double* const share :
       {&shares.diagnostics, &shares.late, &shares.without_field, &shares.without_tag})
    *share /= lines;
  return shares;
}

}  // namespace

TEST_CASE("truck lines: some are missing, some late, some lack a value") {
  const TruckLines made = make_truck_lines(truck_options(40'500));
  REQUIRE(made.bodies.size() == 41);
  const TruckShares shares = shares_of(made);
  CHECK(shares.diagnostics > 0.48);
  CHECK(shares.diagnostics < 0.52);
  // A tenth of lines and 1 % of batches; those that wait at the end are few.
  const double missing = 1 - 40'500.0 / static_cast<double>(made.drawn);
  CHECK(missing > 0.09);
  CHECK(missing < 0.12);
  // Three in ten lines wait, and one in twenty batches; some come back before the next line.
  CHECK(shares.late > 0.1);
  CHECK(shares.late < 0.35);
  CHECK(shares.without_field > 0.05);
  CHECK(shares.without_field < 0.11);
  CHECK(shares.without_tag > 0.004);
  CHECK(shares.without_tag < 0.011);
}

TEST_CASE("truck lines: values stay in their bounds, and there are as many as is said") {
  const TruckLines made = make_truck_lines(truck_options(20'000));
  const std::map<std::string, double> most = {{"latitude", 90},
                                              {"longitude", 180},
                                              {"elevation", 5'000},
                                              {"velocity", 100},
                                              {"heading", 360},
                                              {"grade", 100},
                                              {"fuel_consumption", 50},
                                              {"fuel_state", 1},
                                              {"current_load", 5'000},
                                              {"status", 5},
                                              {"load_capacity", 5'000},
                                              {"fuel_capacity", 300},
                                              {"nominal_fuel_consumption", 19}};
  std::uint64_t fields = 0;
  std::map<std::string, std::set<double>> values;
  for (const std::string& body : made.bodies) {
    wire::LineProtocolDecoder decoder(body, {});
    wire::ReadingBatch batch;
    while (decoder.next(batch)) {
      fields += batch.readings.size();
      for (const wire::Reading& reading : batch.readings) {
        const std::string_view names = reading.sensor.substr(0, reading.sensor.find('{'));
        const std::string name(names.substr(names.rfind('.') + 1));
        const bool is_status = name == "status";
        REQUIRE((reading.value.type == wire::ValueType::Int64) == is_status);
        const double value =
            is_status ? static_cast<double>(reading.value.int64) : reading.value.float64;
        REQUIRE(most.contains(name));
        REQUIRE(value >= (name == "latitude" || name == "longitude" ? -most.at(name) : 0));
        REQUIRE(value <= most.at(name));
        values[name].insert(value);
      }
      batch.clear_readings();
    }
    CHECK(decoder.bad_lines() == 0);
  }
  CHECK(fields == made.fields);
  CHECK(values.size() == most.size());
  CHECK(values["latitude"].size() > 5'000);  // five digits
  CHECK(values["velocity"].size() <= 101);   // none
  CHECK(values["fuel_state"].size() > 2);
  CHECK(values["status"].size() == 6);
  CHECK(values["load_capacity"] == std::set<double>{1'500, 2'000, 5'000});
}

TEST_CASE("truck lines: a seed gives the same bytes, another seed others") {
  TruckLineOptions options = truck_options(1'500);
  const auto first = make_truck_lines(options).bodies;
  CHECK(make_truck_lines(options).bodies == first);
  options.seed = 4;
  CHECK(make_truck_lines(options).bodies != first);
}
