// How the daemon is, in words first, then in numbers: drives, clock, what waits, what was not stored.
import {fill, make, table} from "./dom.js";
import {forwardConcerns} from "./forward.js";
import {json} from "./server.js";
import {repeat} from "./trouble.js";
import {bytes, count, many, number, span, time} from "./words.js";

const refreshMs = 5000;
const fullShare = 0.9;

function concerns(status) {
  const list = [];
  const {clock, drives, wal, mqtt, rates, scrub, audit, eviction, expiry} = status;
  if (!status.ready) list.push(["bad", `Writes are not taken: ${status.reason}.`]);
  for (const [name, drive] of Object.entries(drives)) {
    if (drive.degraded) list.push(["bad", `The ${name} drive is degraded: ${drive.degraded}.`]);
    const used = 1 - drive.free_bytes / drive.total_bytes;
    if (drive.total_bytes && used > fullShare) {
      list.push([
        "warn",
        `The ${name} drive is ${Math.round(used * 100)} % full: shorten retention, or give it room.`,
      ]);
    }
  }
  if (!clock.trusted) {
    list.push([
      "warn",
      "The clock is not trusted: readings without a time wait for it, and retention does not run by it. " +
        "Let the board reach a time server, or set its clock.",
    ]);
  }
  if (clock.expiry_waits === "jump")
    list.push(["warn", "The clock leapt: what seems to expire by that is kept for a day."]);
  if (mqtt?.broker && !mqtt.connected) {
    list.push(["warn", `The MQTT broker is not reached: ${mqtt.last_error ?? "no reason is known"}.`]);
  }
  if (mqtt?.rejected > 0)
    list.push(["note", `${many(mqtt.rejected, "MQTT message")} fitted no rule since the start.`]);
  if (wal.limit_bytes && wal.bytes / wal.limit_bytes > fullShare) {
    list.push(["warn", "The write-ahead log is nearly full: the values drive does not keep up."]);
  }
  if (scrub.damaged_files > 0)
    list.push(["bad", `${many(scrub.damaged_files, "file")} on the drives are damaged: run edgecase check.`]);
  if (audit.failure || audit.head_failure)
    list.push(["bad", `The audit log fails: ${audit.failure ?? audit.head_failure}.`]);
  if (audit.lost > 0) list.push(["bad", `${many(audit.lost, "audit record")} were lost.`]);
  if (eviction.evictions > 0)
    list.push(["note", `${many(eviction.readings, "oldest reading")} went to make room.`]);
  if (rates.failed_batches > 0)
    list.push([
      "note",
      `${many(rates.failed_batches, "batch", "batches")} were refused or failed since the start.`,
    ]);
  if (expiry.waiting_bytes > 0)
    list.push(["note", `${bytes(expiry.waiting_bytes)} have expired and wait to be removed.`]);
  if (Array.isArray(status.forward)) list.push(...forwardConcerns(status.forward));
  return list;
}

export function verdict(status) {
  const list = concerns(status);
  const worst = ["bad", "warn"].find((level) => list.some((each) => each[0] === level));
  const first = list.find((each) => each[0] === worst);
  const sentence = first
    ? first[1]
    : `All is well: ${number(status.rates.readings_per_second, 3)} readings a second, up ${span(status.uptime_seconds)}.`;
  return {level: worst ?? "good", sentence, others: list.filter((each) => each !== first)};
}

function driveRow([name, drive]) {
  const used = drive.total_bytes ? 1 - drive.free_bytes / drive.total_bytes : null;
  return [
    name,
    drive.path,
    drive.file_system ?? "unknown",
    make(
      "span",
      {class: "share"},
      used === null
        ? "unknown"
        : [
            make("meter", {
              min: 0,
              max: 1,
              high: fullShare,
              value: used,
              "aria-label": `Used share of the ${name} drive`,
            }),
            ` ${bytes(drive.free_bytes)} free of ${bytes(drive.total_bytes)}`,
          ],
    ),
    [bytes(drive.live_bytes), "number"],
    [bytes(drive.bytes_written), "number"],
    drive.degraded ? [drive.degraded, "bad"] : ["healthy", "good"],
  ];
}

function lossRows({not_stored: lost}) {
  const names = {
    expired: "already expired when they came",
    replaced: "replaced by a later one of the same time",
    erased: "of what was erased",
    evicted: "made room",
    refused: "refused",
  };
  return Object.entries(names)
    .filter(([key]) => lost[key] > 0)
    .map(([key, words]) => [`Readings ${words}`, [count(lost[key]), "number"]]);
}

const facts = (caption, rows) =>
  table(
    caption,
    ["What", "Now"],
    rows.map(([name, value]) => [name, [value, "number"]]),
    "facts",
  );

export async function showHealth(content, signal) {
  async function refresh() {
    const status = await json("/api/v1/status", {}, {signal});
    const {level, sentence, others} = verdict(status);
    const {clock, rates, wal, memory, catalog, erasure, scrub, audit, mqtt} = status;
    fill(
      content,
      make("h1", {}, "Health"),
      make("p", {class: `verdict ${level}`}, sentence),
      others.length > 0 &&
        make(
          "ul",
          {class: "concerns"},
          others.map(([each, text]) => make("li", {class: each}, text)),
        ),
      table(
        "Drives",
        ["Drive", "Path", "File system", "Room", "Stored", "Written", "State"],
        Object.entries(status.drives).map(driveRow),
      ),
      make(
        "div",
        {class: "columns"},
        facts("Ingest", [
          ["Readings a second", number(rates.readings_per_second, 4)],
          ["Batches a second", number(rates.batches_per_second, 4)],
          ["Readings since the start", count(rates.readings)],
          ["Write-ahead log", `${bytes(wal.bytes)} of ${bytes(wal.limit_bytes)}`],
          ["Bytes written a byte stored", number(status.amplification.write, 3)],
        ]),
        facts("Store", [
          ["Namespaces", count(catalog.namespaces)],
          ["Devices", count(catalog.devices)],
          ["Series", count(catalog.series)],
          ["Memory", `${bytes(memory.resident_bytes)}`],
          ["Erasures are", erasure.level],
          ["Damaged files", count(scrub.damaged_files)],
        ]),
        facts("Clock", [
          ["The daemon's time", time(Date.parse(clock.now))],
          ["Trusted", clock.trusted ? "yes" : "no"],
          ["By a time server", clock.synchronised ? "yes" : "no"],
          ["Up", span(status.uptime_seconds)],
          ["Periods to be dated", count(clock.undated.waiting_periods)],
        ]),
        facts("Audit log", [
          ["Mode", audit.mode],
          ["Records", count(audit.records)],
          ["Waiting", count(audit.queued)],
          ["Lost", count(audit.lost)],
        ]),
        mqtt &&
          facts("MQTT", [
            ["Broker", mqtt.broker || "none"],
            ["Connected", mqtt.connected ? "yes" : "no"],
            ["Messages", count(mqtt.messages + (mqtt.listener?.messages ?? 0))],
            ["Rejected", count(mqtt.rejected + (mqtt.listener?.rejected ?? 0))],
            ["Behind", span(mqtt.lag_seconds)],
          ]),
      ),
      lossRows(rates).length > 0 &&
        table("Not there as they were sent, since the start", ["Readings", "How many"], lossRows(rates)),
    );
  }
  await refresh();
  repeat(refresh, refreshMs, signal);
}
