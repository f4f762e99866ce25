// Facts of a board: its model, and how fast a drive takes and gives bytes.
#pragma once

#include <cstdint>
#include <string>

#include "edgecase/status.h"

namespace edgecase::cli::bench {

struct Machine {
  std::string model;  // of the device tree, else of DMI, else "unknown"
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
};

// `root` stands before /proc and /sys: empty but in tests.
Machine look_at_machine(const std::string& root);

struct DriveFigures {
  std::string place;  // "/dev/nvme0n1p1, ext4"
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  double sync_p50_us = 0;  // of 4 KiB written and made durable
  double sync_p99_us = 0;
  double write_mb_per_second = 0;  // 10^6 bytes, in order, durable in the end
  double read_mb_per_second = 0;   // back, not from the page cache where the kernel drops it
};

// Measures with `bytes` in a file in `directory`, which is gone afterwards, and `syncs` syncs.
// Errors: IoError, OutOfSpace, Cancelled.
Result<DriveFigures> measure_drive(const std::string& directory, std::uint64_t bytes, int syncs);

}  // namespace edgecase::cli::bench
