// The compliance report: what the store does for the data in it and what is missing; or what is
// stored of one owner. Signed: it is saved as it came.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {field} from "./sure.js";
import {offer} from "./take.js";
import {bytes, count, many, time} from "./words.js";

const when = (text) => (text ? time(Date.parse(text), false) : "–");

function features(report) {
  return table(
    "What it does",
    ["Feature", "Offered", "How", "Missing"],
    report.features.map((each) => [
      each.feature,
      [`${each.capability}, ${each.response}`, each.capability === "full" ? "good" : "warn"],
      each.how,
      each.missing ?? "",
    ]),
  );
}

const owners = (report) =>
  table(
    "Owners",
    ["Owner", "Devices", "Series", "Readings", "Bytes", "Oldest", "Newest"],
    report.owners.map((each) => [
      each.owner,
      [count(each.devices), "number"],
      [count(each.series), "number"],
      [count(each.readings), "number"],
      [bytes(each.bytes), "number"],
      when(each.oldest),
      when(each.newest),
    ]),
  );

const devices = (report) =>
  table(
    "Devices",
    ["Device", "Namespace", "Purposes", "Objections", "Location", "Sensors", "Kept"],
    report.devices.map((each) => [
      each.device,
      each.namespace,
      each.purposes.join(", "),
      each.objections.join(", "),
      each.location,
      each.series.map(({sensor}) => sensor).join(", "),
      [...new Set(each.series.map(({keep}) => keep))].join(", "),
    ]),
  );

function show(report) {
  const {stored, signature} = report;
  const name = `edgecase-report-${report.made}.json`.replaceAll(":", "");
  const save = () => offer(name, "application/json", JSON.stringify(report));
  return [
    make(
      "p",
      {class: "verdict good"},
      `${many(stored.readings, "reading")} of ${many(stored.devices, "device")}, ${bytes(stored.bytes)}, ` +
        `from ${when(stored.oldest)} to ${when(stored.newest)}.`,
    ),
    report.features && features(report),
    report.owners?.length > 0 && owners(report),
    report.devices?.length > 0 && devices(report),
    make("p", {class: "soft"}, `Signed: ${signature.algorithm}, key ${signature.fingerprint}.`),
    make("button", {type: "button", onclick: save}, "Save the report"),
    make(
      "p",
      {class: "soft"},
      "Whoever has the file checks it by ",
      make("code", {}, "edgecase report --verify FILE"),
      ".",
    ),
  ];
}

export async function showReport(content, signal) {
  const result = make("div", {});
  const form = make(
    "form",
    {class: "fields"},
    field("Owner", {id: "report-owner", name: "owner", placeholder: "everybody"}),
    make("button", {type: "submit", class: "main"}, "Make the report"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fill(result, make("p", {role: "status"}, "It is being made…"));
    try {
      fill(result, show(await json("/api/v1/report", Object.fromEntries(new FormData(form)), {signal})));
    } catch (error) {
      fill(result, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  fill(
    content,
    make("h1", {}, "Compliance report"),
    make(
      "p",
      {class: "soft"},
      "What is stored of whom, why, until when, and what of the rules is kept here.",
    ),
    form,
    result,
  );
}
