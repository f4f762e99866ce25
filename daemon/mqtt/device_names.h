// Two devices never become one: which device a name made of a topic stands for, where several could
// have it. `1/OG` and `1.OG` are both called `1.OG` by their topics, and The Things Stack's devices
// are told apart only within their application. The first device has the plain name, for good; the
// other's ends in `~` and a hash.
//
// Records in the engine's namespace `_mqtt`, which name nobody: both are
// pseudonyms of the store (auth/hashing.h).
//
//   key      'D'  of the name, 8 bytes
//   value    1, the record's version; of the topic's levels, 8 bytes
//
// Everything is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "auth/hashing.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"
#include "ingest/ingest_pipeline.h"

namespace edgecase::mqtt {

// The namespace of MQTT's own records: the engine's `_mqtt` on the metadata drive, which no query
// shows. The first byte of a key says whose record it is: 'D' device_names.h, 'F'
// connection.h, 'Q' listener/session_table.h.

inline constexpr std::string_view kMqttNamespace = "_mqtt";

// Made where there is none yet. Errors: the engine's.
Result<NamespaceId> open_record_namespace(Engine& engine);

class DeviceNames {
 public:
  // The most names that are remembered; later ones are as their topics say.
  static constexpr std::size_t kNamesMax = 65'536;

  // With what was remembered. `random`: one that nobody can predict. Errors: the engine's.
  static Result<std::unique_ptr<DeviceNames>> open(Engine& engine, Random& random);

  struct Named {
    std::string name;
    bool is_new = false;  // then this is to be durable with the first of its readings:
    std::string key, value;
    std::uint64_t name_number = 0, levels_number = 0;
  };
  // The name of the device whose topic says `levels`, and would be called `wanted`. It has the name
  // once keep() was told: not before it is known that it may write under it.
  Named name_of(std::string_view namespace_name, std::string_view wanted, std::string_view levels);
  void keep(const Named& named) EC_EXCLUDES(mutex_);

  NamespaceId namespace_id() const { return namespace_id_; }

 private:
  DeviceNames(Engine& engine, NamespaceId id, auth::Pseudonyms pseudonyms)
      : engine_(engine), namespace_id_(id), pseudonyms_(std::move(pseudonyms)) {}
  Status load() EC_EXCLUDES(mutex_);

  Engine& engine_;
  const NamespaceId namespace_id_;
  const auth::Pseudonyms pseudonyms_;
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> levels_of_ EC_GUARDED_BY(mutex_);  // by name
};

}  // namespace edgecase::mqtt
