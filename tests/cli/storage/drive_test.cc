#include "storage/drive.h"

#include <doctest/doctest.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <string>

#include "support/temp_directory.h"

namespace edgecase::cli::storage {
namespace {

constexpr char kMounts[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "not a line of it\n"
    "30 22 8:17 / /mnt/the\\040ssd rw,noatime - ext4 /dev/sdb1 rw\n"
    "31 22 8:33 / /mnt/old ro,noatime shared:9 master:2 - xfs /dev/sdc1 rw\n"
    "32 31 0:40 / /mnt/old rw - tmpfs tmpfs rw\n";

TEST_CASE("mountinfo: points, devices, read-only ones, names with spaces") {
  const std::vector<Mount> mounts = parse_mounts(kMounts);
  REQUIRE(mounts.size() == 4);
  CHECK(mounts[1].point == "/mnt/the ssd");
  CHECK(mounts[1].device == "/dev/sdb1");
  CHECK(mounts[1].file_system == "ext4");
  CHECK(mounts[1].device_number == makedev(8, 17));
  CHECK_FALSE(mounts[1].read_only);
  CHECK(mounts[2].read_only);
}

TEST_CASE("two directories lie on one drive, or would if they were made") {
  test::TempDirectory directory;
  CHECK(on_one_drive(directory.path(), directory / "not/made/yet"));
  CHECK(on_one_drive(directory / "a", directory / "b/.."));
  CHECK_FALSE(on_one_drive(directory.path(), "/proc/self"));
  CHECK_FALSE(on_one_drive("/proc/x", "/sys/x"));
  std::filesystem::create_directory_symlink("/proc", directory / "link");
  CHECK_FALSE(on_one_drive(directory.path(), directory / "link/values"));
}

TEST_CASE("a directory lies on the innermost mount, on the later of two at one place") {
  struct Case {
    const char* path;
    const char* device;
  };
  const std::vector<Mount> mounts = parse_mounts(kMounts);
  for (const Case& c : {Case{"/", "/dev/sda1"}, Case{"/mnt", "/dev/sda1"},
                        Case{"/mnt/the ssd", "/dev/sdb1"}, Case{"/mnt/the ssd/a/b", "/dev/sdb1"},
                        Case{"/mnt/the ssd2", "/dev/sda1"}, Case{"/mnt/old/x", "tmpfs"}}) {
    CAPTURE(c.path);
    const Mount* const mount = mount_of(mounts, c.path);
    REQUIRE(mount != nullptr);
    CHECK(mount->device == c.device);
  }
  CHECK(mount_of({}, "/") == nullptr);
}

TEST_CASE("fstab: only a line in force counts") {
  constexpr char kFstab[] =
      "# UUID=1 /mnt/a ext4\n#UUID=1 /mnt/b ext4\n\nUUID=1 /mnt/the\\040ssd ext4\n";
  CHECK(fstab_has(kFstab, "/mnt/the ssd"));
  CHECK_FALSE(fstab_has(kFstab, "/mnt/a"));
  CHECK_FALSE(fstab_has(kFstab, "/mnt/b"));
  CHECK_FALSE(fstab_has(kFstab, "/mnt"));
}

TEST_CASE("the lines to use name the file system, and do not keep a board from starting") {
  Drive drive;
  drive.mount = {"/mnt/the ssd", "/dev/sdb1", "ext4", false, 0};
  CHECK(fstab_line(drive) ==
        "/dev/sdb1 /mnt/the\\040ssd ext4 defaults,noatime,nofail,x-systemd.device-timeout=10s 0 2");
  drive.uuid = "12-34";
  CHECK(fstab_line(drive).starts_with("UUID=12-34 /mnt/the\\040ssd ext4 "));
  CHECK(unit_drop_in("/mnt/ssd") == "[Service]\nReadWritePaths=-/mnt/ssd\n");
  CHECK(unit_drop_in("/mnt/the ssd/100%") == "[Service]\nReadWritePaths=\"-/mnt/the ssd/100%%\"\n");
}

TEST_CASE("a real directory: it has a mount, space and a speed, and nothing is left in it") {
  const test::TempDirectory directory;
  const Result<Drive> drive = look_at_drive(directory.path());
  REQUIRE(drive.ok());
  CHECK(drive->mount.point.starts_with('/'));
  CHECK(drive->size_bytes >= drive->free_bytes);
  CHECK(drive->size_bytes > 0);
  const Result<Speed> speed = measure_speed(directory.path());
  REQUIRE(speed.ok());
  CHECK(speed->mb_per_second > 0);
  CHECK(speed->sync_ms > 0);
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK(look_at_drive(directory.path() + "/absent").status().code() == StatusCode::NotFound);
}

}  // namespace
}  // namespace edgecase::cli::storage
