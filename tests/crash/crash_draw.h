// Draws what steps of a plan write, from their detail.
#pragma once

#include "crash/crash_state.h"
#include "crash/crash_store.h"
#include "edgecase/machine.h"

namespace edgecase::test {

// Puts, deletes and range deletes in engine places that are there; without them none. Each put has
// the next number.
Changes draw_changes(SeededRandom& detail, const PlaceIds& ids, ValueNumber& written);
// Puts, and seldom a delete, in the place with times.
Changes draw_timed_changes(SeededRandom& detail, ValueNumber& written);
// Readings of one site.
Changes draw_readings(SeededRandom& detail, ValueNumber& written);

}  // namespace edgecase::test
