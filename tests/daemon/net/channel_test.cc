#include "net/channel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace edgecase;

namespace {

// Gives what a test says, and then nothing more.
class GivingChannel final : public net::Channel {
 public:
  explicit GivingChannel(std::string bytes) : Channel(net::Socket()), bytes_(std::move(bytes)) {}
  net::Transfer receive(char* buffer, std::size_t size) override {
    const std::size_t count = std::min(size, bytes_.size());
    if (count == 0) return {net::Outcome::Closed, 0};
    bytes_.copy(buffer, count);
    bytes_.erase(0, count);
    return {net::Outcome::Done, count};
  }

 private:
  std::string bytes_;
};

}  // namespace

TEST_CASE("received: nothing of it stays in the buffer") {
  GivingChannel channel("21.5,19.25");
  std::vector<char> buffer(8, '\0');
  {
    const net::Received got(channel, buffer);
    CHECK(got.outcome() == net::Outcome::Done);
    CHECK(got.bytes() == "21.5,19.");
  }
  CHECK(std::count(buffer.begin(), buffer.end(), '\0') == 8);
  CHECK(net::Received(channel, {buffer.data(), 2}).bytes() == "25");
  const net::Received end(channel, buffer);
  CHECK(end.outcome() == net::Outcome::Closed);
  CHECK(end.bytes().empty());
  CHECK(std::count(buffer.begin(), buffer.end(), '\0') == 8);
}
