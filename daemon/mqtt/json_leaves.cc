#include "mqtt/json_leaves.h"

#include <nlohmann/json.hpp>

#include "wire/decimal.h"
#include "wire/json_text.h"

namespace edgecase::mqtt {
namespace {

// Receives the parser's events. Returning false stops it; `problem_` then says why.
class LeafReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  LeafReader(const JsonLimits& limits, wire::JsonText& text) : limits_(limits), text_(text) {}

  std::vector<JsonLeaf>& leaves() { return leaves_; }
  const std::string& problem() const { return problem_; }

  bool null() override {
    const auto odd = text_.next_null();
    if (!odd) return add(JsonKind::Null) != nullptr;
    const wire::OddValue value = wire::read_odd_value(*odd);
    switch (value.kind) {
      case wire::OddValue::Kind::Number: return number(value.number, std::string(*odd));
      case wire::OddValue::Kind::Bool: return boolean(value.boolean);
      case wire::OddValue::Kind::NoValue: return add(JsonKind::Null) != nullptr;
      case wire::OddValue::Kind::Bad: break;
    }
    if (levels_.empty()) return fail("not JSON: wrong at byte 1");
    JsonLeaf* leaf = add(JsonKind::Refused);
    if (leaf != nullptr) leaf->text = std::string(*odd);
    return leaf != nullptr;
  }
  bool boolean(bool value) override {
    JsonLeaf* leaf = add(JsonKind::Bool);
    if (leaf != nullptr) leaf->boolean = value;
    return leaf != nullptr;
  }
  // Negative integers, and `-0`, whose sign no integer keeps.
  bool number_integer(number_integer_t value) override {
    if (value == 0) return number(-0.0, "-0");
    return number(static_cast<double>(value), std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    wire::read_number(digits, value);  // the library reads by the locale
    return number(value, digits);
  }
  bool string(string_t& value) override {
    JsonLeaf* leaf = add(JsonKind::Text);
    if (leaf == nullptr) return false;
    if (const auto long_text = text_.next_string()) {
      if (!wire::is_json_string(*long_text)) return fail("not JSON: a long text is none");
      leaf->long_text = *long_text;
    } else {
      leaf->text = std::move(value);
    }
    return true;
  }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return enter(false); }
  bool start_array(std::size_t) override { return enter(true); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    static_cast<void>(text_.next_string());  // none is long where JSON is whole
    path_.resize(levels_.back().path_bytes);
    path_ += '/';
    for (const char c : name) {
      if (c == '~') {
        path_ += "~0";
      } else if (c == '/') {
        path_ += "~1";
      } else {
        path_ += c;
      }
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const bool number = error.id == 406;
    return fail((number ? "JSON number beyond float64 at byte " : "not JSON: wrong at byte ") +
                std::to_string(text_.in_document(position)));
  }

 private:
  struct Level {
    std::size_t path_bytes = 0;
    bool is_array = false;
    std::size_t index = 0;
  };

  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  // An array's elements have no key event: their index is put on the path here.
  void step() {
    if (levels_.empty() || !levels_.back().is_array) return;
    Level& level = levels_.back();
    path_.resize(level.path_bytes);
    path_ += '/';
    path_ += std::to_string(level.index++);
  }
  bool enter(bool is_array) {
    step();
    if (levels_.size() >= limits_.depth) {
      return fail("JSON is nested over limits.json-depth = " + std::to_string(limits_.depth));
    }
    levels_.push_back({path_.size(), is_array, 0});
    return true;
  }
  bool leave() {
    path_.resize(levels_.back().path_bytes);
    levels_.pop_back();
    return true;
  }
  JsonLeaf* add(JsonKind kind) {
    step();
    if (leaves_.size() >= limits_.leaves) {
      fail("more values than limits.json-leaves = " + std::to_string(limits_.leaves));
      return nullptr;
    }
    JsonLeaf& leaf = leaves_.emplace_back();
    leaf.pointer = path_;
    leaf.kind = kind;
    return &leaf;
  }
  bool number(double value, std::string digits) {
    JsonLeaf* leaf = add(JsonKind::Number);
    if (leaf == nullptr) return false;
    leaf->number = value;
    leaf->text = std::move(digits);
    return true;
  }

  const JsonLimits limits_;
  wire::JsonText& text_;
  std::string path_;
  std::vector<Level> levels_;
  std::vector<JsonLeaf> leaves_;
  std::string problem_;
};

}  // namespace

Result<std::vector<JsonLeaf>> read_json_leaves(std::string_view text, const JsonLimits& limits) {
  wire::JsonText document(text);
  LeafReader reader(limits, document);
  if (wire::parse_json(document, reader)) return std::move(reader.leaves());
  wire::JsonText tolerant(text, wire::kLongJsonStringBytes, wire::OddValues::AsNull);
  if (!tolerant.has_odd_values()) return invalid_argument(reader.problem());
  LeafReader second(limits, tolerant);
  if (wire::parse_json(tolerant, second)) return std::move(second.leaves());
  return invalid_argument(second.problem());
}

Status check_json_pointer(std::string_view pointer) {
  if (pointer.size() < 2 || pointer[0] != '/') {
    return invalid_argument("a JSON pointer looks like \"/ts\" or \"/data/time\"");
  }
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] != '~') continue;
    if (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')) {
      return invalid_argument("`~` in a JSON pointer is written `~0`, `/` in a key `~1`");
    }
  }
  return ok();
}

bool lies_at_or_below(std::string_view root, std::string_view pointer) {
  return pointer.substr(0, root.size()) == root &&
         (pointer.size() == root.size() || pointer[root.size()] == '/');
}

std::string_view last_token(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  return slash == pointer.npos ? pointer : pointer.substr(slash + 1);
}

std::string name_below(std::string_view root, std::string_view pointer) {
  std::string_view rest = pointer.substr(root.size());
  if (!rest.empty()) rest.remove_prefix(1);
  std::string name;
  name.reserve(rest.size());
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '/') {
      name += '.';
    } else if (rest[i] == '~' && i + 1 < rest.size()) {
      name += rest[++i] == '0' ? '~' : '.';
    } else {
      name += rest[i];
    }
  }
  return name;
}

}  // namespace edgecase::mqtt
