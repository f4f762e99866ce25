// How long readings are kept, and as what then: the rules, what a rule would remove or thin, and setting it.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {deviceSelector} from "./series.js";
import {askToBeSure, deviceOptions, field} from "./sure.js";
import {bytes, count, many, time} from "./words.js";

const rulesAsked = 20; // of which devices are shown
const devicesShown = 200;
const seriesNamed = 1000; // in one preview

// "7d, then 1m:90d, then 1h:forever".
const kept = (keep, then) => [keep, ...(then ?? [])].join(", then ");

function told(preview, device, keep) {
  const goes = preview.erased_readings > 0 || preview.erased_windows > 0;
  const thinned = preview.thinned_readings > 0;
  const going = [
    preview.erased_readings > 0 && `${many(preview.erased_readings, "reading")}, ${bytes(preview.erased_bytes)},`,
    preview.erased_windows > 0 && many(preview.erased_windows, "window"),
  ].filter(Boolean);
  return [
    make("h2", {}, `${device}: keep ${keep}`),
    (goes || !thinned) &&
      make(
        "p",
        {class: `verdict ${goes ? "warn" : "good"}`},
        goes
          ? `${going.join(" and ")} will be removed for good at once.`
          : "Nothing is removed now; readings go when they reach that age.",
      ),
    thinned &&
      make(
        "p",
        {class: "verdict warn"},
        `${many(preview.thinned_readings, "reading")} become windows at once: the least, the greatest, the first, the ` +
          "last, the sum and the count of each stay, the readings themselves go.",
      ),
    table(
      "Series it is about",
      ["Sensor", "Kept now", "Then", "Goes now", "Becomes windows", "Next goes"],
      (preview.affected ?? []).map((each) => [
        each.sensor,
        kept(each.keep_now, each.tiers_now),
        kept(each.keep_then, each.tiers_then),
        [count(each.erased_readings), "number"],
        [count(each.thinned_readings), "number"],
        each.next ? time(Date.parse(each.next)) : "–",
      ]),
    ),
  ];
}

// What rules with tiers keep of each device: [{namespace, device, keep, tiers: [{tier, windows, bytes}]}].
async function devicesWithTiers(rules, signal) {
  const asked = rules.rules.filter((rule) => rule.then).map(({namespace, select}) => ({ns: namespace, select}));
  if (rules.default_then) asked.push({ns: "*", select: "*/*"});
  const series = new Map(); // several rules may match one
  let isAll = asked.length <= rulesAsked;
  for (const each of asked.slice(0, rulesAsked)) {
    const {affected} = await json("/api/v1/retention/preview", each, {signal});
    if (affected.length >= seriesNamed) isAll = false;
    for (const one of affected) {
      if (one.tiers) series.set(JSON.stringify([one.namespace, one.device, one.sensor]), one);
    }
  }
  const devices = new Map();
  for (const {namespace, device, keep_then: keep, tiers_then: then, tiers} of series.values()) {
    // Sensors of one device may have rules of their own.
    const key = JSON.stringify([namespace, device, keep, then]);
    const row = devices.get(key) ?? {namespace, device, keep, then, sensors: 0, tiers: new Map()};
    devices.set(key, row);
    ++row.sensors;
    for (const {tier, windows, bytes: size} of tiers) {
      const sum = row.tiers.get(tier) ?? {windows: 0, bytes: 0};
      row.tiers.set(tier, {windows: sum.windows + windows, bytes: sum.bytes + size});
    }
  }
  return {rows: [...devices.values()], isAll};
}

function deviceTiers({rows, isAll}, change) {
  return [
    make("h2", {}, "Tiers by device"),
    make("p", {class: "soft"}, "Windows that there are, and those that readings which are due will become."),
    table(
      "Devices whose readings become windows",
      ["Device", "Readings", "Then, as windows", "Sensors", ""],
      rows.slice(0, devicesShown).map((row) => [
        `${row.device} (${row.namespace})`,
        row.keep,
        make(
          "div",
          {},
          [...row.tiers].map(([tier, held]) =>
            make("div", {}, `${tier}: ${many(held.windows, "window")}, ${bytes(held.bytes)}`),
          ),
        ),
        [count(row.sensors), "number"],
        make("button", {type: "button", "aria-label": `Change ${row.device}`, onclick: () => change(row)}, "Change…"),
      ]),
    ),
    !(isAll && rows.length <= devicesShown) &&
      make("p", {class: "soft"}, "There are more: edgecase retention preview SELECTOR tells of any of them."),
  ];
}

export async function showRetention(content, signal) {
  const [rules, status] = await Promise.all([
    json("/api/v1/retention", {ns: "*"}, {signal}),
    json("/api/v1/status", {}, {signal}),
  ]);
  const options = await deviceOptions("retention-devices", json, signal);
  const next = make("div", {});
  const form = make(
    "form",
    {class: "fields"},
    field("Namespace", {id: "retention-ns", name: "ns", value: "default", required: true}),
    field("Device", {id: "retention-device", name: "device", list: "retention-devices", required: true}),
    field(
      "Keep",
      {id: "retention-keep", name: "keep", required: true, placeholder: "30d"},
      "as 12h, 30d, 2y or forever",
    ),
    field(
      "Then, as windows",
      {id: "retention-then", name: "then", placeholder: "1m:90d, 1h:forever"},
      "the length of windows and how long they are kept, the finest first; empty: readings go",
    ),
    options,
    make("button", {type: "submit", class: "main"}, "Show what would change"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const {ns, device, keep, then} = Object.fromEntries(new FormData(form));
    const asked = {ns, select: deviceSelector(device), keep, then: then.replaceAll(/\s/g, "")};
    const rule = kept(keep, asked.then ? asked.then.split(",") : []);
    fill(next, make("p", {role: "status"}, "Looking…"));
    try {
      const preview = await json("/api/v1/retention/preview", asked, {signal});
      askToBeSure(next, {
        told: told(preview, device, rule),
        name: device,
        label: `Keep ${rule}`,
        act: async () => {
          const set = await json("/api/v1/retention", asked, {method: "POST"});
          return make(
            "p",
            {class: "verdict good", role: "status"},
            `Set: ${device} keeps ${kept(set.keep, set.then)}. ${many(set.erased_readings ?? 0, "reading")} removed` +
              (set.thinned_readings > 0 ? `, ${many(set.thinned_readings, "reading")} become windows.` : "."),
          );
        },
      });
    } catch (error) {
      fill(next, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  function change(row) {
    const {ns, device, keep, then} = form.elements;
    for (const [input, value] of [[ns, row.namespace], [device, row.device], [keep, row.keep]]) input.value = value;
    then.value = row.then.join(", ");
    form.elements.keep.focus();
  }
  const list = make("div", {});
  const {expiry} = status;
  fill(
    content,
    make("h1", {}, "Retention"),
    make(
      "p",
      {},
      `Where no rule says otherwise, readings are kept ${kept(rules.default, rules.default_then)}. `,
      `Expiry is ${expiry.mode}.`,
      expiry.oldest && ` The oldest reading in a file is of ${time(Date.parse(expiry.oldest))}.`,
    ),
    rules.rules.length > 0
      ? table(
          "Rules",
          ["Namespace", "Series", "Kept"],
          rules.rules.map((rule) => [rule.namespace, rule.select, kept(rule.keep, rule.then)]),
        )
      : make("p", {class: "soft"}, "There are no rules."),
    list,
    make("h2", {}, "A rule for a device"),
    form,
    next,
  );
  try {
    const held = await devicesWithTiers(rules, signal);
    if (held.rows.length > 0) fill(list, deviceTiers(held, change));
  } catch (error) {
    // Rules are for everyone to see, previews for administrators.
    if (error.kind !== "scope") throw error;
    fill(list, make("p", {class: "soft"}, `What each device keeps as windows is not shown. ${error.message}`));
  }
}
