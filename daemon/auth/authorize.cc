#include "auth/authorize.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace edgecase::auth {
namespace {

Status own_namespace(std::string_view name) {
  return not_allowed("namespace " + std::string(name) +
                     ": names that begin with _ are the store's own");
}

const std::vector<wire::Selector>& scope_of(const Scopes& scopes, Operation operation) {
  switch (operation) {
    case Operation::Read: return scopes.read;
    case Operation::Write: return scopes.write;
    case Operation::Export: return scopes.export_all;
    case Operation::Erase: break;
  }
  return scopes.erase;
}

const char* verb_of(Operation operation) {
  switch (operation) {
    case Operation::Read: return "read";
    case Operation::Write: return "write";
    case Operation::Export: return "export";
    case Operation::Erase: break;
  }
  return "erase";
}

bool holds_in(const Scopes& scopes, std::string_view namespace_name) {
  if (scopes.admin || scopes.namespace_name == namespace_name) return true;
  return scopes.namespace_name.empty() && !namespace_name.starts_with('_');
}

Status outside_scope(const Grant& grant, Operation operation, const std::string& what) {
  return not_allowed("token " + grant.token_id + " may not " + verb_of(operation) + " " + what);
}

}  // namespace

Status authorize_write(const Principal& principal, const wire::Reading& reading) {
  if (!wire::is_writable_namespace(reading.namespace_name) &&
      principal.kind != PrincipalKind::Internal) {
    return own_namespace(reading.namespace_name);
  }
  if (allows(Operation::Write, principal, reading.namespace_name, reading.device, reading.sensor)) {
    return ok();
  }
  return outside_scope(*principal.grant, Operation::Write,
                       std::string(reading.device) + "/" + std::string(reading.sensor) +
                           " in namespace " + std::string(reading.namespace_name));
}

Result<AuthorizedBatch> authorize_write(const Principal& principal,
                                        const wire::ReadingBatch& batch) {
  for (const wire::Reading& reading : batch.readings) {
    // Most batches have one namespace, and most who write have no token.
    if (!principal.grant && wire::is_writable_namespace(reading.namespace_name)) continue;
    EC_TRY(authorize_write(principal, reading));
  }
  return AuthorizedBatch(principal, batch);
}

Status authorize(Operation operation, const Principal& principal, std::string_view namespace_name,
                 const wire::Selector& selector) {
  if (!wire::is_readable_namespace(namespace_name) ||
      (operation == Operation::Write && !wire::is_writable_namespace(namespace_name))) {
    return own_namespace(namespace_name);
  }
  if (!principal.grant || principal.grant->scopes.admin) return ok();
  const Grant& grant = *principal.grant;
  const auto& scope = scope_of(grant.scopes, operation);
  if (scope.empty()) return outside_scope(grant, operation, "anything");
  if (!namespace_name.empty() && !holds_in(grant.scopes, namespace_name)) {
    return outside_scope(grant, operation, "in namespace " + std::string(namespace_name));
  }
  const bool is_inside = std::any_of(scope.begin(), scope.end(), [&](const wire::Selector& each) {
    return wire::globs_overlap(each.device, selector.device) &&
           wire::globs_overlap(each.sensor, selector.sensor);
  });
  if (is_inside) return ok();
  return outside_scope(grant, operation, selector.device + "/" + selector.sensor);
}

Result<wire::Selection> authorize(Operation operation, const Principal& principal,
                                  std::string_view namespace_name, wire::Selection selection,
                                  std::vector<wire::LeftSelector>& left) {
  std::vector<wire::LeftSelector> refused;
  std::erase_if(selection.selectors, [&](const wire::Selector& each) {
    Status status = authorize(operation, principal, namespace_name, each);
    if (status.ok()) return false;
    refused.push_back({each, std::move(status)});
    return true;
  });
  if (selection.selectors.empty()) return refused.front().why;
  left.insert(left.end(), std::make_move_iterator(refused.begin()),
              std::make_move_iterator(refused.end()));
  return selection;
}

bool allows(Operation operation, const Principal& principal, std::string_view namespace_name,
            std::string_view device, std::string_view sensor) {
  if (!principal.grant || principal.grant->scopes.admin) return true;
  const Scopes& scopes = principal.grant->scopes;
  const auto& scope = scope_of(scopes, operation);
  return holds_in(scopes, namespace_name) &&
         std::any_of(scope.begin(), scope.end(),
                     [&](const wire::Selector& each) { return each.matches(device, sensor); });
}

Result<std::string> purpose_of(const Principal& principal, std::string_view stated) {
  if (!principal.grant || principal.grant->scopes.purpose.empty()) return std::string(stated);
  const std::string& purpose = principal.grant->scopes.purpose;
  if (stated.empty() || stated == purpose) return purpose;
  return not_allowed("token " + principal.grant->token_id + " reads for the purpose " + purpose +
                     " only");
}

bool allows_namespace(const Principal& principal, std::string_view namespace_name) {
  return !principal.grant || holds_in(principal.grant->scopes, namespace_name);
}

Status authorize_status(const Principal& principal) {
  if (!principal.grant) return ok();
  const Scopes& scopes = principal.grant->scopes;
  if (scopes.admin || !scopes.read.empty() || !scopes.export_all.empty()) return ok();
  return outside_scope(*principal.grant, Operation::Read, "anything");
}

Status authorize_creation(const Principal& principal, std::string_view namespace_name) {
  if (!principal.grant) return ok();
  const Scopes& scopes = principal.grant->scopes;
  if (scopes.admin || (!scopes.write.empty() && holds_in(scopes, namespace_name))) return ok();
  return outside_scope(*principal.grant, Operation::Write,
                       "in namespace " + std::string(namespace_name));
}

Status authorize_administration(const Principal& principal) {
  if (principal.grant) {
    if (principal.grant->scopes.admin) return ok();
    return not_allowed("token " + principal.grant->token_id + " is no admin token");
  }
  if (principal.kind == PrincipalKind::LocalSocket || principal.kind == PrincipalKind::Loopback ||
      principal.kind == PrincipalKind::Internal) {
    return ok();
  }
  return not_allowed("this is done from this machine, or with an admin token");
}

}  // namespace edgecase::auth
