// Any bytes as the body of POST /api/v1/readings, and as JSON whose long strings are kept from the
// library.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/readings_demand.h"
#include "wire/json_text.h"

namespace edgecase::test {
namespace {

constexpr std::size_t kLongEnoughBytes = 5;

// Writes down what the parser says.
class Recorder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Recorder(wire::JsonText& text) : text_(text) {}

  std::vector<std::string> events;
  bool bad_string = false;
  std::size_t error_at = 0;

  bool null() override { return note("null"); }
  bool boolean(bool value) override { return note(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return note(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return note(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& digits) override { return note(digits); }
  bool string(string_t& value) override { return note_string('s', value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return note("{"); }
  bool end_object() override { return note("}"); }
  bool start_array(std::size_t) override { return note("["); }
  bool end_array() override { return note("]"); }
  // Long where no colon follows: the document ends in an error there.
  bool key(string_t& name) override { return note_string('k', name); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_at = text_.in_document(position);
    // A string where none may be is read, but not handed over.
    const char* const at = text_.document().data() + error_at;
    const auto unseen = text_.next_string();
    if (unseen && unseen->data() + unseen->size() + 1 == at)
      bad_string = !wire::is_json_string(*unseen);
    return false;
  }

 private:
  bool note_string(char kind, std::string_view value) {
    wire::ReadingBatch batch;
    if (const auto escaped = text_.next_string()) {
      bad_string = !wire::is_json_string(*escaped);
      if (bad_string) return false;
      value = wire::keep_json_string(*escaped, batch);
    }
    return note(kind + std::string(value));
  }
  bool note(std::string event) {
    events.push_back(std::move(event));
    return true;
  }

  wire::JsonText& text_;
};

// With long strings kept from it, the library says of a document what it says of the whole.
void demand_same_strings(std::string_view bytes) {
  wire::JsonText whole(bytes), cut(bytes, kLongEnoughBytes);
  demand(whole.is_whole());
  Recorder of_whole(whole), of_cut(cut);
  const bool is_json = wire::parse_json(whole, of_whole);
  demand(wire::parse_json(cut, of_cut) == is_json);
  if (of_cut.bad_string) return;
  demand(of_cut.events == of_whole.events);
  demand(of_cut.error_at == of_whole.error_at);
}

}  // namespace

void take_json_readings(std::string_view bytes) {
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  const wire::JsonDecodeOptions options;
  const Status status = wire::decode_readings_json(bytes, options, batch, outcome);
  demand(status.ok() || (batch.readings.empty() && outcome.good == 0));
  demand(outcome.good == batch.readings.size());
  demand(outcome.errors.size() <= options.errors_max && outcome.errors.size() <= outcome.bad);
  for (const wire::Reading& reading : batch.readings) demand_storable(reading);
  demand_round_trip(batch);
  if (bytes.size() < wire::kLongJsonStringBytes) demand_same_strings(bytes);
}

}  // namespace edgecase::test
