// Requests of InfluxQL statements, as /query and /api/v2/query take them: parsed, planned one after
// another, then answered as the reader takes it. What is not done here is an error, never a yes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/status.h"
#include "http/http_routes.h"
#include "influxql/executor.h"
#include "influxql/formula.h"
#include "influxql/points.h"
#include "influxql/statement.h"
#include "query/query_service.h"
#include "wire/json_text.h"

namespace edgecase::http {

// Rows of InfluxQL as InfluxDB 1.x writes them: JSON or CSV, as one document or in chunks of rows.
// One thread.

// How a request wants its answer.
struct InfluxShape {
  bool is_csv = false;
  bool is_pretty = false;
  std::int64_t epoch_ns = 0;   // times are counts of this unit; 0: RFC 3339, and in CSV nanoseconds
  std::size_t chunk_rows = 0;  // 0: not in chunks
};

// Calls come in this order, for each statement: (begin_series row* end_series)* end_statement; then
// end. Each appends to `out`.
class InfluxText {
 public:
  virtual ~InfluxText() = default;
  virtual void begin_series(std::size_t statement, const influxql::SeriesHead& head,
                            std::string& out) = 0;
  // `zone` says in which offset times are told.
  virtual void row(const std::vector<influxql::Cell>& cells, const influxql::RowSource& zone,
                   std::string& out) = 0;
  // The same of the rows from `first` to before `last`.
  virtual void rows(const influxql::NumberRows& rows, std::size_t first, std::size_t last,
                    const influxql::RowSource& zone, std::string& out) = 0;
  // `goes_on`: more rows of this series come; `more`: more of this statement.
  virtual void end_series(bool goes_on, bool more, std::string& out) = 0;
  // What went wrong, and what is said beside; empty: nothing.
  virtual void end_statement(std::size_t statement, std::string_view error, std::string_view notice,
                             std::string& out) = 0;
  virtual void end(std::string& out) = 0;
};

std::unique_ptr<InfluxText> make_influx_text(const InfluxShape& shape);

// As Go's encoding/json prints it: the shortest digits that read back equal, with an exponent below
// 1e-6 and from 1e21 on. JSON has no word for what is no number: null.
void append_go_number(double value, std::string& out);
// The same without an exponent, as Go's FormatFloat(…, 'f', -1, 64).
void append_plain_number(double value, std::string& out);
// RFC 3339 with as many digits of the second as it needs, `offset_s` seconds east of UTC.
void append_go_time(std::int64_t time_ns, std::int64_t offset_s, std::string& out);

inline constexpr std::size_t kInfluxQueryMaxBytes = 64u << 10;
// A form with statements and their parameters, each byte of both as `%00`, and what is short.
inline constexpr std::size_t kInfluxFormMaxBytes = 7 * kInfluxQueryMaxBytes;

struct InfluxQuestion {
  std::string text;
  std::string database;  // what statements without ON speak of
  std::string policy;    // the same of measurements without one; empty: autogen
  std::string purpose;   // what is read for it
  influxql::Parameters parameters = {};
  InfluxShape shape = {};
};

// A body of this type is the statements themselves.
inline constexpr std::string_view kInfluxQlType = "application/vnd.influxql";

// What `$name` stands for: the members of a JSON object. InvalidArgument: it is none.
Result<influxql::Parameters> bound_parameters(const wire::Json& json);

// What the parameters of a request, a form in its body and its Accept say of the answer.
Result<InfluxShape> influx_shape_of(const Call& call);

// Answers {"results":[{"statement_id":0,…},…]}, or CSV. A statement that fails has its error in its
// result, and those behind it are not executed. Names and readings that the principal may not see
// are left out. 400: the text is no such list of statements, or none of them is offered; then
// nothing was done.
void answer_influx_question(HttpContext& context, Call& call, const InfluxQuestion& question);

// The answer to a request of InfluxQL statements that were planned: the rows of one after another,
// written as the reader takes them. One that fails has its error in its result, and those behind it
// are not executed. One thread.

// A statement that was planned, or done.
struct PlannedStatement {
  Status status;                              // why it was not
  std::unique_ptr<influxql::RowSource> rows;  // null: it has none
};

class InfluxAnswer final : public PieceSource {
 public:
  // `asked` is what the statements were planned with; they go before it does. `query` is asked
  // while they are answered.
  InfluxAnswer(std::vector<PlannedStatement> statements, std::shared_ptr<const void> asked,
               std::shared_ptr<Patience> query, const InfluxShape& shape)
      : asked_(std::move(asked)),
        query_(std::move(query)),
        statements_(std::move(statements)),
        chunk_rows_(shape.chunk_rows),
        text_(make_influx_text(shape)) {}

  Result<bool> fill(std::string& piece) override;
  void let_go() override;
  query::GivenReadings take_given() override;

 private:
  bool step(std::string& piece);
  void begin_statement(std::string& piece);
  void next_row(std::string& piece);
  Result<bool> next_rows(std::string& piece);
  void end_full_chunk(std::string& piece);
  void begin_series(std::string& piece);
  void end_statement(const Status& status, std::string& piece);

  influxql::RowSource& rows() const { return *statements_[statement_].rows; }

  const std::shared_ptr<const void> asked_;
  const std::shared_ptr<Patience> query_;
  std::vector<PlannedStatement> statements_;
  const std::size_t chunk_rows_;
  const std::unique_ptr<InfluxText> text_;
  std::size_t statement_ = 0;  // at hand, or the next one
  bool is_in_rows_ = false;    // of a series of it
  bool has_failed_ = false;
  query::GivenReadings given_;  // of a statement that ended in this piece
  influxql::SeriesHead head_;   // of the series at hand
  std::vector<influxql::Cell> row_;
  influxql::NumberRows many_;
  std::size_t next_of_many_ = 0;
  query::GivenReadings of_many_;  // what is left of it was made of those, and others since
  std::size_t rows_in_chunk_ = 0;
};

// Statements other than SELECT. SHOW (influx_show.cc) lists what is stored: measurements, series,
// tag keys and values, field keys, and how many there are of them; names that whoever asks may not
// read are left out. CREATE, ALTER, DROP and DELETE (influx_schema.cc) change what there is, each
// in the audit log as its command is (RecordedChange). One thread.

// Whether show_names() knows the verb.
bool is_listing(influxql::Verb verb);
// Looks through the catalog once, which tells `asking.reach` what devices the answer is about; what
// the names take meanwhile is let go of where `keeps` is false. `service` and the reach outlive the
// rows. NotFound: the database. Unsupported: a clause that is not obeyed here, by its name.
// InvalidArgument: a condition that is none.
Result<std::unique_ptr<influxql::RowSource>> show_names(influxql::Statement statement,
                                                        influxql::Asking asking,
                                                        query::QueryService& service, bool keeps);

// CREATE, ALTER, DROP and DELETE.
bool changes_schema(influxql::Verb verb);

// Does it, durably, in `database` where it names none. Answers what is to be said beside; empty:
// nothing, as in InfluxDB. Errors in InfluxDB's words where it has any; NotAllowed. What erases, or
// sets how long something is kept, needs a POST request.
Result<std::string> change_schema(HttpContext& context, Call& call,
                                  const influxql::Statement& statement,
                                  const std::string& database);

// As Go prints a duration, to the second, or below one to its largest unit: "1h0m5s", "12ms".
std::string go_duration(std::int64_t ns);
// How long a shard is that InfluxDB would choose for what is kept so long.
std::string shard_text(std::int64_t kept_ns);

// The names that a SHOW statement lists: in order, each once, however long the listing is. No more
// than kNamesHeldBytes of them are held: the catalog is looked through once for each so many. One
// thread.

inline constexpr std::size_t kNamesHeldBytes = 4u << 20;

// One name; `group` is the measurement where the answer has a series for each. A part that is not
// there is empty.
struct Name {
  std::string_view group, first, second;
};

class Names {
 public:
  using Take = std::function<void(const Name& name)>;
  // Looks through everything and hands over every name, in whatever order and as often as it comes.
  using Look = std::function<Status(const Take& take)>;

  explicit Names(Look look, std::size_t held_max_bytes = kNamesHeldBytes)
      : look_(std::move(look)), held_max_bytes_(held_max_bytes) {}

  // The next name, valid until the next call; it stays the next one until pop(). False: there are
  // no more.
  Result<bool> peek(Name& name);
  void pop();
  // Forgets what is held: peek() looks anew, for what comes behind the name that was popped last.
  void drop();

 private:
  // Where in text_ its three parts lie, one behind another.
  struct Held {
    std::uint32_t at = 0, size = 0;
    std::uint16_t group = 0, first = 0;
  };
  static constexpr std::size_t kRecentMax = 1024;

  Status look_through();
  void take(const Name& name);
  void sort();
  void shrink();
  Name name_of(const Held& held) const;
  std::size_t held_bytes() const { return text_.size() + names_.size() * sizeof(Held); }

  const Look look_;
  const std::size_t held_max_bytes_;
  std::string text_;
  std::vector<Held> names_;            // in order once a look has ended
  std::vector<std::uint32_t> recent_;  // numbers of names_, from 1, by hash: most come again soon
  std::size_t next_ = 0;               // of names_
  bool has_looked_ = false;
  bool is_all_ = false;  // no others come behind them
  // What a look leaves out: names up to the one that was popped last, and from the first one on
  // that it had no room for.
  struct Bound {
    bool is_there = false;
    std::string group, first, second;

    void set(const Name& name) {
      *this = {true, std::string(name.group), std::string(name.first), std::string(name.second)};
    }
    Name name() const { return {group, first, second}; }
  };
  Bound last_, beyond_;
};

// Which names WITH KEY and WITH MEASUREMENT take.
class NameFilter {
 public:
  static Result<NameFilter> make(const influxql::NameMatch& match) {
    NameFilter made;
    made.match_ = match;
    const bool is_pattern =
        match.op == influxql::Operator::Matches || match.op == influxql::Operator::NotMatches;
    if (is_pattern) {
      EC_ASSIGN_OR_RETURN(made.pattern_, influxql::Pattern::compile(match.regex));
    }
    return made;
  }
  bool takes(std::string_view name) const {
    if (match_.op == influxql::Operator::None) return true;
    const bool is_wanted =
        match_.op == influxql::Operator::Equal || match_.op == influxql::Operator::Matches;
    const bool is_found =
        pattern_ ? pattern_->matches(name)
                 : std::find(match_.names.begin(), match_.names.end(), name) != match_.names.end();
    return is_found == is_wanted;
  }

 private:
  influxql::NameMatch match_;
  std::optional<influxql::Pattern> pattern_;
};

}  // namespace edgecase::http
