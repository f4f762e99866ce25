#include <doctest/doctest.h>

#include <algorithm>

#include "check/rebuild.h"
#include "engine/check/recording_observer.h"

namespace edgecase::engine {

TEST_CASE("namespaces that a manifest no longer knows were dropped, however many") {
  edgecase::test::RecordingObserver observer;
  Findings findings(observer);
  NamespaceRebuild namespaces(findings);
  // Millions, of which nothing is kept: a set of them would take 600 MiB and many seconds.
  namespaces.take({{1, "plant", {}}, {kNamespaceIdMax - 1, "last", {}}}, kNamespaceIdMax);
  CHECK_FALSE(namespaces.is_dropped(0));
  CHECK_FALSE(namespaces.is_dropped(1));
  CHECK(namespaces.is_dropped(2));
  CHECK(namespaces.is_dropped(kNamespaceIdMax - 2));
  CHECK_FALSE(namespaces.is_dropped(kNamespaceIdMax - 1));
  CHECK_FALSE(namespaces.is_dropped(kNamespaceIdMax));
  // What a file says of one that was dropped does not bring it back, nor takes it a name.
  namespaces.add(2, "plant", {});
  namespaces.ensure(3, {});
  CHECK(namespaces.known().size() == 2);
  // The older of two with one name was dropped.
  namespaces.add(kNamespaceIdMax, "plant", {});
  CHECK(namespaces.is_dropped(1));
  CHECK(namespaces.known().size() == 2);
  CHECK(std::is_sorted(namespaces.known().begin(), namespaces.known().end(),
                       [](const auto& a, const auto& b) { return a.id < b.id; }));
}

}  // namespace edgecase::engine
