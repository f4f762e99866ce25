#include "bench/experiments/papers.h"

#include <doctest/doctest.h>

#include "bench/experiments/experiments.h"

using namespace edgecase::cli::bench;

namespace {

PaperSection section_with(const std::string& figure, double value) {
  PaperSection section{"CaseDB", "casedb-writes", "writes <at> every size", {}, {}};
  section.report.workload = "casedb-writes";
  section.report.more = {{figure, value}};
  return section;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("papers: a figure is in the table and, where it has a unit, in a drawing") {
  const PaperFacts facts = {{"kernel", "Linux <6> & more"}};
  const std::vector<PaperSection> sections = {section_with("random_50_mb_per_second", 12.5),
                                              section_with("published_mb_per_second", 40),
                                              section_with("mixes", 140)};
  const std::string html = papers_html(facts, sections);
  CHECK(has(html, "Linux &lt;6> &amp; more"));
  CHECK(has(html, "writes &lt;at> every size"));
  CHECK(has(html, ">random 50 mb per second</text><rect class=\"ours\""));
  CHECK(has(html, ">published mb per second</text><rect class=\"theirs\""));
  CHECK(has(html, "<tr><td>mixes</td><td class=\"n\">140</td></tr>"));
  CHECK(!has(html, ">mixes</text>"));
  const std::string words = papers_markdown(facts, sections);
  CHECK(has(words, "- kernel: Linux <6> & more\n"));
  CHECK(has(words, "| random 50 mb per second | 12.5 |\n"));
  CHECK(words.find("## CaseDB\n") == words.rfind("\n## CaseDB\n") + 1);  // once
}

TEST_CASE("papers: what did not run says why, and nothing else of it is shown") {
  PaperSection failed = section_with("random_50_mb_per_second", 12.5);
  failed.failure = "no drive";
  CHECK(has(papers_html({}, {failed}), "It did not run: no drive"));
  CHECK(!has(papers_html({}, {failed}), "random 50"));
  CHECK(has(papers_markdown({}, {failed}), "It did not run: no drive"));
  CHECK(!has(papers_markdown({}, {failed}), "random 50"));
}

TEST_CASE("papers: without a directory, or with one that holds something, nothing runs") {
  BenchOptions options;
  options.workload = "papers";
  CHECK(run_papers(options).status().code() == edgecase::StatusCode::InvalidArgument);
  options.out = "/proc/self";
  CHECK(run_papers(options).status().code() == edgecase::StatusCode::InvalidArgument);
  options.out = "/proc/none/report";
  CHECK(run_papers(options).status().code() == edgecase::StatusCode::IoError);
}
