#include "import/csv_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "support/test_seed.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

constexpr std::string_view kHeader = "namespace,device,sensor,time,value,type\n";

struct Decoded {
  std::vector<std::string> lines;  // as ndjson
  std::vector<wire::LineError> errors;
  std::uint64_t no_values = 0;
};

Decoded decode(std::string_view body, const CsvForm& form = {}) {
  auto decoder = CsvDecoder::create(body, "plant", 20, form);
  REQUIRE_MESSAGE(decoder.ok(), decoder.status().message());
  Decoded decoded;
  wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
  wire::ReadingBatch batch;
  while (decoder->next(batch)) {
    CHECK(batch.readings.size() <= CsvDecoder::kReadingsPerSlice);
    for (const wire::Reading& reading : batch.readings) {
      formatter.reading(reading, decoded.lines.emplace_back());
    }
    batch.clear();
  }
  decoded.errors = decoder->errors();
  decoded.no_values = decoder->no_values();
  CHECK(decoder->bad_lines() >= decoded.errors.size());
  return decoded;
}

std::string header_error(std::string_view body) {
  const auto decoder = CsvDecoder::create(body, "plant", 20);
  REQUIRE(!decoder.ok());
  return decoder.status().message();
}

TEST_CASE("csv: a zone says whose clock times without an offset are") {
  const std::string body = std::string(kHeader) +
                           "a,d,s,2026-11-20T14:00,1,\na,d,s,2026-11-20 14:00:00.5,2,\n"
                           "a,d,s,2026-11-20T14:00:00Z,3,\na,d,s,1000,4,\n";
  CHECK(decode(body).errors.size() == 2);
  CsvForm form;
  const auto zone = wire::TimeZone::find("Europe/Berlin");
  REQUIRE(zone.ok());
  form.zone = std::make_shared<const wire::TimeZone>(*zone);
  const Decoded decoded = decode(body, form);
  CHECK(decoded.errors.empty());
  REQUIRE(decoded.lines.size() == 4);
  CHECK(decoded.lines[0].find("2026-11-20T13:00:00.000000000Z") != std::string::npos);
  CHECK(decoded.lines[1].find("2026-11-20T13:00:00.500000000Z") != std::string::npos);
  CHECK(decoded.lines[2].find("2026-11-20T14:00:00.000000000Z") != std::string::npos);
  CHECK(decoded.lines[3].find("1970-01-01T00:00:00.000001000Z") != std::string::npos);
}

TEST_CASE("csv gives back what the formatter wrote") {
  wire::ReadingBatch batch;
  const auto add = [&batch](wire::Value value) {
    batch.readings.push_back({"a b", "press,1", "t\"x\"", 1'700'000'000'123'456'789, value});
  };
  add(wire::Value::of_float64(-0.0));
  add(wire::Value::of_float64(1e300));
  add(wire::Value::of_int64(INT64_MIN));
  add(wire::Value::of_bool(true));
  for (const char* text :
       {"", " ", "21.5", "true", "line\nbreak", "a,b", "\"", "\"\"", "\r\n", "ü"}) {
    add(wire::Value::of_text(text));
  }
  add(wire::Value::of_bytes(std::string_view("\0\xff", 2), "application/octet-stream"));
  add(wire::Value::of_bytes("jpeg", "image/jpeg;q=\"1\""));

  std::string csv;
  wire::ReadingFormatter writer(wire::ReadingFormat::Csv);
  writer.begin(csv);
  std::vector<std::string> expected;
  for (const wire::Reading& reading : batch.readings) {
    writer.reading(reading, csv);
    wire::ReadingFormatter(wire::ReadingFormat::Ndjson).reading(reading, expected.emplace_back());
  }
  const Decoded decoded = decode(csv);
  CHECK(decoded.errors.empty());
  CHECK(decoded.lines == expected);
}

TEST_CASE("csv columns come in any order, and namespace and type may be missing") {
  const Decoded decoded = decode(
      "\xEF\xBB\xBFvalue,time,sensor,device\r\n21.5,0,t,d\r\n\r\non,1970-01-01T00:00:01Z,t,d");
  REQUIRE(decoded.lines.size() == 2);
  CHECK(decoded.lines[0] ==
        "{\"namespace\":\"plant\",\"device\":\"d\",\"sensor\":\"t\","
        "\"time\":\"1970-01-01T00:00:00.000000000Z\",\"value\":21.5}\n");
  CHECK(decoded.lines[1].find("\"value\":\"on\"") != std::string::npos);
  CHECK(decoded.errors.empty());
}

TEST_CASE("a header that is none says what is missing") {
  CHECK(header_error("").find("empty") != std::string::npos);
  CHECK(header_error("device,sensor,time\n").find("no column value") != std::string::npos);
  CHECK(header_error("device,sensor,time,value,vaule\n").find("\"vaule\"") != std::string::npos);
  CHECK(header_error("device,device,sensor,time,value\n").find("twice") != std::string::npos);
  CHECK(header_error("\"device,sensor,time,value\n").find("quote") != std::string::npos);
}

TEST_CASE("a bad record costs itself alone, and is named by its first line") {
  struct Case {
    const char* record;
    const char* says;
  };
  for (const Case& each : {
           Case{",d,s,0,1", "fields"},
           Case{",d,s,0,1,float,more", "fields"},
           Case{",,s,0,1,float", "device"},
           Case{",d,a/b,0,1,float", "sensor"},
           Case{",d,s,yesterday,1,float", "time"},
           Case{",d,s,,1,float", "time"},
           Case{",d,s,9223372036854775808,1,float", "time"},
           Case{",d,s,0,one,float", "one"},
           Case{",d,s,0,1e400,float", "1e400"},
           Case{",d,s,0,1e400,", "1e400"},
           Case{",d,s,0,\"1,5\",", "--decimal"},
           Case{",d,s,0,\"1,5\",float", "--decimal"},
           Case{",d,s,0,\"1,234.5\",", "decimal mark"},
           Case{",d,s,0,1.23457E+12,int", "1.23457E+12"},
           Case{",d,s,20/11/2026 14:00,1,float", "column time: time \"20/11/2026"},
           Case{",d,s,20.11.2026 14:00,1,float", "spreadsheet"},
           Case{",d,s,45981.58333,1,float", "spreadsheet"},
           Case{",d,s,1.76365E+18,1,float", "spreadsheet"},
           Case{",d,s,0,1.5,int", "1.5"},
           Case{",d,s,0,yes,bool", "yes"},
           Case{",d,s,0,1,number", "number"},
           Case{",d,s,0,***,bytes", ""},
           Case{",d,s,0,\"a\"b,text", "behind"},
           Case{",d,s,0,\"a,text", "never closed"},
       }) {
    CAPTURE(each.record);
    const Decoded decoded = decode(std::string(kHeader) + ",d,s,0,\"two\nlines\",text\n" +
                                   each.record + "\n,d,s,1,2,float\n");
    CHECK(decoded.lines.size() == 2);
    REQUIRE(decoded.errors.size() == 1);
    CHECK(decoded.errors.front().line == 4);
    CHECK(decoded.errors.front().message.find(each.says) != std::string::npos);
  }
}

TEST_CASE("cells without a value are no readings, and never texts") {
  const Decoded decoded = decode(
      "device,sensor,time,value,type\n"
      "d,s,0,,\nd,s,0,nan,\nd,s,0,NULL,\nd,s,0,-inf,float\nd,s,0,,int\nd,s,0,null,bool\n"
      "d,s,0,,text\nd,s,1,NULL,text\nd,s,2,1,\n");
  CHECK(decoded.errors.empty());
  CHECK(decoded.no_values == 6);
  REQUIRE(decoded.lines.size() == 3);
  CHECK(decoded.lines[0].find("\"value\":\"\"") != std::string::npos);
  CHECK(decoded.lines[1].find("\"value\":\"NULL\"") != std::string::npos);
}

TEST_CASE("csv that a spreadsheet has saved") {
  // A byte order mark, CRLF, bools and ints in its spelling, cells and rows that are empty.
  Decoded decoded = decode(
      "\xEF\xBB\xBFnamespace,device,sensor,time,value,type,,\r\n"
      "n,d,a,0,TRUE,bool,,\r\nn,d,b,0,True,,,\r\nn,d,c,0,5.0,int,,\r\nn,d,e,0,21.50,float,,\r\n"
      ",,,,,,,\r\n");
  CHECK(decoded.errors.empty());
  REQUIRE(decoded.lines.size() == 4);
  CHECK(decoded.lines[0].find("\"value\":true") != std::string::npos);
  CHECK(decoded.lines[1].find("\"value\":true") != std::string::npos);
  CHECK(decoded.lines[2].find("\"value\":5,\"type\":\"int\"") != std::string::npos);
  CHECK(decoded.lines[3].find("\"value\":21.5}") != std::string::npos);

  const std::string german =
      "namespace;device;sensor;time;value;type\r\nn;d;a;2026-11-20T14:00:00.5Z;21,5;float\r\n"
      "n;d;b;0;-3,0;int\r\nn;d;c;0;0,5;\r\nn;d;e;0;\"a;b\";text\r\n";
  CHECK(header_error(german).find("--delimiter ';'") != std::string::npos);
  CHECK(header_error("device\tsensor\n").find("--delimiter tab") != std::string::npos);
  CHECK(header_error("\xff\xfe"
                     "d")
            .find("UTF-8") != std::string::npos);
  for (const Decoded& each :
       {decode(german, {';', ','}), decode("sep=;\r\n" + german, {',', ','})}) {
    CHECK(each.errors.empty());
    REQUIRE(each.lines.size() == 4);
    CHECK(each.lines[0].find("\"value\":21.5}") != std::string::npos);
    CHECK(each.lines[1].find("\"value\":-3,\"type\":\"int\"") != std::string::npos);
    CHECK(each.lines[2].find("\"value\":0.5}") != std::string::npos);
    CHECK(each.lines[3].find("\"value\":\"a;b\"") != std::string::npos);
  }
  // With the separator alone a number is refused, not taken for a text.
  decoded = decode(german, {';', '.'});
  CHECK(decoded.lines.size() == 1);
  REQUIRE(decoded.errors.size() == 3);
  CHECK(decoded.errors[2].line == 4);
  CHECK(decoded.errors[2].message.find("--decimal ','") != std::string::npos);
}

TEST_CASE("no bytes make the decoder stumble") {
  const std::uint64_t seed = test::test_seed(20261121);
  MESSAGE("EDGECASE_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr std::string_view kAlphabet = "\",\n\r;d0s1.ft\xff ";
  for (int round = 0; round < 2000; ++round) {
    std::string body(kHeader);
    for (std::uint64_t i = random() % 60; i > 0; --i) {
      body += kAlphabet[random() % kAlphabet.size()];
    }
    CAPTURE(body);
    const auto ends = static_cast<std::size_t>(std::count(body.begin(), body.end(), '\n'));
    const Decoded decoded = decode(body);
    CHECK(decoded.lines.size() + decoded.errors.size() <= ends + 1);
  }
}

// As a file that export did not write.
CsvForm foreign(std::vector<std::string> times, std::string device = "roof") {
  CsvForm form;
  form.time_columns = std::move(times);
  form.device = std::move(device);
  const auto zone = wire::TimeZone::find("UTC");
  REQUIRE(zone.ok());
  form.zone = std::make_shared<const wire::TimeZone>(*zone);
  return form;
}

std::string line_of(const char* sensor, const char* time, const char* value) {
  return std::string(R"({"namespace":"plant","device":"roof","sensor":")") + sensor +
         R"(","time":"2013-03-01T)" + time + R"(","value":)" + value + "}\n";
}

TEST_CASE("csv: a wide file has a sensor for each column, and a cell costs itself alone") {
  const std::string body =
      "No,year,month,day,hour,PM2.5, TEMP ,\"wd, mean\",\n"
      "1,2013,3,1,0,4,-0.7,NNW,\n"
      "2,2013,3,1,1,NA,1e400,\"say \"\"N\"\"\",\n"
      "3,2013,13,1,2,1,2,N,\n"
      "4,2013,3,1,3,1,2,N\n"
      "\n"
      "5,2013,3,1,4,,nan,N,\n"
      "6,2013,3,1,5,None,#N/A,\"NA\",\n";
  CsvForm form = foreign({"year", "month", "day", "hour"});
  form.value_columns = {"PM2.5", "TEMP", "wd, mean"};
  auto format = TimeFormat::parse("%Y %m %d %H");
  REQUIRE(format.ok());
  form.time_format = *format;
  const Decoded decoded = decode(body, form);
  const std::vector<std::string> wanted = {
      line_of("PM2.5", "00:00:00.000000000Z", "4"),
      line_of("TEMP", "00:00:00.000000000Z", "-0.7"),
      line_of("wd, mean", "00:00:00.000000000Z", R"("NNW")"),
      line_of("wd, mean", "01:00:00.000000000Z", R"("say \"N\"")"),
      line_of("wd, mean", "04:00:00.000000000Z", R"("N")"),
      line_of("wd, mean", "05:00:00.000000000Z", R"("NA")"),  // quoted, it is a text
  };
  CHECK(decoded.lines == wanted);
  CHECK(decoded.no_values == 5);
  REQUIRE(decoded.errors.size() == 3);
  CHECK(decoded.errors[0].line == 3);
  CHECK(decoded.errors[0].message.find("column TEMP: ") == 0);
  CHECK(decoded.errors[1].line == 4);
  CHECK(decoded.errors[2].message.find("8 fields where the first line names 9") == 0);
}

TEST_CASE("csv: all other columns are values where none is named") {
  CsvForm form = foreign({"t"});
  const Decoded all = decode("t,a,b\n2013-03-01,1,2\n", form);
  CHECK(all.lines.size() == 2);
  form.value_columns = {"*"};
  CHECK(decode("t,a,b\n2013-03-01,1,2\n", form).lines == all.lines);
  form.device.clear();
  form.device_column = "a";
  CHECK(decode("t,a,b\n2013-03-01,x,2\n", form).lines.size() == 1);
}

TEST_CASE("csv: names of rows, which R writes without a column, are passed over") {
  const Decoded decoded = decode("\"t\",\"TEMP\"\n\"1\",\"2013-03-01\",1.5\n", foreign({"t"}));
  CHECK(decoded.lines == std::vector<std::string>{line_of("TEMP", "00:00:00.000000000Z", "1.5")});
}

TEST_CASE("csv: a long file has columns for sensor and value, by any name") {
  CsvForm form = foreign({"when"}, "");
  form.device_column = "station";
  form.sensor_column = "what";
  form.value_columns = {"reading"};
  const std::string body = "when,station,what,reading\n2013-03-01 00:00,roof,TEMP,1.5\n";
  CHECK(decode(body, form).lines ==
        std::vector<std::string>{line_of("TEMP", "00:00:00.000000000Z", "1.5")});
  // Names of export need not be said again.
  CsvForm some = foreign({"when"});
  CHECK(decode("when,sensor,value\n2013-03-01,TEMP,1.5\n", some).lines ==
        std::vector<std::string>{line_of("TEMP", "00:00:00.000000000Z", "1.5")});
}

TEST_CASE("csv: columns that are not there, come twice, or are too many are told by name") {
  const auto error = [](const CsvForm& form, std::string_view body) {
    const auto decoder = CsvDecoder::create(body, "plant", 20, form);
    REQUIRE(!decoder.ok());
    return decoder.status().message();
  };
  CHECK(error(foreign({"when"}), "t,a\n") ==
        "the first line names no column \"when\"; it has t, a");
  CHECK(error(foreign({"t"}, ""), "t,a\n").find("--device NAME") != std::string::npos);
  CHECK(error(foreign({"t"}), "t\n") == "the first line names no column of values");
  CHECK(error(foreign({"t"}), "t,a, a\n") == "column \"a\" comes twice");
  CsvForm form = foreign({"t"});
  form.value_columns = {"a", "b"};
  form.sensor_column = "a";
  CHECK(error(form, "t,a,b\n").find("one for the value alone") != std::string::npos);
  std::string many = "t";
  for (std::size_t i = 0; i <= CsvDecoder::kValueColumnsMax; ++i) many += "," + std::to_string(i);
  CHECK(error(foreign({"t"}), many).find("at most") != std::string::npos);
}

}  // namespace
TEST_CASE("csv decoder: what export wrote with --layout wide comes back, each cell of its type") {
  Decoded decoded = decode(
      "time,\"a, \"\"b\"\"/c\",d/e,other/d/f\n"
      "2026-01-01T00:00:00Z,1.0,,\"1\"\n"
      "2026-01-01T00:00:01Z,-1,\"\",true\n"
      "2026-01-01T00:00:02Z,base64:AP8=,base64;image%2Fpng:AA==,1e3\n");
  const std::string begin =
      R"({"namespace":"plant","device":"a, \"b\"","sensor":"c","time":"2026-01-01T00:00:0)";
  const std::string begin_e =
      R"({"namespace":"plant","device":"d","sensor":"e","time":"2026-01-01T00:00:0)";
  const std::string begin_f =
      R"({"namespace":"other","device":"d","sensor":"f","time":"2026-01-01T00:00:0)";
  CHECK(decoded.errors.empty());
  for (std::string& line : decoded.lines) line.pop_back();
  CHECK(decoded.lines ==
        std::vector<std::string>{
            begin + R"(0.000000000Z","value":1})", begin_f + R"(0.000000000Z","value":"1"})",
            begin + R"(1.000000000Z","value":-1,"type":"int"})",
            begin_e + R"(1.000000000Z","value":""})", begin_f + R"(1.000000000Z","value":true})",
            begin + R"(2.000000000Z","value":"AP8=","type":"bytes",)"
                    R"("content_type":"application/octet-stream"})",
            begin_e + R"(2.000000000Z","value":"AA==","type":"bytes","content_type":"image/png"})",
            begin_f + R"(2.000000000Z","value":1000})"});
}

TEST_CASE("csv decoder: a bad cell of a wide file costs itself alone, a bad name the file") {
  const Decoded decoded =
      decode("time,d/a,d/b\n2026-01-01T00:00:00Z,99999999999999999999,2\nx,1,1\n");
  CHECK(decoded.lines.size() == 1);
  CHECK(decoded.errors.size() == 2);
  for (const char* header : {"time,/a\n", "time,d/\n", "time,a/b/c/d\n", "time,d/a,e\n"}) {
    CAPTURE(header);
    CHECK_FALSE(CsvDecoder::create(header, "plant", 20).ok());
  }
}

}  // namespace edgecase::cli
