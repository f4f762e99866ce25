#include "application.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/processes.h"
#include "command_options.h"
#include "edgecase/file_system.h"
#include "output.h"
#include "reading_output.h"
#include "storage/drive.h"
#include "target_file.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

constexpr double kSlowMbPerSecond = 5;
constexpr double kSlowSyncMs = 100;
constexpr std::uint64_t kLittleFreeBytes = 1u << 30;

struct StorageArguments {
  SettingArguments settings;
  std::string values;
  bool move = false;
  bool json = false;
};

// All that is known before anything is changed.
struct Findings {
  std::string directory;  // without links
  std::string current;    // storage.values
  std::string file;       // the configuration's
  storage::Drive drive;
  DriveFacts overwriting;
  storage::Speed speed;
  storage::MovePlan plan;
  bool has_values = false;  // of a store, in `current`
  std::vector<std::string> warnings;
};

std::string bytes_text(std::uint64_t bytes) {
  char text[32];
  if (bytes < 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  }
  return text;
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

const char* overwrites_text(const DriveFacts& facts) {
  switch (facts.overwrites) {
    case Overwrites::InPlace: return "in-place";
    case Overwrites::Elsewhere: return "elsewhere";
    case Overwrites::Unknown: break;
  }
  return "unknown";
}

bool lies_in(const std::string& inner, const std::string& outer) {
  return inner == outer || inner.starts_with(outer + "/");
}

void warn(Findings& found, const std::string& metadata) {
  struct stat other {};
  const storage::Drive& drive = found.drive;
  if (stat(metadata.c_str(), &other) == 0 && other.st_dev == drive.mount.device_number) {
    found.warnings.push_back(found.directory + " is on the same drive as the metadata (" +
                             metadata + "); is the drive for the values mounted?");
  }
  if (drive.mount.file_system == "tmpfs" || drive.mount.file_system == "ramfs") {
    found.warnings.push_back(drive.mount.point + " is memory: its values are gone after a restart");
  }
  if (found.overwriting.overwrites != Overwrites::InPlace) {
    found.warnings.push_back(
        "certificates of erasure will not say physical, for what is overwritten there may stay (" +
        found.overwriting.why +
        "); use a file system that overwrites in place (ext4, xfs), or encryption "
        "(storage.encryption-key-file)");
  }
  const DriveFacts metadata_facts = posix_file_system().drive_facts(metadata);
  if (metadata_facts.overwrites != Overwrites::InPlace && exists(metadata)) {
    found.warnings.push_back("the same holds for the metadata in " + metadata + " (" +
                             metadata_facts.why + "), where encryption does not help either");
  }
  if (drive.free_bytes < kLittleFreeBytes) {
    found.warnings.push_back("only " + bytes_text(drive.free_bytes) + " are free");
  }
  if (found.speed.mb_per_second < kSlowMbPerSecond || found.speed.sync_ms > kSlowSyncMs) {
    found.warnings.push_back("the drive is slow; ingest will wait for it");
  }
}

Result<Findings> examine(const StorageArguments& arguments,
                         const config::Configuration& configuration) {
  Findings found;
  if (mkdir(arguments.values.c_str(), 0750) != 0 && errno != EEXIST) {
    return io_error(arguments.values + " cannot be made: " + std::strerror(errno) +
                    "; is the drive mounted?");
  }
  EC_ASSIGN_OR_RETURN(found.drive, storage::look_at_drive(arguments.values));
  std::error_code error;
  found.directory = std::filesystem::canonical(arguments.values, error);
  const config::StorageSettings& settings = configuration.settings.storage;
  found.current = std::filesystem::weakly_canonical(settings.values, error);
  found.file = configuration.file;
  const std::string metadata = std::filesystem::weakly_canonical(settings.metadata, error);
  if (found.directory == metadata) {
    return invalid_argument(found.directory + " is the metadata directory; use another");
  }
  if (found.directory != found.current &&
      (lies_in(found.directory, found.current) || lies_in(found.current, found.directory))) {
    return invalid_argument(found.directory + " and " + found.current +
                            ", where the values are, lie within each other; use another");
  }
  if (found.drive.mount.read_only) {
    return not_allowed(found.drive.mount.point + " is mounted read-only; mount -o remount,rw " +
                       found.drive.mount.point);
  }
  found.overwriting = posix_file_system().drive_facts(found.directory);
  EC_ASSIGN_OR_RETURN(found.speed, storage::measure_speed(found.directory));
  if (found.current != found.directory) {
    const auto plan = storage::ValuesMove(found.current, found.directory).plan();
    found.has_values = plan.ok();
    if (plan.ok()) found.plan = *plan;
  }
  warn(found, metadata);
  return found;
}

void print_json(const Findings& found) {
  const storage::Drive& drive = found.drive;
  const nlohmann::json document = {{"values", found.directory},
                                   {"current_values", found.current},
                                   {"mount", drive.mount.point},
                                   {"device", drive.mount.device},
                                   {"file_system", drive.mount.file_system},
                                   {"uuid", drive.uuid},
                                   {"in_fstab", drive.in_fstab},
                                   {"overwrites", overwrites_text(found.overwriting)},
                                   {"overwrites_why", found.overwriting.why},
                                   {"free_bytes", drive.free_bytes},
                                   {"size_bytes", drive.size_bytes},
                                   {"write_mb_per_second", found.speed.mb_per_second},
                                   {"sync_ms", found.speed.sync_ms},
                                   {"bytes_to_move", found.plan.bytes},
                                   {"files_to_move", found.plan.files},
                                   {"fstab_line", storage::fstab_line(drive)},
                                   {"unit_drop_in", storage::unit_drop_in(found.directory)},
                                   {"warnings", found.warnings}};
  write_out(stdout, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void print_text(const Findings& found) {
  const storage::Drive& drive = found.drive;
  char speed[64];
  std::snprintf(speed, sizeof speed, "%.0f MB/s in order, %.1f ms for a small write, synced",
                found.speed.mb_per_second, found.speed.sync_ms);
  std::string text = "drive   " + drive.mount.device + " at " + drive.mount.point + ", " +
                     drive.mount.file_system + "\n";
  text += "space   " + bytes_text(drive.free_bytes) + " of " + bytes_text(drive.size_bytes) +
          " free\nspeed   " + speed + "\n";
  text += "erased  " +
          (found.overwriting.overwrites == Overwrites::InPlace
               ? std::string("is overwritten in place: physical")
               : "may stay on the drive: not physical; " + found.overwriting.why) +
          "\n";
  if (drive.mount.point != "/") {
    text += "\n# /etc/fstab";
    text += drive.in_fstab ? ": has a line for " + drive.mount.point + "; like this it is safe\n"
                           : "\n";
    text += storage::fstab_line(drive) + "\n";
  }
  text += "\n# systemctl edit edgecased\n" + storage::unit_drop_in(found.directory);
  text += "\n# " + (found.file.empty() ? std::string(config::kDefaultFile) : found.file) +
          "\n[storage]\nvalues = \"" + found.directory + "\"\n";
  write_out(stdout, text);
}

// The daemon, `check` and other moves stay away meanwhile.
Result<std::vector<std::unique_ptr<FileLock>>> lock_store(
    const config::Configuration& configuration, const Findings& found) {
  std::vector<std::unique_ptr<FileLock>> locks;
  std::vector<std::string> directories = {configuration.settings.storage.metadata, found.current};
  if (found.directory != found.current) directories.push_back(found.directory);
  for (const std::string& directory : directories) {
    // One that this command made would be its user's, and not the daemon's.
    std::error_code error;
    if (!std::filesystem::exists(directory + "/LOCK", error)) continue;
    auto lock = posix_file_system().lock_file(directory + "/LOCK");
    if (lock.status().code() == StatusCode::Locked) {
      return locked(directory + " is in use; systemctl stop edgecased first");
    }
    if (!lock.ok()) return lock.status();
    locks.push_back(std::move(lock).value());
  }
  return locks;
}

// Has the configuration name the new directory, at one instant.
Status name_directory(const config::Configuration& configuration, const std::string& directory) {
  const config::Origin origin = configuration.origin_of("storage.values");
  if (origin.kind == config::OriginKind::Environment || origin.kind == config::OriginKind::Flag) {
    return invalid_argument(origin.where + " sets storage.values; set it in the file alone");
  }
  const std::string path =
      configuration.file.empty() ? std::string(config::kDefaultFile) : configuration.file;
  std::size_t line = 0;
  if (origin.kind == config::OriginKind::File && origin.where.starts_with(path + ":")) {
    line = std::strtoul(origin.where.c_str() + path.size() + 1, nullptr, 10);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::error_code error;
  // The file itself, where the path is a link to it.
  const std::string place = std::filesystem::canonical(path, error).string();
  EC_ASSIGN_OR_RETURN(TargetFile target, TargetFile::create(error ? path : place));
  EC_TRY(target.write(storage::with_setting(text, "storage", "values", line, directory)));
  EC_TRY(target.keep_permissions());
  return target.commit();
}

// The user who runs the daemon owns the values where they are.
void give_away(const Findings& found) {
  struct stat old_directory {};
  if (geteuid() != 0 || stat(found.current.c_str(), &old_directory) != 0) return;
  if (chown(found.directory.c_str(), old_directory.st_uid, old_directory.st_gid) != 0 ||
      chmod(found.directory.c_str(), old_directory.st_mode & 07777) != 0) {
    print_error("warning: %s: %s\n", found.directory.c_str(), std::strerror(errno));
  }
}

Status move_values(const config::Configuration& configuration, const Findings& found) {
  EC_ASSIGN_OR_RETURN(const auto locks, lock_store(configuration, found));
  const std::string from = found.current == found.directory
                               ? storage::ValuesMove::moved_from(found.directory)
                               : found.current;
  if (from.empty()) return ok();
  const storage::ValuesMove move(from, found.directory);
  if (found.current != found.directory) {
    if (found.has_values) {
      if (found.plan.bytes > found.drive.free_bytes) {
        return out_of_space(found.directory + " has " + bytes_text(found.drive.free_bytes) +
                            " free, the values need " + bytes_text(found.plan.bytes));
      }
      bench::watch_for_interrupt();
      Progress progress("moving", found.plan.bytes, "bytes");
      EC_TRY(move.copy([&progress](std::uint64_t bytes) {
        progress.add(bytes, bytes);
        return !bench::interrupted();
      }));
    }
    if (const DriveFacts old = posix_file_system().drive_facts(from);
        found.has_values && old.overwrites != Overwrites::InPlace) {
      std::fprintf(stderr,
                   "warning: what was in %s may stay on its drive, though it is "
                   "overwritten (%s)\n",
                   printable(from).c_str(), printable(old.why).c_str());
    }
    give_away(found);
    EC_TRY(name_directory(configuration, found.directory));
    if (!found.has_values) return ok();
  }
  return move.remove_old();
}

int run_storage(const StorageArguments& arguments) {
  const Result<config::Configuration> configuration = load_settings(arguments.settings);
  if (!configuration.ok()) {
    print_error("%s\n", configuration.status().message().c_str());
    return wire::kExitUsage;
  }
  const Result<Findings> found = examine(arguments, *configuration);
  if (!found.ok()) return report_failure(found.status());
  if (arguments.json) {
    print_json(*found);
  } else {
    print_text(*found);
  }
  for (const std::string& warning : found->warnings) {
    print_error("warning: %s\n", printable(warning).c_str());
  }
  const int finished = finish_stdout();
  if (finished != wire::kExitOk) return finished;
  const bool unfinished = !storage::ValuesMove::moved_from(found->directory).empty();
  if (!arguments.move) {
    if (unfinished) {
      print_error("a move to this directory is not finished: --move goes on with it\n");
    } else if (found->has_values) {
      print_error("%s in %s: stop the daemon, then --move takes them along\n",
                  bytes_text(found->plan.bytes).c_str(), found->current.c_str());
    }
    return wire::kExitOk;
  }
  const Status moved = move_values(*configuration, *found);
  if (moved.code() == StatusCode::Cancelled) {
    print_error(
        "stopped; the store is as it was. The same command goes on; to give it up, delete "
        "%s, which holds copies of values\n",
        found->directory.c_str());
    return wire::kExitPartly;
  }
  if (!moved.ok()) return report_failure(moved);
  print_error("the values are in %s; start the daemon\n", found->directory.c_str());
  return wire::kExitOk;
}

}  // namespace

void add_config_storage(CLI::App& config, Action& action) {
  auto arguments = std::make_shared<StorageArguments>();
  CLI::App* command = config.add_subcommand(
      "storage", "Check a directory for the values, say how to set it up, move them there");
  command->add_option("--values", arguments->values, "Directory for the values, on its drive")
      ->type_name("DIR")
      ->required();
  command->add_flag("--move", arguments->move,
                    "Move the store's values there and change the configuration; the daemon must "
                    "not run");
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  command
      ->add_option(
          "--config", arguments->settings.file,
          "Configuration file; must exist when given. Else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  command->footer(
      "Tells mount, free space and speed (it writes 32 MiB for that), and prints the lines for\n"
      "/etc/fstab, the service and the configuration. --move may be interrupted, by a power cut\n"
      "too: the store is whole in the directory that the configuration names, and the same\n"
      "command goes on. The old values are deleted once the configuration names the new ones.\n\n" +
      help_footer({"edgecase config storage --values /mnt/ssd/edgecase",
                   "edgecase config storage --values /mnt/ssd/edgecase --move"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_storage(*arguments); }; });
}

}  // namespace edgecase::cli
