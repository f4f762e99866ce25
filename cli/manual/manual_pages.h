// The manual pages in roff, made of the declared commands and the table of settings: they cannot
// disagree with --help and `config example`.
#pragma once

#include <string>

#include "manual/command_tree.h"

namespace edgecase::cli {

std::string edgecase_page(const Command& root);   // edgecase(1)
std::string edgecased_page(const Command& root);  // edgecased(8)
std::string configuration_page();                 // edgecase.toml(5)

}  // namespace edgecase::cli
