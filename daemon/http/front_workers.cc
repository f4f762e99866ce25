// The workers of the front: from a complete request to the answer that has left, or is left to the
// poller.
#include <sys/socket.h>

#include <exception>
#include <utility>

#include "http/http_front.h"

namespace edgecase::http {

void Front::work() {
  while (true) {
    Connection* connection = nullptr;
    {
      std::unique_lock lock(mutex_);
      queued_.wait(lock, [this] { return !queue_.empty() || workers_end_; });
      if (queue_.empty()) return;
      connection = queue_.front();
      queue_.pop_front();
    }
    serve(*connection);
  }
}

void Front::serve(Connection& connection) {
  if (std::exchange(connection.answered, false)) return finish(connection);
  bool complete = false;
  HeldAnswer held{&connection, {}, {}};
  {
    ReceivedRequest request = connection.reader.take();
    try {
      complete = answer(connection, request, held.settle);
    } catch (const std::exception&) {
      complete = false;  // out of memory outside the router: the client sees a cut connection
    }
    if (held.settle) held.target = std::move(request.head.target);
  }
  if (!complete) {
    // A reset, so that no client takes half an answer for a whole one.
    const linger reset{1, 0};
    setsockopt(connection.channel->descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return await(connection, Stage::Cut);
  }
  if (held.settle) return hold(std::move(held));
  finish(connection);
}

// Has the answer wait. Where no worker settles what is held, this one does, until nothing is.
void Front::hold(HeldAnswer answer) {
  std::vector<HeldAnswer> group;
  {
    const std::lock_guard lock(held_mutex_);
    held_.push_back(std::move(answer));
    if (std::exchange(settling_, true)) return;
    group.swap(held_);
  }
  while (true) {
    settle_all(group);
    std::vector<HeldAnswer> next;
    {
      const std::lock_guard lock(held_mutex_);
      next.swap(held_);
      settling_ = !next.empty();
    }
    if (next.empty()) break;
    // The next sync begins now; the others send what this one made durable.
    {
      const std::lock_guard lock(mutex_);
      for (const HeldAnswer& each : group) {
        each.connection->answered = true;
        queue_.push_front(each.connection);
      }
    }
    queued_.notify_all();
    group = std::move(next);
  }
  for (const HeldAnswer& each : group) finish(*each.connection);
}

void Front::settle_all(std::vector<HeldAnswer>& group) {
  // The newest first: the others have nothing left to wait for.
  for (auto each = group.rbegin(); each != group.rend(); ++each) {
    const Status settled = each->settle();
    if (settled.ok()) continue;
    Connection& connection = *each->connection;
    refused_.fetch_add(1, std::memory_order_relaxed);
    connection.output = refusal_text(each->target, {503, settled});
    connection.close_after_output = true;
  }
}

// Sends the answer, and goes on with the connection.
void Front::finish(Connection& connection) {
  net::Channel& channel = *connection.channel;
  switch (send_output(channel, connection.output)) {
    case net::Outcome::Closed:
    case net::Outcome::Failed: return await(connection, Stage::Cut);
    case net::Outcome::Blocked: return await(connection, Stage::Flushing);
    case net::Outcome::Done: break;
  }
  if (connection.close_after_output) {
    channel.finish();
    return await(connection, Stage::Draining);
  }
  switch (connection.reader.next()) {
    case RequestReader::Progress::NeedMore: return await(connection, Stage::Reading);
    case RequestReader::Progress::Complete: return enqueue(connection);
    case RequestReader::Progress::Refused: break;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  connection.output = refusal_text(connection.reader.target(), connection.reader.refusal());
  connection.close_after_output = true;
  await(connection, Stage::Flushing);
}

// False: cut the connection.
bool Front::answer(Connection& connection, ReceivedRequest& request,
                   std::function<Status()>& settle) {
  connection.close_after_output = !request.head.keep_alive || stopping_;
  if (request.head.coding != ContentCoding::Identity) {
    std::string decoded;
    const Refusal refusal =
        inflate_body(request.body, request.head.coding,
                     static_cast<std::size_t>(options_.body_limit_bytes), request.share, decoded);
    if (refusal.http_status != 0) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      connection.output += refusal_text(request.head.target, refusal);
      connection.close_after_output = true;
      return true;
    }
    request.share.shrink(request.body.size());
    request.body = std::move(decoded);
  }
  ReplayStream stream(Router::replayed_line(request.head), *connection.channel, connection.output,
                      options_.write_grace_ns, connection.principal);
  Exchange exchange{request.head,
                    request.body,
                    connection.principal,
                    stream,
                    net::BudgetShare(long_answers_),
                    !connection.close_after_output,
                    {}};
  // Of what is held nothing may be sent: head and body must fit into what is kept.
  if (connection.output.empty()) exchange.held_max_bytes = kOutputKeptBytes / 2;
  const bool complete = router_.answer(exchange);
  settle = std::move(exchange.settle);
  return complete;
}

}  // namespace edgecase::http
