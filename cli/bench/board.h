// board: what a board can keep up with, for somebody who has to choose one. Which machine it is and
// how fast its drives are; then readings alone, and the CaseDB paper's mix of tiny readings, images
// and video, everything durable before the next, on the engine in this process; then all of it read
// back.
//
// A round of the mix: 1,000 readings of 50 bytes, one of each of 1,000 sensors, in batches of 100;
// 8 images of 256 KiB and a piece of video of 4 MiB, each durable by itself. By count 99.1 %, 0.8 %
// and 0.1 %; by bytes 1 %, 33 % and 66 %. Values are random bytes: real readings take less room.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are readings and blobs of the mix. options.seconds: how long in all (20), a quarter of
// it readings alone; options.num: rounds of the mix at most, and as many thousands of readings
// alone. The mix ends at 2 GB too. Errors also: a directory with a store, two names of one
// directory, no room, another engine. Cancelled on Ctrl-C.
Result<Report> run_board(const BenchOptions& options);

}  // namespace edgecase::cli::bench
