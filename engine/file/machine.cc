#include "file/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgecase {
namespace {

// glibc's own default for a thread's stack; what is left of RLIMIT_AS has to hold one.
constexpr unsigned long long kStackBytes = 8ull << 20;
constexpr std::size_t kSmallFileBytes = 4096;

// Nothing: it is unlimited.
unsigned long long limit_value(int resource) {
  rlimit limit{};
  // glibc has a type of its own for the first argument, in C++ alone.
  if (::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

// The beginning of a small file of the kernel's; without memory of the heap.
std::size_t read_small(const char* path, std::array<char, kSmallFileBytes>& text) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const std::size_t size = got > 0 ? static_cast<std::size_t>(got) : 0;
  text[size] = '\0';
  return size;
}

unsigned long long address_space_bytes() {
  std::array<char, kSmallFileBytes> text{};
  if (read_small("/proc/self/statm", text) == 0) return 0;
  return std::strtoull(text.data(), nullptr, 10) *
         static_cast<unsigned long long>(::sysconf(_SC_PAGESIZE));
}

// What `pids.max` of this process' control group says, where as many are there; else 0.
unsigned long long full_pids_limit() {
  std::array<char, kSmallFileBytes> groups{}, text{};
  if (read_small("/proc/self/cgroup", groups) == 0) return 0;
  for (const char* line = groups.data(); line != nullptr && *line != '\0';) {
    const char* const end = std::strchr(line, '\n');
    const std::size_t size =
        end != nullptr ? static_cast<std::size_t>(end - line) : std::strlen(line);
    const std::string entry(line, size);
    line = end != nullptr ? end + 1 : nullptr;
    const bool is_unified = entry.starts_with("0::");
    const std::size_t pids = entry.find(":pids:");
    if (!is_unified && pids == std::string::npos) continue;
    const std::string group = entry.substr(is_unified ? 3 : pids + 6);
    const std::string folder = (is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids") + group;
    if (read_small((folder + "/pids.max").c_str(), text) == 0) continue;
    const unsigned long long most = std::strtoull(text.data(), nullptr, 10);  // "max": 0
    if (most == 0 || read_small((folder + "/pids.current").c_str(), text) == 0) continue;
    if (std::strtoull(text.data(), nullptr, 10) >= most) return most;
  }
  return 0;
}

}  // namespace

std::string limit_of_error(int error) {
  if (error == EFBIG) {
    const unsigned long long bytes = limit_value(RLIMIT_FSIZE);
    if (bytes == 0) return {};
    return " (the limit RLIMIT_FSIZE, ulimit -f, is " + std::to_string(bytes) + " bytes)";
  }
  if (error == EMFILE) {
    return " (the limit RLIMIT_NOFILE, ulimit -n, is " +
           std::to_string(limit_value(RLIMIT_NOFILE)) + " files)";
  }
  return {};
}

std::string limit_of_threads() {
  if (const unsigned long long pids = full_pids_limit(); pids != 0)
    return "the limit pids.max of the control group (TasksMax of a service) is " +
           std::to_string(pids);
  const unsigned long long space = limit_value(RLIMIT_AS);
  if (space != 0 && address_space_bytes() + kStackBytes > space)
    return "the limit RLIMIT_AS (ulimit -v) is " + std::to_string(space >> 10) + " KiB";
  const unsigned long long threads = limit_value(RLIMIT_NPROC);
  if (threads != 0) return "the limit RLIMIT_NPROC (ulimit -u) is " + std::to_string(threads);
  return "the system takes no more (kernel.threads-max, memory)";
}

std::size_t limit_of_memory(char* text, std::size_t size) {
  const unsigned long long space = limit_value(RLIMIT_AS), data = limit_value(RLIMIT_DATA);
  int written = 0;
  if (space != 0 && (data == 0 || space <= data)) {
    written = std::snprintf(text, size, "the limit RLIMIT_AS (ulimit -v) is %llu KiB", space >> 10);
  } else if (data != 0) {
    written =
        std::snprintf(text, size, "the limit RLIMIT_DATA (ulimit -d) is %llu KiB", data >> 10);
  } else {
    written = std::snprintf(text, size, "the system has no more");
  }
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

bool has_aes_instructions() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0;
#elif defined(__aarch64__)
  constexpr unsigned long kHwcapAes = 1ul << 3;  // HWCAP_AES of the kernel's aarch64 ABI
  return (getauxval(AT_HWCAP) & kHwcapAes) != 0;
#else
  return false;
#endif
}

}  // namespace edgecase

namespace edgecase::engine {

bool was_synchronised(const char* mark_path, std::int64_t wall_ns) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  constexpr std::int64_t kFreshSeconds = 3600;
  struct stat mark {};
  if (stat(mark_path, &mark) != 0) return false;
  const std::int64_t age_seconds = wall_ns / kNsPerSecond - mark.st_mtim.tv_sec;
  // The clock may be slewed back a little after an answer.
  return age_seconds >= -1 && age_seconds <= kFreshSeconds;
}

}  // namespace edgecase::engine

#ifndef EC_BUILD_UNIX_SECONDS
#error "engine/CMakeLists.txt defines EC_BUILD_UNIX_SECONDS for this file"
#endif

namespace edgecase {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t read_clock_ns(clockid_t id) {
  timespec time{};
  EC_CHECK(clock_gettime(id, &time) == 0);
  return static_cast<std::int64_t>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

// Trusts wall time when it is past the date of this build, which no board that lost its clock
// starts at, or when it is synchronised. That the kernel says (adjtimex() not TIME_ERROR and
// without STA_UNSYNC, which setting the clock brings back), or, where a sandbox refuses adjtimex(),
// systemd-timesyncd.
class SystemClock final : public Clock {
 public:
  std::int64_t wall_ns() const override { return read_clock_ns(CLOCK_REALTIME); }
  std::int64_t boot_ns() const override { return read_clock_ns(CLOCK_BOOTTIME); }

  ClockTrust trust() const override {
    return wall_ns() > build_time_ns() || synchronised() ? ClockTrust::Trusted
                                                         : ClockTrust::Untrusted;
  }

  bool synchronised() const override {
    timex state{};  // modes 0: only asks
    const int answer = adjtimex(&state);
    if (answer >= 0) return answer != TIME_ERROR && !(state.status & STA_UNSYNC);
    return engine::was_synchronised(engine::kTimesyncdMark, wall_ns());
  }
};

}  // namespace

std::int64_t build_time_ns() {
  return std::int64_t{EC_BUILD_UNIX_SECONDS} * kNanosecondsPerSecond;
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace edgecase

namespace edgecase::engine {
namespace {

constexpr std::size_t kStepBytes = 32;
constexpr std::size_t kChunkBytes = 64u << 10;

// Pieces that are free lead to one another.
struct Free {
  Free* next;
};

struct Pool {
  Mutex mutex;
  std::array<Free*, kLockedPieceMaxBytes / kStepBytes + 1> free EC_GUARDED_BY(mutex){};
  char* rest EC_GUARDED_BY(mutex) = nullptr;  // of the last chunk
  std::size_t rest_bytes EC_GUARDED_BY(mutex) = 0;
};

// Never destroyed: keys may be given back at the very end.
Pool& pool() {
  static Pool& all = *new Pool;
  return all;
}

std::size_t steps_of(std::size_t size) {
  return (size + kStepBytes - 1) / kStepBytes;
}

bool new_chunk(Pool& from) EC_REQUIRES(from.mutex) {
  void* const chunk =
      mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk == MAP_FAILED) return false;
  static_cast<void>(lock_in_memory(chunk, kChunkBytes));
  from.rest = static_cast<char*>(chunk);
  from.rest_bytes = kChunkBytes;
  return true;
}

}  // namespace

bool lock_in_memory(const void* object, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(object) / page * page;
  const std::uintptr_t end =
      (reinterpret_cast<std::uintptr_t>(object) + size + page - 1) / page * page;
  void* const pages = reinterpret_cast<void*>(begin);
  const bool is_left_out = madvise(pages, end - begin, MADV_DONTDUMP) == 0;
  return mlock(pages, end - begin) == 0 && is_left_out;
}

void* allocate_locked(std::size_t size) {
  const std::size_t steps = steps_of(size);
  if (steps * kStepBytes > kLockedPieceMaxBytes) return nullptr;
  Pool& from = pool();
  const MutexLock lock(from.mutex);
  if (Free* const piece = from.free[steps]; piece != nullptr) {
    from.free[steps] = piece->next;
    return piece;
  }
  // What is left of a chunk is less than one piece: it stays unused.
  if (from.rest_bytes < steps * kStepBytes && !new_chunk(from)) return nullptr;
  char* const piece = from.rest;
  from.rest += steps * kStepBytes;
  from.rest_bytes -= steps * kStepBytes;
  return piece;
}

void release_locked(void* memory, std::size_t size) {
  ::explicit_bzero(memory, size);
  Pool& to = pool();
  const MutexLock lock(to.mutex);
  Free*& first = to.free[steps_of(size)];
  auto* const piece = static_cast<Free*>(memory);
  piece->next = first;
  first = piece;
}

}  // namespace edgecase::engine

namespace edgecase {
namespace {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    for (;;) {
      // Up to 256 bytes come whole once the pool is ready; before that the call waits.
      const ssize_t got = getrandom(&value, sizeof value, 0);
      if (got == static_cast<ssize_t>(sizeof value)) return value;
      EC_CHECK(got < 0 && errno == EINTR);
    }
  }
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

// The four words come from a counter through a mixer, so that neighbouring seeds share nothing and
// no seed gives the one bad state, all zero.
SeededRandom::SeededRandom(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    word = mixed ^ (mixed >> 31);
  }
}

std::uint64_t SeededRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t SeededRandom::below(std::uint64_t bound) {
  EC_CHECK(bound > 0);
  // The lowest 2^64 mod bound numbers are thrown again; without them every result is as likely.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next();
    if (value >= threshold) return value % bound;
  }
}

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using Task = std::function<void()>;

// One thread and its queue. Delayed tasks join the queue when they are due.
class LaneThread {
 public:
  explicit LaneThread(const char* name) : thread_([this] { run(); }) {
    pthread_setname_np(thread_.native_handle(), name);
  }

  // Runs what is queued, drops what is delayed. A task may still schedule more while this waits.
  void stop() EC_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  void schedule(Task task) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ready_.push_back(std::move(task));
    wake_.notify_one();
  }

  void schedule_at(SteadyTime due, Task task) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    delayed_.emplace(due, std::move(task));
    wake_.notify_one();
  }

 private:
  void run() EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (;;) {
      const SteadyTime now = std::chrono::steady_clock::now();
      while (!delayed_.empty() && delayed_.begin()->first <= now) {
        ready_.push_back(std::move(delayed_.begin()->second));
        delayed_.erase(delayed_.begin());
      }
      if (!ready_.empty()) {
        Task task = std::move(ready_.front());
        ready_.pop_front();
        lock.unlock();
        task();
        task = nullptr;  // what it holds goes before the lock comes back
        has_run_ = true;
        lock.lock();
      } else if (stopping_) {
        return;
      } else if (std::exchange(has_run_, false)) {
        lock.unlock();
        wipe_stack();
        lock.lock();
      } else if (delayed_.empty()) {
        wake_.wait(mutex_);
      } else {
        const auto rest = delayed_.begin()->first - now;
        wake_.wait_for(mutex_, std::chrono::nanoseconds(rest).count());
      }
    }
  }

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> ready_ EC_GUARDED_BY(mutex_);
  std::multimap<SteadyTime, Task> delayed_ EC_GUARDED_BY(mutex_);
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool has_run_ = false;  // the thread's: since its stack was wiped
  std::thread thread_;    // last: it uses all the others
};

class ThreadExecutor final : public Executor {
 public:
  // The flush lane first: its last tasks may hand work to the other one.
  ~ThreadExecutor() override {
    flush_.stop();
    compaction_.stop();
  }

  void schedule(Lane lane, Task task) override { thread_of(lane).schedule(std::move(task)); }

  void schedule_after(Lane lane, std::int64_t delay_ns, Task task) override {
    if (delay_ns <= 0) return schedule(lane, std::move(task));
    thread_of(lane).schedule_at(
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(delay_ns), std::move(task));
  }

  bool run_one() override { return false; }

 private:
  LaneThread& thread_of(Lane lane) { return lane == Lane::Flush ? flush_ : compaction_; }

  LaneThread flush_{"ec-flush"};
  LaneThread compaction_{"ec-compaction"};
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor() {
  return std::make_unique<ThreadExecutor>();
}

}  // namespace edgecase
