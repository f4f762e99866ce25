// The audit log: who did what with which device, and whether the chain of records is whole.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {field} from "./sure.js";
import {count, many, time} from "./words.js";

const limit = 100;

function row(record) {
  const devices = record.devices.map((each) => each.device ?? `~${each.pseudonym}`);
  const shown = devices.slice(0, 4).join(", ");
  const more = devices.length - 4 + record.more_devices;
  return [
    [time(Date.parse(record.time)) + (record.clock_trusted ? "" : " (clock untrusted)"), "time"],
    record.token ? `token ${record.token} of ${record.actor}` : record.actor,
    record.operation,
    [record.result, record.result === "ok" ? "good" : "bad"],
    record.namespace,
    more > 0 ? `${shown} and ${more} more` : shown,
    [count(record.count), "number"],
    record.detail,
  ];
}

export async function showAudit(content, signal) {
  const list = make("div", {});
  const verified = make("p", {role: "status"});
  const form = make(
    "form",
    {class: "fields"},
    field("Device", {id: "audit-device", name: "device"}),
    field("Namespace", {id: "audit-ns", name: "ns", placeholder: "all"}),
    field("From", {id: "audit-from", name: "from", value: "-1d"}, "as -7d or 2026-01-31T12:00:00Z"),
    field("To", {id: "audit-to", name: "to", placeholder: "now"}),
    make("button", {type: "submit", class: "main"}, "Show"),
    make("button", {type: "button", onclick: verify}, "Verify the whole log"),
  );
  async function verify() {
    verified.className = "";
    verified.textContent = "Walking the chain…";
    try {
      const {intact, records, first, last, faults, head} = await json("/api/v1/audit/verify", {}, {signal});
      verified.className = `verdict ${intact ? "good" : "bad"}`;
      verified.textContent = intact
        ? `Intact: ${many(records, "record")}, numbers ${first} to ${last}, head ${head.slice(0, 16)}….`
        : `Not intact: ${faults.map((fault) => fault.message ?? JSON.stringify(fault)).join("; ")}`;
    } catch (error) {
      verified.className = "bad";
      verified.textContent = error.message;
    }
  }
  async function show() {
    const given = Object.fromEntries(new FormData(form));
    const {records} = await json("/api/v1/audit", {...given, limit, desc: true}, {signal});
    fill(
      list,
      records.length === 0
        ? make("p", {class: "soft"}, "No record is of that device and time.")
        : table(
            records.length === limit ? `The newest ${limit} records` : "Records, newest first",
            ["Time", "Who", "Did", "Result", "Namespace", "Devices", "Readings", "More"],
            records.map(row),
          ),
    );
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show().catch((error) => fill(list, make("p", {class: "bad", role: "status"}, error.message)));
  });
  fill(content, make("h1", {}, "Audit log"), form, verified, list);
  await show();
}
