#include "influxql/units.h"

#include <algorithm>

namespace edgecase::influxql {
namespace {

int rank_of(const NameKind& kind) {
  if (kind.is_tag) return 5;
  switch (kind.kind) {
    case Cell::Kind::Float: return 1;
    case Cell::Kind::Integer: return 2;
    case Cell::Kind::Text: return 3;
    case Cell::Kind::Bool: return 4;
    default: return 6;
  }
}

}  // namespace

void NameKind::merge(const NameKind& other) {
  if (rank_of(other) < rank_of(*this)) *this = other;
}

std::string_view tag_of(const UnitKey& key, std::string_view tag) {
  const auto at =
      std::lower_bound(key.tags.begin(), key.tags.end(), tag,
                       [](const auto& each, std::string_view b) { return each.first < b; });
  return at != key.tags.end() && at->first == tag ? std::string_view(at->second)
                                                  : std::string_view();
}

void append_key_part(std::string_view part, std::string& key) {
  for (const char c : part) {
    key += c;
    if (c == '\0') key += '\xff';
  }
  key += '\0';
  key += '\1';
}

void set_tags(const Choice& choice, const UnitKey& key, std::vector<Cell>& cells) {
  cells.resize(choice.columns.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Column& column = choice.columns[i];
    cells[i].kind = Cell::Kind::Null;
    if (!column.is_tag) continue;
    cells[i].text = column.is_condition && column.name == "_name" ? std::string_view(key.name)
                                                                  : tag_of(key, column.name);
    if (column.is_condition || !cells[i].text.empty()) cells[i].kind = Cell::Kind::Text;
  }
}

bool may_hold(const Choice& choice, const UnitKey& key) {
  if (!choice.where) return true;
  std::vector<Cell> cells;
  set_tags(choice, key, cells);
  std::vector<char> known(cells.size());
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = choice.columns[i].is_tag ? 1 : 0;
  return choice.where->may_hold(cells, known);
}

}  // namespace edgecase::influxql
