// Tells what the processor has beyond the least of its architecture. Any thread.
#pragma once

namespace edgecase {

// Instructions for AES: without them sealing and opening is done in software, several times slower.
bool has_aes_instructions();

}  // namespace edgecase
