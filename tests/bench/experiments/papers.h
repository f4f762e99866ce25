// `edgecase bench papers`: every experiment of the papers that EdgeCase is built from, one after
// the other, and a report of them all in the directory options.out: papers.md, papers.html (with
// its drawings inside, no script) and papers.json (a line a run, as `--json` prints it).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// One experiment as the report shows it.
struct PaperSection {
  std::string paper, workload, purpose;
  Report report;
  std::string failure;  // empty: it ran
};

// What stands above the sections: name and value.
using PaperFacts = std::vector<std::pair<std::string, std::string>>;

std::string papers_markdown(const PaperFacts& facts, const std::vector<PaperSection>& sections);
std::string papers_html(const PaperFacts& facts, const std::vector<PaperSection>& sections);

}  // namespace edgecase::cli::bench
