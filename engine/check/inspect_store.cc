// A whole store at a glance, from its manifest and its log alone: no table is read.
#include <map>

#include "check/facts.h"
#include "check/manifest_look.h"
#include "core/identity.h"
#include "core/wal_recovery.h"
#include "edgecase/inspect.h"
#include "file/file_names.h"

namespace edgecase {
namespace {

using engine::add_fact;

struct Amount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t more_bytes) {
    ++files;
    bytes += more_bytes;
  }
  std::string text() const {
    return std::to_string(files) + " files, " + std::to_string(bytes) + " bytes";
  }
};

void layer_lines(std::string& out, const engine::VersionState& state) {
  Amount tables;
  std::uint64_t entries = 0;
  for (const auto& table : state.version->tables) {
    tables.add(table->size_bytes);
    entries += table->entry_count;
  }
  std::map<Placement, Amount> layers;
  std::map<NamespaceId, Amount> namespaces;
  for (const auto& [number, file] : state.version->value_files) {
    layers[file.placement].add(file.size_bytes);
    namespaces[file.namespace_id].add(file.size_bytes);
  }
  add_fact(out, "entries in tables, deletes and replaced ones too", entries);
  add_fact(out, "metadata tables", tables.text());
  add_fact(out, "value tables on the metadata drive", layers[Placement::Metadata].text());
  add_fact(out, "value tables on the values drive", layers[Placement::Values].text());
  for (const NamespaceInfo& info : state.namespaces)
    add_fact(out, "namespace " + std::to_string(info.id),
             "\"" + info.name + "\", " + namespaces[info.id].text());
}

}  // namespace

Result<std::string> inspect_store(FileSystem& file_system, const Options& options) {
  const std::string& metadata_directory = options.metadata_directory;
  const std::string& values_directory = options.values_directory;
  EC_ASSIGN_OR_RETURN(const auto identity, engine::read_identity(file_system, metadata_directory));
  if (!identity) return not_found(metadata_directory + ": there is no store");
  EC_TRY(engine::check_values_identity(file_system, values_directory, identity->store_id));
  EC_ASSIGN_OR_RETURN(const auto keys,
                      engine::KeyRing::open_if_encrypted(file_system, options, identity->store_id,
                                                         system_random()));
  EC_ASSIGN_OR_RETURN(const std::uint64_t number,
                      engine::read_current(file_system, engine::current_path(metadata_directory)));
  const auto manifest = engine::look_at_manifest(
      file_system, engine::manifest_path(metadata_directory, number), keys.get());
  EC_TRY(manifest.log.status);
  const engine::VersionState& state = manifest.state;
  EC_ASSIGN_OR_RETURN(const auto wal,
                      engine::find_wal(file_system, metadata_directory, identity->store_id,
                                       state.oldest_wal_segment, keys.get()));
  std::string out;
  add_fact(out, "store", engine::to_text(identity->store_id));
  add_fact(out, "encrypted", keys == nullptr ? "no" : "yes, AES-256-GCM");
  if (keys != nullptr) add_fact(out, "keys of scopes", keys->size());
  add_fact(out, "manifest", engine::manifest_name(number));
  add_fact(out, "largest sequence in tables", state.flushed_sequence);
  add_fact(out, "WAL segments needed", wal.chain.size());
  layer_lines(out, state);
  engine::erasure_lines(out, state);
  return out;
}

}  // namespace edgecase
