// `edgecase series` and `edgecase devices`: what is stored.
#pragma once

#include <string>
#include <vector>

#include "connection.h"

namespace edgecase::cli {

enum class ListingKind : unsigned char { Series, Devices };

struct ListingArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string selector = "*/*";
  bool json = false;
  // Of devices: what is said of them; empty ones are not looked at.
  std::string owner, purpose, objection;
  std::vector<std::string> labels;
};

// Prints the list; returns the exit code.
int run_listing(const ListingArguments& arguments, ListingKind kind);

}  // namespace edgecase::cli
