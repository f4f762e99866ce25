#include "file/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kExtMagic = 0xEF53;  // ext2, ext3 and ext4
constexpr std::uint64_t kXfsMagic = 0x58465342;
constexpr std::uint64_t kTmpfsMagic = 0x01021994;
constexpr std::uint64_t kRamfsMagic = 0x858458f6;

enum class Kind : unsigned char {
  InPlace,    // where the devices below do, too
  CopiesOut,  // writes changes elsewhere, or keeps more than one version
  Remote,     // another machine, or a program, decides
  Layers,     // two file systems that show as one
  Flash,      // writes raw flash, which cannot be overwritten
};

struct Known {
  std::uint64_t magic;
  const char* name;
  Kind kind;
};

// Numbers of linux/magic.h and of the file systems' own sources.
constexpr Known kKnown[] = {
    {kExtMagic, "ext4", Kind::InPlace},
    {kXfsMagic, "xfs", Kind::InPlace},
    {0x3153464a, "jfs", Kind::InPlace},
    {0x4d44, "vfat", Kind::InPlace},
    {0x2011BAB0, "exfat", Kind::InPlace},
    {0x9123683E, "btrfs", Kind::CopiesOut},
    {0x2FC12FC1, "zfs", Kind::CopiesOut},
    {0xF2F52010, "f2fs", Kind::CopiesOut},
    {0xCA451A4E, "bcachefs", Kind::CopiesOut},
    {0x3434, "nilfs2", Kind::CopiesOut},
    // Small files lie in records that its journal copies.
    {0x7366746e, "ntfs3", Kind::CopiesOut},
    {0x52654973, "reiserfs", Kind::CopiesOut},
    {0x794c7630, "overlay", Kind::Layers},
    {0x61756673, "aufs", Kind::Layers},
    {0xF15F, "ecryptfs", Kind::Layers},
    {0x6969, "nfs", Kind::Remote},
    {0xFF534D42, "cifs", Kind::Remote},
    {0xFE534D42, "smb3", Kind::Remote},
    {0x517B, "smb", Kind::Remote},
    {0x65735546, "fuse", Kind::Remote},
    {0x01021997, "9p", Kind::Remote},
    {0x00C36400, "ceph", Kind::Remote},
    {0x5346414F, "afs", Kind::Remote},
    {0x24051905, "ubifs", Kind::Flash},
    {0x72b6, "jffs2", Kind::Flash},
    {0x5941ff53, "yaffs", Kind::Flash},
};

const Known* known_of(std::uint64_t magic) {
  const auto* const found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                         [&](const Known& each) { return each.magic == magic; });
  return found == std::end(kKnown) ? nullptr : found;
}

// One of "rw,relatime,data=journal", or of lines.
bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",\n"), text.size());
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::string text_of(const std::string& path) {
  constexpr std::size_t kTextMaxBytes = 4u << 20;  // a machine of many containers has many mounts
  std::string text;
  const auto file = open_descriptor(path, O_RDONLY);
  if (!file.ok()) return text;
  std::array<char, 16u << 10> piece{};
  while (text.size() < kTextMaxBytes) {
    const ssize_t got = ::read(file->number(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::string hexadecimal(std::uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + text;
}

DriveFacts verdict(Overwrites overwrites, std::string file_system, std::string why = {}) {
  return {.overwrites = overwrites,
          .file_system = std::move(file_system),
          .why = std::move(why),
          .id = 0};
}

// The mode in which data go through the journal may come from the mount, the superblock or a flag
// of the file. The superblock's does not show among the options of a mount, but for `nodelalloc`,
// which it brings along; and not even that where the superblock asks for both.
DriveFacts judge_ext(const DriveProbe& probe, const std::string& name) {
  const auto journals = [&](const char* how) {
    return verdict(
        Overwrites::Elsewhere, name,
        "it is " + name + " and " + how + ": the journal keeps copies of what was written");
  };
  if ((probe.flags & FS_JOURNAL_DATA_FL) != 0)
    return journals("a file or directory there has the attribute j (chattr -j)");
  if ((probe.flags & FS_INLINE_DATA_FL) != 0)
    return journals("has small files in its inodes (feature inline_data)");
  if (has_word(probe.options, "data=journal") || has_word(probe.all_options, "data=journal"))
    return journals("journals data (data=journal)");
  if (!probe.all_options.empty()) return verdict(Overwrites::InPlace, name);
  const bool is_encrypted = (probe.flags & FS_ENCRYPT_FL) != 0;  // has a reason of its own
  if (probe.has_direct_writes && (*probe.has_direct_writes || !is_encrypted)) {
    return *probe.has_direct_writes ? verdict(Overwrites::InPlace, name)
                                    : journals("journals data, by its superblock (tune2fs -o)");
  }
  if (has_word(probe.options, "data=ordered") || has_word(probe.options, "data=writeback"))
    return verdict(Overwrites::InPlace, name);
  if (probe.type == "ext4" && !has_word(probe.options, "nodelalloc"))
    return verdict(Overwrites::InPlace, name);
  return verdict(Overwrites::Unknown, name,
                 "it is " + name +
                     ", and whether it journals data cannot be seen (mount it with data=ordered)");
}

DriveFacts judge_memory(const DriveProbe& probe, const std::string& name) {
  if (probe.magic == kRamfsMagic || probe.swap_bytes == 0 || has_word(probe.options, "noswap"))
    return verdict(Overwrites::InPlace, name);
  return verdict(Overwrites::Elsewhere, name,
                 "it is " + name + ", whose pages may have been swapped out to another drive");
}

// The lines of mountinfo have "MAJOR:MINOR" third, and "- TYPE SOURCE OPTIONS" at the end.
void find_mount(const std::string& mountinfo, const std::string& device, DriveProbe& probe) {
  const std::string wanted = " " + device + " ";
  for (std::size_t begin = 0; begin < mountinfo.size();) {
    const std::size_t end = std::min(mountinfo.find('\n', begin), mountinfo.size());
    const std::string_view line = std::string_view(mountinfo).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dash = line.find(" - ");
    const std::size_t first = line.find(' ');
    const std::size_t second = line.find(' ', first + 1);
    if (dash == std::string_view::npos || second == std::string_view::npos) continue;
    if (line.substr(second, wanted.size()) != wanted) continue;
    std::string_view rest = line.substr(dash + 3);
    const std::size_t type_end = std::min(rest.find(' '), rest.size());
    probe.type = rest.substr(0, type_end);
    const std::size_t options = rest.rfind(' ');
    if (options != std::string_view::npos) probe.options = rest.substr(options + 1);
    return;
  }
}

// STATX_DIOALIGN, which headers before Linux 6.1 do not have.
std::optional<bool> direct_writes_of(int file) {
  constexpr unsigned kDirectAlignment = 0x2000;
  constexpr std::size_t kStatxBytes = 256, kOffsetAlignAt = 156;
  alignas(8) std::array<char, kStatxBytes> state{};
  if (::syscall(SYS_statx, file, "", AT_EMPTY_PATH, kDirectAlignment, state.data()) != 0)
    return std::nullopt;
  std::uint32_t mask = 0, alignment = 0;
  std::memcpy(&mask, state.data(), sizeof mask);
  if ((mask & kDirectAlignment) == 0) return std::nullopt;
  std::memcpy(&alignment, state.data() + kOffsetAlignAt, sizeof alignment);
  return alignment != 0;
}

// One file that says no speaks for all.
void look_at_file(int file, bool is_directory, DriveProbe& probe) {
  // The kernel takes an int here, whatever its headers say.
  int flags = 0;
  if (::ioctl(file, FS_IOC_GETFLAGS, &flags) == 0) probe.flags |= static_cast<unsigned>(flags);
  if (probe.magic == kXfsMagic) {
    fsxattr more{};
    if (::ioctl(file, FS_IOC_FSGETXATTR, &more) == 0)
      probe.is_realtime = probe.is_realtime || (more.fsx_xflags & FS_XFLAG_REALTIME) != 0;
  }
  if (is_directory || probe.magic != kExtMagic) return;
  const auto direct = direct_writes_of(file);
  if (direct) probe.has_direct_writes = probe.has_direct_writes.value_or(true) && *direct;
}

constexpr std::size_t kFilesLookedAt = 128;  // in each directory

void look_in(const std::string& directory, int depth, DriveProbe& probe) {
  const auto itself = open_descriptor(directory, O_RDONLY | O_DIRECTORY);
  if (!itself.ok()) return;
  look_at_file(itself->number(), true, probe);
  if (probe.magic == kExtMagic && depth > 0) {
    // One of our own: there may be no other that we may read. On a full drive there is none.
    const auto unnamed = open_descriptor(directory, O_TMPFILE | O_RDWR);
    if (unnamed.ok()) look_at_file(unnamed->number(), false, probe);
  }
  struct Close {
    void operator()(DIR* opened) const { ::closedir(opened); }
  };
  const std::unique_ptr<DIR, Close> listed(::opendir(directory.c_str()));
  if (!listed) return;
  std::size_t files = 0;
  while (const dirent* found = ::readdir(listed.get())) {
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = directory + "/" + found->d_name;
    if (found->d_type == DT_DIR && depth > 0) {
      look_in(path, depth - 1, probe);
    } else if (found->d_type == DT_REG && files < kFilesLookedAt) {
      ++files;
      const auto file = open_descriptor(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      if (file.ok()) look_at_file(file->number(), false, probe);
    }
  }
}

std::uint64_t swap_bytes() {
  struct sysinfo machine {};
  if (::sysinfo(&machine) != 0) return UINT64_MAX;
  return std::uint64_t{machine.totalswap} * machine.mem_unit;
}

// "/sys/devices/virtual/block/loop0" -> "loop0"
std::string name_of(const std::string& directory) {
  return directory.substr(directory.rfind('/') + 1);
}

std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> place{};
  return ::realpath(path.c_str(), place.data()) == nullptr ? std::string() : place.data();
}

// The device mapper's device says what it is for in its uuid: "LVM-" and two ids of 32 letters,
// then, of parts that LVM keeps to itself, "-real", "-cow", ...
DriveFacts judge_mapped(const std::string& uuid, const std::string& name) {
  constexpr std::size_t kLvmIdBytes = 64;
  struct Part {
    const char* ending;
    const char* what;
  };
  constexpr Part kParts[] = {
      {"-real", "has a snapshot, or is one (LVM): the snapshot keeps what was overwritten"},
      {"-cow", "is a snapshot (LVM), which keeps what was overwritten"},
      {"-tpool", "is thin (LVM): a snapshot of it may share, and keep, what was overwritten"},
      {"-vpool", "is compressed and deduplicated (VDO), and writes changes elsewhere"},
      {"-vdata", "is compressed and deduplicated (VDO), and writes changes elsewhere"},
      {"-cdata", "is cached (LVM): one of two drives keeps what was overwritten on the other"},
      {"-cvol", "is cached (LVM): one of two drives keeps what was overwritten on the other"},
      {"-imeta", "has a journal of data (dm-integrity), which keeps copies"},
  };
  if (uuid.starts_with("LVM-")) {
    const std::string_view rest = std::string_view(uuid).substr(4);
    const std::string_view ending = rest.substr(std::min(kLvmIdBytes, rest.size()));
    if (ending.empty()) return verdict(Overwrites::InPlace, name);
    for (const Part& part : kParts)
      if (ending == part.ending)
        return verdict(Overwrites::Elsewhere, name, std::string("its device ") + part.what);
  } else if (uuid.starts_with("CRYPT-INTEGRITY") || uuid.starts_with("INTEGRITY-")) {
    return verdict(Overwrites::Elsewhere, name,
                   "its device has a journal of data (dm-integrity), which keeps copies");
  } else if (uuid.starts_with("stratis-") || uuid.starts_with("VDO-")) {
    return verdict(Overwrites::Elsewhere, name,
                   "its device (" + uuid.substr(0, uuid.find('-')) + ") writes changes elsewhere");
  } else if (uuid.starts_with("CRYPT-") || uuid.starts_with("mpath-") ||
             uuid.starts_with("DMRAID-") || uuid.starts_with("part")) {
    return verdict(Overwrites::InPlace, name);
  }
  return verdict(Overwrites::Unknown, name,
                 "its device " + name +
                     " is one of the device mapper, and what it does with writes is not known");
}

class DeviceJudge {
 public:
  explicit DeviceJudge(const std::function<DriveFacts(const std::string&)>& of_file)
      : of_file_(of_file) {}

  DriveFacts judge(const std::string& directory, int depth) const {
    // A partition does what its drive does.
    const bool is_part = exists(directory + "/partition");
    const std::string drive = is_part ? directory.substr(0, directory.rfind('/')) : directory;
    DriveFacts facts = judge_itself(drive, depth);
    if (facts.overwrites == Overwrites::Elsewhere) return facts;
    for (const std::string& below : names_in(drive + "/slaves")) {
      DriveFacts other = depth == 0 ? unknown(name_of(drive))
                                    : judge(real_path(drive + "/slaves/" + below), depth - 1);
      if (other.overwrites == Overwrites::Elsewhere) return other;
      if (other.overwrites == Overwrites::Unknown) facts = std::move(other);
    }
    return facts;
  }

  static DriveFacts unknown(const std::string& name) {
    return verdict(Overwrites::Unknown, name,
                   "what its device " + name + " does with writes is not known");
  }

 private:
  DriveFacts judge_itself(const std::string& drive, int depth) const {
    const std::string name = name_of(drive);
    if (exists(drive + "/dm")) return judge_mapped(text_of(drive + "/dm/uuid"), name);
    if (exists(drive + "/loop")) return judge_loop(drive, name, depth);
    if (exists(drive + "/bcache")) {
      return verdict(Overwrites::Elsewhere, name,
                     "its device is cached (bcache): one of two drives keeps what was overwritten "
                     "on the other");
    }
    if (text_of(drive + "/md/consistency_policy") == "journal") {
      return verdict(Overwrites::Elsewhere, name,
                     "its device " + name + " has a journal of data, which keeps copies");
    }
    if (name.size() > 2 && name.starts_with("zd") && name[2] >= '0' && name[2] <= '9')
      return verdict(Overwrites::Elsewhere, name, "it lies on a volume of zfs");
    for (const char* other : {"nbd", "rbd", "ublkb", "zram", "mtdblock", "ubiblock", "rnbd"})
      if (name.starts_with(other)) return unknown(name);
    return verdict(Overwrites::InPlace, name);
  }

  DriveFacts judge_loop(const std::string& drive, const std::string& name, int depth) const {
    const std::string file = text_of(drive + "/loop/backing_file");
    // Removed since, or of another root: there is nothing to look at.
    if (file.empty() || depth == 0 || !exists(file)) return unknown(name);
    DriveFacts facts = of_file_(file);
    if (facts.overwrites != Overwrites::InPlace)
      facts.why = "it lies in " + file + ": " + facts.why;
    return facts;
  }

  static std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    struct Close {
      void operator()(DIR* opened) const { ::closedir(opened); }
    };
    const std::unique_ptr<DIR, Close> listed(::opendir(directory.c_str()));
    if (!listed) return names;
    while (const dirent* found = ::readdir(listed.get()))
      if (found->d_name[0] != '.') names.emplace_back(found->d_name);
    return names;
  }

  const std::function<DriveFacts(const std::string&)>& of_file_;
};

// Without /sys the kernel's list of drivers tells plain drives from others.
DriveFacts judge_by_driver(const KernelTree& kernel, unsigned major_number,
                           const std::string& name) {
  const std::string devices = "\n" + text_of(kernel.proc + "/devices") + "\n";
  const std::size_t blocks = devices.find("\nBlock devices:");
  if (blocks == std::string::npos) return DeviceJudge::unknown(name);
  std::string number = std::to_string(major_number);
  number.insert(0, 3 - std::min<std::size_t>(3, number.size()), ' ');
  for (const char* driver : {"sd", "mmc", "virtblk", "blkext", "xvd", "nvme", "ide0", "ide1"})
    if (devices.find("\n" + number + " " + driver + "\n", blocks) != std::string::npos)
      return verdict(Overwrites::InPlace, name);
  return DeviceJudge::unknown(name);
}

constexpr int kDevicesDeep = 16;

DriveFacts look(const std::string& directory, int depth);

// A file's file system; nothing else of its directory counts.
DriveFacts look_at_backing(const std::string& file, int depth) {
  if (depth == 0) return DeviceJudge::unknown(file);
  return look(file, depth - 1);
}

DriveFacts look(const std::string& path, int depth) {
  struct statfs fs {};
  struct stat state {};
  if (::statfs(path.c_str(), &fs) != 0 || ::stat(path.c_str(), &state) != 0) {
    const int error = errno;
    return verdict(Overwrites::Unknown, "",
                   "it cannot be looked at (" + std::string(std::strerror(error)) + ")");
  }
  const KernelTree kernel;
  const unsigned major_number = major(state.st_dev), minor_number = minor(state.st_dev);
  DriveProbe probe;
  probe.magic = static_cast<std::uint32_t>(fs.f_type);
  const std::string device = std::to_string(major_number) + ":" + std::to_string(minor_number);
  find_mount(text_of(kernel.proc + "/self/mountinfo"), device, probe);
  const std::string place = real_path(kernel.sys + "/dev/block/" + device);
  if (probe.magic == kExtMagic && !place.empty())
    probe.all_options = text_of(kernel.proc + "/fs/ext4/" + name_of(place) + "/options");
  if (S_ISDIR(state.st_mode)) {
    look_in(path, 1, probe);
  } else if (const auto file = open_descriptor(path, O_RDONLY | O_NONBLOCK); file.ok()) {
    look_at_file(file->number(), false, probe);
  }
  probe.swap_bytes = swap_bytes();
  DriveFacts facts = judge_file_system(probe);
  const Known* const known = known_of(probe.magic);
  if (facts.overwrites == Overwrites::InPlace && known != nullptr) {
    const DriveFacts below =
        judge_device(kernel, major_number, minor_number,
                     [depth](const std::string& file) { return look_at_backing(file, depth); });
    facts.overwrites = below.overwrites;
    facts.why = below.why;
  }
  std::array<std::uint32_t, 2> words{};
  static_assert(sizeof words == sizeof fs.f_fsid);
  std::memcpy(words.data(), &fs.f_fsid, sizeof words);
  const std::uint64_t id = std::uint64_t{words[0]} << 32 | words[1];
  if (id != 0) facts.id = id ^ probe.magic;
  return facts;
}

}  // namespace

DriveFacts judge_file_system(const DriveProbe& probe) {
  if (probe.magic == kTmpfsMagic || probe.magic == kRamfsMagic)
    return judge_memory(probe, probe.magic == kTmpfsMagic ? "tmpfs" : "ramfs");
  const Known* const known = known_of(probe.magic);
  if (known == nullptr) {
    const std::string name = probe.type.empty() ? hexadecimal(probe.magic) : probe.type;
    return verdict(Overwrites::Unknown, name,
                   "it is " + name + ", of which it is not known whether it overwrites in place");
  }
  // ext2 and ext3 have the same number.
  const bool has_better_name = !probe.type.empty() && known->kind != Kind::CopiesOut;
  const std::string name = has_better_name ? probe.type : known->name;
  switch (known->kind) {
    case Kind::CopiesOut:
      return verdict(
          Overwrites::Elsewhere, name,
          "it is " + name + ", which writes changes elsewhere and leaves what was there");
    case Kind::Flash:
      return verdict(Overwrites::Elsewhere, name,
                     "it is " + name + ", on flash, which cannot be overwritten in place");
    case Kind::Layers:
      return verdict(Overwrites::Elsewhere, name,
                     "it is " + name + ", which lies on another file system and copies from it");
    case Kind::Remote:
      return verdict(Overwrites::Unknown, name,
                     "it is " + name + ": what is behind it decides what becomes of old bytes");
    case Kind::InPlace: break;
  }
  if (known->magic == kExtMagic) return judge_ext(probe, name);
  if (probe.is_realtime) {
    return verdict(
        Overwrites::Unknown, name,
        "it is xfs with files on its real-time device, which may write changes elsewhere");
  }
  return verdict(Overwrites::InPlace, name);
}

DriveFacts judge_device(const KernelTree& kernel, unsigned major_number, unsigned minor_number,
                        const std::function<DriveFacts(const std::string&)>& of_file) {
  const std::string name = std::to_string(major_number) + ":" + std::to_string(minor_number);
  const std::string place = real_path(kernel.sys + "/dev/block/" + name);
  if (place.empty()) return judge_by_driver(kernel, major_number, name);
  return DeviceJudge(of_file).judge(place, kDevicesDeep);
}

DriveFacts look_at_drive(const std::string& directory) {
  return look(directory, kDevicesDeep);
}

}  // namespace edgecase::engine
