// The table of routes: all that the HTTP face offers, each once. The router is filled from it, a
// request finds its lane in it, the audit log what to call it, and /api/v1/openapi.json is made of
// it (openapi.cc). Constant; any thread.
//
// To add a route: its handler in http_routes.h, its row in route_table.cc, and an example in
// tests/flow/openapi_flow_test.py if it cannot be called with the table's own.
#pragma once

#include <span>
#include <string_view>

#include "edgecase/status.h"
#include "http/lanes.h"
#include "http/request_head.h"
#include "http/site_check.h"

namespace edgecase::http {

struct HttpContext;
struct Call;

// Whether a route is there for whoever can connect.
enum class Access : unsigned char { Authenticated, Open };

// What the audit log says of a request besides that it was denied.
enum class AuditKind : unsigned char {
  Ingest,  // nothing here: the pipeline does
  Read,
  Change,  // two records: that it begins, and what became of it
  Free,    // nothing: it tells of nobody
};

struct Audited {
  std::string_view operation;  // its name in the log
  AuditKind kind = AuditKind::Free;
};

struct RouteBody {
  std::string_view types;    // media types, the example's first; "": a body means nothing
  std::string_view example;  // of one
};

struct Route {
  std::string_view method = "GET";
  // As it is, or to its first {NAME}: what begins so. A GET route answers HEAD, too.
  std::string_view path;
  Effect effect = Effect::Reads;
  Access access = Access::Authenticated;
  Lane lane = effect == Effect::Changes ? Lane::Changes : Lane::Reads;
  Audited audit = {};
  std::string_view scope = {};  // that a token needs; "": any token will do
  // Names, with ! those that are needed; of several that mean something else, with @ and which. A *
  // at the end: others are ignored. Else an unknown one is refused: misspelt, it would silently ask
  // for something else. What each means: openapi.cc.
  std::string_view parameters = {};
  RouteBody body = {};
  std::string_view gives = {};     // answers besides errors: "200 TYPE TYPE|202 TYPE"
  std::string_view refusals = {};  // statuses besides those that any route may answer with
  std::string_view says = {};      // what it does, in a sentence
  void (*handler)(HttpContext&, Call&) = nullptr;
};

std::span<const Route> route_table();

// Null: there is none. HEAD is GET.
const Route* find_route(std::string_view method, std::string_view path);

// The part of a path before its first {NAME}.
std::string_view fixed_part(std::string_view path);

// InvalidArgument names one that the route does not know.
Status check_parameters(const Route& route, const Parameters& parameters);

// Takes the next word off a list with single spaces, or whatever `separator` is; "" at its end.
std::string_view next_word(std::string_view& list, char separator = ' ');

}  // namespace edgecase::http
