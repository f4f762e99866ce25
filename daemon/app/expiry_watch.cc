#include "app/expiry_watch.h"

#include <string>
#include <utility>

namespace edgecase::app {

void ExpiryWatch::look(const ExpiryStats& stats) {
  const ExpiryWait wait = stats.rules > 0 ? stats.wait : ExpiryWait::None;  // nothing expires
  if (std::exchange(wait_, wait) != wait) {
    switch (wait) {
      case ExpiryWait::None: logger_.notice("expiry", "goes by the clock again"); break;
      case ExpiryWait::Untrusted:
        logger_.warning("expiry", "nothing expires: the clock is not trusted");
        break;
      case ExpiryWait::Jump:
        logger_.warning("expiry",
                        "the clock is over an hour ahead of the time that has passed: it is "
                        "followed when a time server confirms it, or after an hour");
        break;
    }
  }
  const std::uint64_t before_bytes = std::exchange(held_bytes_, stats.held_bytes);
  if ((before_bytes > 0) == (held_bytes_ > 0)) return;
  if (held_bytes_ > 0) {
    logger_.error("expiry", "the clock leapt, and " + std::to_string(held_bytes_) +
                                " bytes have expired by it at once: they are hidden and kept, for "
                                "a day or until a time server confirms the clock; set it right if "
                                "it is wrong");
    note("expiry.held", held_bytes_);
  } else {
    logger_.notice("expiry", "nothing is kept any more of what a leap of the clock let expire");
    note("expiry.released", before_bytes);
  }
}

void ExpiryWatch::note(const char* operation, std::uint64_t bytes) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.detail = std::to_string(bytes) + " bytes";
  if (const Status noted = audit_.append(std::move(record)).status(); !noted.ok())
    logger_.log_keyed(observe::LogLevel::Warning, "audit", operation, noted.message());
}

}  // namespace edgecase::app
