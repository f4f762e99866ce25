// Memory of one's own is what zstd calls experimental; every version since 1.3 has had it.
#define ZSTD_STATIC_LINKING_ONLY
#include "wire/encoding.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace edgecase::wire {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (std::uint8_t& digit : digits) digit = kNoDigit;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

}  // namespace

void append_base64(std::string_view bytes, std::string& out) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < taken ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(j <= taken ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=');
    }
  }
}

void Base64Encoder::append(std::string_view piece, std::string& out) {
  if (kept_bytes_ > 0) {
    while (kept_bytes_ < kept_.size() && !piece.empty()) {
      kept_[kept_bytes_++] = piece.front();
      piece.remove_prefix(1);
    }
    if (kept_bytes_ < kept_.size()) return;
    finish(out);
  }
  const std::size_t whole = piece.size() - piece.size() % kept_.size();
  append_base64(piece.substr(0, whole), out);
  kept_bytes_ = piece.copy(kept_.data(), kept_.size(), whole);
}

void Base64Encoder::finish(std::string& out) {
  append_base64({kept_.data(), std::exchange(kept_bytes_, 0)}, out);
}

Result<std::string> decode_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t size, decode_base64(text, bytes.data()));
  bytes.resize(size);
  return bytes;
}

Result<std::size_t> decode_base64(std::string_view text, char* out) {
  if (text.size() % 4 != 0) return invalid_argument("base64 length is not a multiple of 4");
  char* at = out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::size_t digits = 4;
    if (i + 4 == text.size()) {
      if (text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    }
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::uint8_t digit = j < digits ? kDigits[static_cast<unsigned char>(text[i + j])] : 0;
      if (digit == kNoDigit) {
        return invalid_argument("base64 holds a wrong character at position " +
                                std::to_string(i + j));
      }
      bits = bits << 6 | digit;
    }
    if ((digits == 2 && (bits & 0xffff) != 0) || (digits == 3 && (bits & 0xff) != 0)) {
      return invalid_argument("base64 ends in bits that stand for nothing");
    }
    for (std::size_t j = 0; j + 1 < digits; ++j) {
      *at++ = static_cast<char>(bits >> (16 - 8 * j) & 0xff);
    }
  }
  return static_cast<std::size_t>(at - out);
}

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain = 0;  // begin of what needs no escape
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      default:
        out.append("\\u00");
        out.push_back(kHex[c >> 4]);
        out.push_back(kHex[c & 15]);
    }
  }
  out.append(text.substr(plain));
}

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  append_json_escaped(text, out);
  out.push_back('"');
}

std::string percent_encode(std::string_view text) {
  constexpr char kHexDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain) {
      out += c;
    } else {
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (is_code) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

namespace {

// A board packs three times as fast with it as with zlib's own, and a tenth larger.
constexpr int kGzipLevel = 1;
// Higher for what is packed as a whole: it goes over a link that may be paid for.
constexpr int kGzipOnceLevel = 4;
constexpr int kGzipWindowBits = 15 + 16;
constexpr int kGzipMemoryLevel = 8;
constexpr std::size_t kGzipHeadBytes = 18;  // head and end, more than zlib's own
// The portable builds have no higher one.
constexpr int kZstdLevel = 1;
constexpr int kZstdWindowLog = 15;  // as far back as gzip looks
constexpr std::size_t kStepBytes = 16u << 10;

bool begin_gzip(z_stream& stream, int level) {
  stream.zalloc = allocate_for_zlib;
  stream.zfree = give_back_for_codec;
  return deflateInit2(&stream, level, Z_DEFLATED, kGzipWindowBits, kGzipMemoryLevel,
                      Z_DEFAULT_STRATEGY) == Z_OK;
}

void take_in(std::string_view bytes, z_stream& stream) {
  // zlib does not write through next_in; its type is older than const.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

class GzipPacker final : public Packer {
 public:
  GzipPacker() : ready_(begin_gzip(stream_, kGzipLevel)) {}
  ~GzipPacker() override {
    if (ready_) deflateEnd(&stream_);
  }
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

  bool ready() const { return ready_; }

  bool pack(std::string_view piece, std::string& out) override {
    constexpr std::size_t kOnceMax = std::numeric_limits<uInt>::max();
    while (!piece.empty()) {
      const std::string_view now = piece.substr(0, kOnceMax);
      piece.remove_prefix(now.size());
      if (!run(now, Z_SYNC_FLUSH, out)) return false;
    }
    return true;
  }
  bool finish(std::string& out) override { return run({}, Z_FINISH, out); }

 private:
  bool run(std::string_view bytes, int flush, std::string& out) {
    take_in(bytes, stream_);
    std::array<char, kStepBytes> step;
    while (true) {
      stream_.next_out = reinterpret_cast<Bytef*>(step.data());
      stream_.avail_out = static_cast<uInt>(step.size());
      const int outcome = deflate(&stream_, flush);
      out.append(step.data(), step.size() - stream_.avail_out);
      if (outcome == Z_STREAM_END) return true;
      if (outcome != Z_OK && outcome != Z_BUF_ERROR) return false;
      // With room left, all that went in has come out.
      if (stream_.avail_out > 0) return flush != Z_FINISH;
    }
  }

  z_stream stream_{};
  const bool ready_;
};

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
using ZstdContext = std::unique_ptr<ZSTD_CCtx, FreeZstd>;

// Null: there is no memory for it.
ZstdContext begin_zstd() {
  ZstdContext context(ZSTD_createCCtx_advanced({allocate_for_zstd, give_back_for_codec, nullptr}));
  if (context != nullptr)
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kZstdLevel);
  return context;
}

class ZstdPacker final : public Packer {
 public:
  ZstdPacker() : context_(begin_zstd()) {
    if (ready()) ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, kZstdWindowLog);
  }

  bool ready() const { return context_ != nullptr; }
  bool pack(std::string_view piece, std::string& out) override {
    return piece.empty() || run(piece, ZSTD_e_flush, out);
  }
  bool finish(std::string& out) override { return run({}, ZSTD_e_end, out); }

 private:
  bool run(std::string_view bytes, ZSTD_EndDirective then, std::string& out) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::array<char, kStepBytes> step;
    std::size_t left = 1;
    while (left != 0) {
      ZSTD_outBuffer to{step.data(), step.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &to, &in, then);
      if (ZSTD_isError(left) != 0) return false;
      out.append(step.data(), to.pos);
    }
    return true;
  }

  const ZstdContext context_;
};

template <typename Kind>
std::unique_ptr<Packer> create_packer() {
  auto packer = std::make_unique<Kind>();
  if (!packer->ready()) return nullptr;
  return packer;
}

bool gzip_once(std::string_view bytes, char* to, std::size_t room, std::size_t& packed) {
  z_stream stream{};
  if (!begin_gzip(stream, kGzipOnceLevel)) return false;
  take_in(bytes, stream);
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(room);
  const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed = room - stream.avail_out;
  deflateEnd(&stream);
  return is_done;
}

bool zstd_once(std::string_view bytes, char* to, std::size_t room, std::size_t& packed) {
  const ZstdContext context = begin_zstd();
  if (context == nullptr) return false;
  packed = ZSTD_compress2(context.get(), to, room, bytes.data(), bytes.size());
  return ZSTD_isError(packed) == 0;
}

}  // namespace

std::string_view name_of(Coding coding) {
  switch (coding) {
    case Coding::Gzip: return "gzip";
    case Coding::Deflate: return "deflate";
    case Coding::Zstd: return "zstd";
    case Coding::Identity: break;
  }
  return "identity";
}

std::unique_ptr<Packer> Packer::create(Coding coding) {
  return coding == Coding::Zstd ? create_packer<ZstdPacker>() : create_packer<GzipPacker>();
}

bool pack_once(Coding coding, std::string_view bytes, std::string& out, std::size_t room) {
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2) return false;
  const std::size_t ample = coding == Coding::Zstd ? ZSTD_compressBound(bytes.size())
                                                   : compressBound(bytes.size()) + kGzipHeadBytes;
  const std::size_t begin = out.size();
  room = std::min(room, ample);
  out.resize(begin + room);
  std::size_t packed = 0;
  const bool is_done = coding == Coding::Zstd ? zstd_once(bytes, out.data() + begin, room, packed)
                                              : gzip_once(bytes, out.data() + begin, room, packed);
  out.resize(begin + (is_done ? packed : 0));
  return is_done;
}

}  // namespace edgecase::wire
