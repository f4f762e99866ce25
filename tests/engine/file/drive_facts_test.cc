// Which drives overwrite in place, by what the kernel says of them; a real drive in
// tests/flow/file_systems_flow_test.py.
#include "file/posix_file_system.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_directory.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kExt = 0xEF53;
constexpr std::uint32_t kJournalData = 0x4000, kInlineData = 0x10000000, kEncrypted = 0x800;

constexpr Overwrites kInPlace = Overwrites::InPlace;
constexpr Overwrites kElsewhere = Overwrites::Elsewhere;
constexpr Overwrites kUnknown = Overwrites::Unknown;

// Directories and files as in /sys, the links that the kernel makes included.
class FakeKernel {
 public:
  FakeKernel() { tree = {directory.path() + "/sys", directory.path() + "/proc"}; }

  // A device "8:1" at devices/`place`; the files below it are given as "dm/uuid", "LVM-...".
  void device(const std::string& number, const std::string& place,
              const std::vector<std::pair<std::string, std::string>>& files = {}) {
    const std::filesystem::path at = tree.sys + "/devices/" + place;
    std::filesystem::create_directories(at);
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories((at / name).parent_path());
      std::ofstream(at / name) << text << "\n";
    }
    std::filesystem::create_directories(tree.sys + "/dev/block");
    std::filesystem::create_directory_symlink(at, tree.sys + "/dev/block/" + number);
  }
  void lies_on(const std::string& upper, const std::string& lower) {
    const std::filesystem::path slaves = tree.sys + "/devices/" + upper + "/slaves";
    std::filesystem::create_directories(slaves);
    std::filesystem::create_directory_symlink(tree.sys + "/devices/" + lower,
                                              slaves / lower.substr(lower.rfind('/') + 1));
  }
  DriveFacts judge(unsigned major_number, unsigned minor_number, DriveFacts behind = {}) const {
    return judge_device(tree, major_number, minor_number,
                        [&](const std::string&) { return behind; });
  }

  test::TempDirectory directory;
  KernelTree tree;
};

const std::string kLvm = "LVM-" + std::string(64, 'a');

}  // namespace

TEST_CASE("drive facts: what a file system does with bytes that are overwritten") {
  struct Case {
    const char* name;
    DriveProbe probe;
    Overwrites want;
    const char* words;
  };
  const auto ext = [](const char* type, const char* options) {
    return DriveProbe{.magic = kExt, .type = type, .options = options};
  };
  DriveProbe flagged = ext("ext4", "rw"), inlined = ext("ext4", "rw"), told = ext("ext4", "rw");
  DriveProbe both = ext("ext4", "rw,nodioread_nolock"), no_journal = ext("ext4", "rw,nodelalloc");
  DriveProbe shown = ext("ext4", "rw,nodelalloc"), hidden3 = ext("ext3", "rw");
  DriveProbe sealed = ext("ext4", "rw"), sealed_unsure = ext("ext4", "rw,nodelalloc");
  flagged.flags = kJournalData;
  flagged.has_direct_writes = true;  // of another file
  inlined.flags = kInlineData;
  told.all_options = "rw\ndelalloc\ndata=journal";
  both.has_direct_writes = false;
  no_journal.has_direct_writes = true;
  shown.all_options = "rw\nnodelalloc\ndata=ordered";
  hidden3.has_direct_writes = true;
  sealed.flags = sealed_unsure.flags = kEncrypted;
  sealed.has_direct_writes = sealed_unsure.has_direct_writes = false;
  for (const Case& c : {
           Case{"ext4", ext("ext4", "rw,relatime"), kInPlace, ""},
           Case{"ext4 ordered", ext("ext4", "rw,nodelalloc,data=ordered"), kInPlace, ""},
           Case{"ext4 writeback", ext("ext4", "rw,data=writeback"), kInPlace, ""},
           Case{"ext4 journal", ext("ext4", "rw,nodelalloc,data=journal"), kElsewhere, "journal"},
           Case{"a word that begins like it", ext("ext4", "rw,data=journalled"), kInPlace, ""},
           Case{"journal by superblock", ext("ext4", "rw,nodelalloc"), kUnknown, "data=ordered"},
           Case{"the same, all shown", told, kElsewhere, "data=journal"},
           Case{"nodelalloc, all shown", shown, kInPlace, ""},
           Case{"superblock with journal and nodelalloc", both, kElsewhere, "superblock"},
           Case{"nodelalloc without a journal", no_journal, kInPlace, ""},
           Case{"chattr +j", flagged, kElsewhere, "attribute j"},
           Case{"inline data", inlined, kElsewhere, "inline_data"},
           Case{"fscrypt says no to direct writes", sealed, kInPlace, ""},
           Case{"the same, and hides its mode", sealed_unsure, kUnknown, "data=ordered"},
           Case{"ext3 shows no nodelalloc", ext("ext3", "rw"), kUnknown, "ext3"},
           Case{"ext3, asked", hidden3, kInPlace, ""},
           Case{"ext2 by the driver of ext4", ext("ext2", "rw"), kUnknown, "ext2"},
           Case{"ext without a mount", ext("", ""), kUnknown, "ext4"},
           Case{"xfs", {.magic = 0x58465342, .type = "xfs", .options = "rw"}, kInPlace, ""},
           Case{"xfs realtime",
                {.magic = 0x58465342, .type = "xfs", .options = "rw", .is_realtime = true},
                kUnknown,
                "real-time"},
           Case{"vfat", {.magic = 0x4d44, .type = "vfat"}, kInPlace, ""},
           Case{"exfat", {.magic = 0x2011BAB0, .type = "exfat"}, kInPlace, ""},
           Case{"btrfs", {.magic = 0x9123683E, .type = "btrfs"}, kElsewhere, "btrfs"},
           Case{"btrfs without CoW", {.magic = 0x9123683E, .flags = 0x800000}, kElsewhere, "btrfs"},
           Case{"zfs", {.magic = 0x2FC12FC1}, kElsewhere, "zfs"},
           Case{"f2fs", {.magic = 0xF2F52010}, kElsewhere, "f2fs"},
           Case{"bcachefs", {.magic = 0xCA451A4E}, kElsewhere, "bcachefs"},
           Case{"nilfs2", {.magic = 0x3434}, kElsewhere, "nilfs2"},
           Case{"overlay", {.magic = 0x794c7630}, kElsewhere, "overlay"},
           Case{"ubifs", {.magic = 0x24051905}, kElsewhere, "flash"},
           Case{"nfs", {.magic = 0x6969, .type = "nfs4"}, kUnknown, "nfs4"},
           Case{"cifs", {.magic = 0xFF534D42, .type = "cifs"}, kUnknown, "cifs"},
           Case{"fuse", {.magic = 0x65735546, .type = "fuse.sshfs"}, kUnknown, "fuse.sshfs"},
           Case{"ntfs by fuse", {.magic = 0x65735546, .type = "fuseblk"}, kUnknown, "fuseblk"},
           Case{"9p", {.magic = 0x01021997, .type = "9p"}, kUnknown, "9p"},
           Case{"nobody knows it", {.magic = 0xABCDEF}, kUnknown, "0xabcdef"},
           Case{"memory", {.magic = 0x01021994, .type = "tmpfs", .options = "rw"}, kInPlace, ""},
           Case{"memory that is swapped",
                {.magic = 0x01021994, .options = "rw,size=4k", .swap_bytes = 1},
                kElsewhere,
                "swapped"},
           Case{"memory that is not",
                {.magic = 0x01021994, .options = "rw,noswap", .swap_bytes = 1},
                kInPlace,
                ""},
           Case{"ramfs", {.magic = 0x858458f6, .swap_bytes = 1}, kInPlace, ""},
       }) {
    CAPTURE(c.name);
    const DriveFacts facts = judge_file_system(c.probe);
    CHECK(facts.overwrites == c.want);
    CHECK(facts.why.empty() == (c.want == kInPlace));
    CHECK(facts.why.find(c.words) != std::string::npos);
    CHECK(!facts.file_system.empty());
  }
}

TEST_CASE("drive facts: what devices below a file system do with them") {
  FakeKernel kernel;
  kernel.device("8:0", "sda", {{"queue/x", ""}});
  kernel.device("8:1", "sda/sda1", {{"partition", "1"}});
  kernel.device("9:0", "md0", {{"md/consistency_policy", "bitmap"}});
  kernel.lies_on("md0", "sda");
  kernel.device("9:1", "md1", {{"md/consistency_policy", "journal"}});
  const auto mapped = [&](int number, const std::string& uuid) {
    const std::string name = "dm-" + std::to_string(number);
    kernel.device("253:" + std::to_string(number), name, {{"dm/uuid", uuid}});
    return name;
  };
  const auto on = [&](int number, const std::string& uuid, const std::string& below) {
    kernel.lies_on(mapped(number, uuid), below);
  };
  on(0, kLvm, "sda/sda1");
  on(1, kLvm + "-real", "sda");
  on(2, kLvm, "dm-1");  // has a snapshot
  on(3, kLvm + "-cow", "sda");
  on(4, kLvm, "dm-3");  // is one
  on(5, kLvm + "-tpool", "sda");
  on(6, kLvm, "dm-5");  // thin
  on(7, "CRYPT-LUKS2-0123-x", "dm-0");
  on(8, "CRYPT-LUKS2-0123-y", "dm-2");
  on(9, "", "sda");  // dmsetup alone
  on(10, kLvm + "-cvol", "sda");
  on(11, kLvm, "dm-10");
  on(12, "CRYPT-INTEGRITY-x", "sda");
  on(13, kLvm + "-unheard-of", "sda");
  on(14, "mpath-3600", "sda");
  on(15, "part1-mpath-3600", "dm-14");
  kernel.device("252:0", "bcache0", {{"bcache/x", ""}});
  kernel.device("230:0", "zd0");
  kernel.device("43:0", "nbd0");
  kernel.device("251:0", "zram0");
  struct Case {
    unsigned major_number, minor_number;
    Overwrites want;
  };
  for (const Case& c :
       {Case{8, 0, kInPlace},      Case{8, 1, kInPlace},     Case{9, 0, kInPlace},
        Case{9, 1, kElsewhere},    Case{253, 0, kInPlace},   Case{253, 2, kElsewhere},
        Case{253, 4, kElsewhere},  Case{253, 6, kElsewhere}, Case{253, 7, kInPlace},
        Case{253, 8, kElsewhere},  Case{253, 9, kUnknown},   Case{253, 11, kElsewhere},
        Case{253, 12, kElsewhere}, Case{253, 13, kUnknown},  Case{253, 15, kInPlace},
        Case{252, 0, kElsewhere},  Case{230, 0, kElsewhere}, Case{43, 0, kUnknown},
        Case{251, 0, kUnknown},    Case{8, 99, kUnknown}}) {
    CAPTURE(c.major_number);
    CAPTURE(c.minor_number);
    const DriveFacts facts = kernel.judge(c.major_number, c.minor_number);
    CHECK(facts.overwrites == c.want);
    CHECK(facts.why.empty() == (c.want == kInPlace));
  }
}

TEST_CASE("drive facts: a loop device does what the file system of its file does") {
  FakeKernel kernel;
  const std::string image = kernel.directory.path() + "/image (1)";
  std::ofstream{image} << "x";
  kernel.device("7:0", "loop0", {{"loop/backing_file", image}});
  kernel.device("259:0", "loop0/loop0p1", {{"partition", "1"}});
  kernel.device("7:1", "loop1", {{"loop/backing_file", image + " (deleted)"}});
  const DriveFacts plain{.overwrites = kInPlace};
  const DriveFacts copies{.overwrites = kElsewhere, .why = "it is btrfs"};
  CHECK(kernel.judge(7, 0, plain).overwrites == kInPlace);
  CHECK(kernel.judge(259, 0, plain).overwrites == kInPlace);
  const DriveFacts facts = kernel.judge(259, 0, copies);
  CHECK(facts.overwrites == kElsewhere);
  CHECK(facts.why == "it lies in " + image + ": it is btrfs");
  CHECK(kernel.judge(7, 1, plain).overwrites == kUnknown);
}

TEST_CASE("drive facts: without /sys the driver's name counts, and no more") {
  FakeKernel kernel;
  std::filesystem::create_directories(kernel.tree.proc);
  std::ofstream(kernel.tree.proc + "/devices")
      << "Character devices:\n  1 mem\n 21 sg\n179 sd\n\nBlock devices:\n  7 loop\n  8 sd\n"
         "179 mmc\n253 device-mapper\n254 virtblk\n";
  CHECK(kernel.judge(8, 1).overwrites == kInPlace);
  CHECK(kernel.judge(179, 0).overwrites == kInPlace);
  CHECK(kernel.judge(254, 0).overwrites == kInPlace);
  CHECK(kernel.judge(253, 0).overwrites == kUnknown);
  CHECK(kernel.judge(7, 0).overwrites == kUnknown);
  CHECK(kernel.judge(21, 0).overwrites == kUnknown);
}

TEST_CASE("drive facts: a directory that is not there is unknown, one that is has a file system") {
  const test::TempDirectory directory;
  const DriveFacts missing = look_at_drive(directory.path() + "/none");
  CHECK(missing.overwrites == kUnknown);
  CHECK(!missing.why.empty());
  const DriveFacts there = look_at_drive(directory.path());
  CHECK(!there.file_system.empty());
  CHECK(there.why.empty() == (there.overwrites == kInPlace));
  CHECK(look_at_drive(directory.path()).id == there.id);
}

}  // namespace edgecase::engine
