#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "import/importer.h"
#include "mended_line.h"
#include "support/temp_directory.h"

namespace edgecase::cli {
namespace {

TEST_CASE("a CSV of others says by its first two lines which options it wants") {
  const test::TempDirectory directory;
  struct Case {
    const char* name;
    const char* text;
    const char* options;
  };
  for (const Case& c : {
           Case{"a.csv", "timestamp,value\n2015-09-08T11:39:00Z,73\n",
                "--time-column timestamp --device a"},
           Case{"a.csv", "\xef\xbb\xbftime,v\r\n2015-09-08 11:39:00,73\r\n",
                "--time-column time --device a --local"},
           Case{"r.csv", "\"date\",\"T\"\n\"1\",\"2015-02-04 17:51:00\",23.1\n",
                "--time-column date --device r --local"},
           Case{"de.csv", "Zeit; Host ;T\n01.02.2026 12:30;h;21,5\n",
                "--delimiter ';' --decimal , --time-column Zeit --device-column Host --time-format "
                "'%d.%m.%Y %H:%M' --local"},
           Case{"us.csv", "Date,Time,T\n11/30/2026,2:30 PM,3\n",
                "--time-column Date,Time --device us --time-format '%m/%d/%Y %I:%M %p' --local"},
           Case{"air.csv", "No,year,month,day,hour,T\n1,2013,3,1,0,9\n",
                "--time-column year,month,day,hour --device air --time-format '%Y %m %d %H' "
                "--local"},
           Case{"unix.csv", "ts,v\n1764547200,3\n",
                "--time-column ts --device unix --time-format unix"},
           Case{"ms.csv", "last_update_time,v\n1764547200000,3\n",
                "--time-column last_update_time --device ms --time-format unix_ms"},
           Case{"t.tsv", "time\tv\n1764547200\t3\n",
                "--delimiter tab --time-column time --device t --time-format unix"},
           Case{"odd.csv", "time,v\nsometime,3\n", "--time-column time --device odd"},
           // No column of times; a line that does not fit the first; what export wrote; nothing.
           Case{"a.csv", "a,b\n1,2\n", ""},
           Case{"a.csv", "time,v\n1,2,3,4\n", ""},
           Case{"a.csv", "device,sensor,time,value\nd,s,2015-09-08T11:39:00Z,73\n", ""},
           Case{"a.csv", "", ""},
           Case{"a.tsv", "a\tb\n1\t2\n", "--delimiter tab"},
       }) {
    CAPTURE(c.text);
    const std::string path = directory.path() + "/" + c.name;
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    REQUIRE(file != nullptr);
    std::fputs(c.text, file);
    std::fclose(file);
    std::string options;
    for (const std::string& word : options_meant(path))
      options += (options.empty() ? "" : " ") + for_shell(word);
    CHECK(options == c.options);
  }
  CHECK(options_meant(directory.path() + "/none.csv").empty());
  CHECK(options_meant(directory.path()).empty());
  CHECK(options_meant("-").empty());
}

}  // namespace
}  // namespace edgecase::cli
