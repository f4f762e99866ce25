// QueryService::find(): series by words, for people who type and look. It is asked with each
// letter, so that little is done of a series that does not match.
#include <algorithm>
#include <set>

#include "query/query_service.h"
#include "wire/names.h"

namespace edgecase::query {
namespace {

// Whether to go on is asked once for so many names.
constexpr std::size_t kNamesBetween = 1'024;

void append_lower(std::string_view text, std::string& out) {
  const std::size_t begin = out.size();
  out += text;
  std::transform(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                 out.begin() + static_cast<std::ptrdiff_t>(begin), [](char c) {
                   return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
                 });
}

struct Word {
  std::string text;  // in lower case
  bool may_be_tag = false;
  std::set<catalog::DeviceName> labelled;  // devices of which it is a label
};

Result<Word> word_of(const catalog::DeviceIndex* devices, const FindRequest& request,
                     const std::string& text) {
  Word word;
  append_lower(text, word.text);
  const std::size_t equals = text.find('=');
  word.may_be_tag = equals != std::string::npos;
  if (devices == nullptr || equals == 0 || !word.may_be_tag || equals + 1 == text.size())
    return word;
  catalog::DeviceFilter filter;
  filter.labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                      devices->find(request.namespace_name, filter));
  word.labelled = {names.begin(), names.end()};
  return word;
}

// One series after another, in the same memory.
class Names {
 public:
  explicit Names(const catalog::Catalog& catalog) : catalog_(catalog) {}

  bool read(catalog::SeriesRow row) {
    row_ = row;
    text_.clear();
    if (!catalog_.read_names(row, namespace_name_, device_, sensor_)) return false;
    for (const std::string* name : {&namespace_name_, &device_, &sensor_}) {
      append_lower(*name, text_);
      text_ += '/';
    }
    return true;
  }

  bool hold(const Word& word) const {
    if (text_.find(word.text) != std::string::npos) return true;
    if (!word.labelled.empty() && word.labelled.contains({namespace_name_, device_})) return true;
    return word.may_be_tag && has_tag(word.text);
  }

  const std::string& namespace_name() const { return namespace_name_; }
  const std::string& device() const { return device_; }
  const std::string& sensor() const { return sensor_; }

 private:
  // The tag by which a device is named does not stand in the sensor's name.
  bool has_tag(const std::string& word) const {
    const auto entry = catalog_.series_at(row_);
    if (!entry.ok() || entry->identity.empty()) return false;
    const auto identity = wire::decode_identity(ByteView(entry->identity));
    if (!identity.ok()) return false;
    return std::any_of(identity->tags.begin(), identity->tags.end(), [&word](const auto& tag) {
      std::string text;
      append_lower(tag.first + '=' + tag.second, text);
      return text.find(word) != std::string::npos;
    });
  }

  const catalog::Catalog& catalog_;
  catalog::SeriesRow row_ = 0;
  std::string namespace_name_, device_, sensor_, text_;
};

}  // namespace

Result<FoundSeries> QueryService::find(const auth::Principal& principal, const FindRequest& request,
                                       Reach* reach) const {
  const wire::Selector all;
  EC_TRY(auth::authorize(auth::Operation::Read, principal, request.namespace_name, all));
  EC_ASSIGN_OR_RETURN(const std::string read_for, auth::purpose_of(principal, request.purpose));
  if (!request.namespace_name.empty() && !catalog_.has_namespace(request.namespace_name) &&
      request.namespace_name != wire::kDefaultNamespace) {
    return not_found("no namespace " + request.namespace_name);
  }
  std::vector<Word> words;
  for (const std::string& text : request.words) {
    EC_ASSIGN_OR_RETURN(Word word, word_of(devices_, request, text));
    words.push_back(std::move(word));
  }
  const auto is_given = [&](const Names& names) {
    return auth::allows(auth::Operation::Read, principal, names.namespace_name(), names.device(),
                        names.sensor()) &&
           (devices_ == nullptr ||
            devices_->check_purpose(names.namespace_name(), names.device(), read_for).ok());
  };
  Patience* const patience = reach == nullptr ? nullptr : reach->patience;
  const Rows rows = catalog_.select_rows(request.namespace_name, all);
  FoundSeries found;
  Names names(catalog_);
  std::size_t to_pass = request.offset;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kNamesBetween == 0 && patience != nullptr) EC_TRY(patience->go_on());
    if (!names.read(rows[i])) continue;
    const bool is_meant =
        std::all_of(words.begin(), words.end(), [&](const Word& word) { return names.hold(word); });
    if (!is_meant || !is_given(names)) continue;
    if (to_pass > 0) {
      --to_pass;
      continue;
    }
    found.has_more = found.series.size() == request.limit;
    if (found.has_more) break;
    if (reach != nullptr) reach->add(names.namespace_name(), names.device());
    found.series.push_back({names.namespace_name(), names.device(), names.sensor()});
  }
  return found;
}

}  // namespace edgecase::query
