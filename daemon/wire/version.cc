#include "wire/version.h"

namespace edgecase::wire {

std::string_view version() {
  return EDGECASE_VERSION;
}

}  // namespace edgecase::wire
