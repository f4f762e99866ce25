// The page at / and its files at /page/, which are in the program (page_files()). They need no
// token and tell nothing of what is stored: the page asks for its data like anybody else, and for
// nothing elsewhere.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "http/http_routes.h"
#include "http/request_head.h"
#include "http/request_reader.h"
#include "wire/contract.h"

namespace edgecase::http {
namespace {

// What inflating takes at once, before it gives back what it did not fill.
constexpr std::size_t kInflateSpareBytes = 1u << 20;

constexpr std::string_view kStartFile = "index.html";

// No script but its own files, no style but the one in index.html; names from outside can not even
// become markup by mistake.
std::string page_policy() {
  std::string policy = "default-src 'none'; script-src 'self'; style-src '";
  policy.append(page_style_hash());
  return policy +
         "'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
}

struct FileKind {
  std::string_view suffix;
  const char* type;
};
constexpr FileKind kFileKinds[] = {{".html", "text/html; charset=utf-8"},
                                   {".js", "text/javascript; charset=utf-8"},
                                   {".svg", "image/svg+xml"}};

const char* media_type_of(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFileKinds), std::end(kFileKinds),
                   [name](const FileKind& kind) { return name.ends_with(kind.suffix); });
  return found == std::end(kFileKinds) ? "application/octet-stream" : found->type;
}

void answer_file(Call& call, std::string_view name) {
  const std::span<const PageFile> files = page_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [name](const PageFile& each) { return each.name == name; });
  if (file == files.end()) {
    return call.answer_error(not_found("the page has no file " + std::string(name)));
  }
  const std::string tag = "W/\"" + std::string(file->hash) + "\"";
  Response& response = call.response;
  response.set_header("Content-Security-Policy", page_policy());
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  // Asked for again each time, and mostly answered by 304: a newer daemon has a newer page.
  response.set_header("Cache-Control", "no-cache");
  response.set_header("ETag", tag);
  response.set_header("Vary", "Accept-Encoding");
  if (call.request.if_none_match.find(tag) != std::string::npos) {
    response.status = 304;
    return;
  }
  const std::string_view gzip(reinterpret_cast<const char*>(file->gzip), file->gzip_bytes);
  std::string body;
  if (call.request.accepts.gzip > 0) {
    response.set_header("Content-Encoding", "gzip");
    body = gzip;
  } else {
    net::ByteBudget budget(file->bytes + kInflateSpareBytes);
    net::BudgetShare share(budget);
    const Refusal refusal = inflate_body(gzip, wire::Coding::Gzip, file->bytes, share, body);
    if (!refusal.status.ok()) return call.answer_error(refusal.status);
  }
  call.answer_text(200, media_type_of(name), std::move(body));
}

}  // namespace

void get_page(HttpContext& /*context*/, Call& call) {
  answer_file(call, kStartFile);
}

void get_page_file(HttpContext& /*context*/, Call& call) {
  answer_file(call,
              std::string_view(call.request.path).substr(fixed_part(call.route->path).size()));
}

}  // namespace edgecase::http
