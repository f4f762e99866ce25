// How long readings are kept: the rules, what a rule would remove, and setting it.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {deviceSelector} from "./series.js";
import {askToBeSure, deviceOptions, field} from "./sure.js";
import {bytes, count, many, time} from "./words.js";

function told(preview, device, keep) {
  const goes = preview.erased_readings > 0;
  return [
    make("h2", {}, `${device}: keep ${keep}`),
    make(
      "p",
      {class: `verdict ${goes ? "warn" : "good"}`},
      goes
        ? `${many(preview.erased_readings, "reading")}, ${bytes(preview.erased_bytes)}, will be removed for good at once.`
        : "Nothing is removed now; readings go when they reach that age.",
    ),
    table(
      "Series it is about",
      ["Sensor", "Kept now", "Then", "Goes now", "Next goes"],
      (preview.affected ?? []).map((each) => [
        each.sensor,
        each.keep_now,
        each.keep_then,
        [count(each.erased_readings), "number"],
        each.next ? time(Date.parse(each.next)) : "–",
      ]),
    ),
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
    options,
    make("button", {type: "submit", class: "main"}, "Show what would change"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const {ns, device, keep} = Object.fromEntries(new FormData(form));
    const asked = {ns, select: deviceSelector(device), keep};
    fill(next, make("p", {role: "status"}, "Looking…"));
    try {
      const preview = await json("/api/v1/retention/preview", asked, {signal});
      askToBeSure(next, {
        told: told(preview, device, keep),
        name: device,
        label: `Keep ${keep}`,
        act: async () => {
          const set = await json("/api/v1/retention", asked, {method: "POST"});
          return make(
            "p",
            {class: "verdict good", role: "status"},
            `Set: ${device} keeps ${set.keep}. ${many(set.erased_readings ?? 0, "reading")} removed.`,
          );
        },
      });
    } catch (error) {
      fill(next, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  const {expiry} = status;
  fill(
    content,
    make("h1", {}, "Retention"),
    make(
      "p",
      {},
      `Where no rule says otherwise, readings are kept ${rules.default}. Expiry is ${expiry.mode}.`,
      expiry.oldest && ` The oldest reading in a file is of ${time(Date.parse(expiry.oldest))}.`,
    ),
    rules.rules.length > 0
      ? table(
          "Rules",
          ["Namespace", "Series", "Kept"],
          rules.rules.map((rule) => [rule.namespace, rule.select, rule.keep]),
        )
      : make("p", {class: "soft"}, "There are no rules."),
    make("h2", {}, "A rule for a device"),
    form,
    next,
  );
}
