#include "auth/authorize.h"

namespace edgecase::auth {

Result<AuthorizedBatch> authorize_write(const Principal& principal,
                                        const wire::ReadingBatch& batch) {
  if (principal.kind != PrincipalKind::Internal) {
    for (const wire::Reading& reading : batch.readings) {
      if (!reading.namespace_name.starts_with('_')) continue;
      return not_allowed("namespace " + std::string(reading.namespace_name) +
                         ": names that begin with _ are the store's own");
    }
  }
  return AuthorizedBatch(principal, batch);
}

Status authorize_read(const Principal&, std::string_view namespace_name) {
  if (namespace_name.starts_with('_') && namespace_name != wire::kRejectedNamespace) {
    return not_allowed("namespace " + std::string(namespace_name) +
                       ": names that begin with _ are the store's own");
  }
  return ok();
}

Status authorize_administration(const Principal& principal) {
  if (principal.kind == PrincipalKind::LocalSocket || principal.kind == PrincipalKind::Loopback ||
      principal.kind == PrincipalKind::Internal) {
    return ok();
  }
  return not_allowed("a namespace is dropped from this machine only");
}

}  // namespace edgecase::auth
