// `edgecase series` and `edgecase devices`: what is stored.
#pragma once

#include <string>

#include "connection.h"
#include "device_filter.h"
#include "time_arguments.h"

namespace edgecase::cli {

enum class ListingKind : unsigned char { Series, Devices };

struct ListingArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string selector = "*/*";
  bool json = false;
  Zone zone;
  DeviceFilterArguments filter;  // of devices
};

// Prints the list; returns the exit code.
int run_listing(const ListingArguments& arguments, ListingKind kind);

}  // namespace edgecase::cli
