// MQTT: who is connected, what was rejected and why, and a try of what a rule makes of a message.
import {fill, make, table} from "./dom.js";
import {json, readings} from "./server.js";
import {field} from "./sure.js";
import {count, time} from "./words.js";

const rejectedMax = 50;

function connections(mqtt) {
  const rows = [];
  if (mqtt.broker) {
    rows.push([
      `broker ${mqtt.broker}`,
      mqtt.connected ? ["connected", "good"] : [mqtt.last_error ?? "not connected", "bad"],
      [count(mqtt.messages), "number"],
      [count(mqtt.readings), "number"],
      [count(mqtt.rejected), "number"],
      mqtt.acknowledged_means,
    ]);
  }
  if (mqtt.listener) {
    const each = mqtt.listener;
    rows.push([
      `own, at ${each.address}`,
      [`${count(each.connections)} connected`, "good"],
      [count(each.messages), "number"],
      [count(each.readings), "number"],
      [count(each.rejected), "number"],
      each.acknowledged_means,
    ]);
  }
  return rows;
}

async function rejected(signal) {
  try {
    const {rows} = await readings(
      "/api/v1/query",
      {ns: "_rejected", from: "-7d", desc: true, limit: rejectedMax},
      signal,
    );
    return rows.map((row) => {
      try {
        return {time: row.time, ...JSON.parse(row.value)};
      } catch {
        return {time: row.time, payload: String(row.value)};
      }
    });
  } catch (error) {
    if (error.kind === "scope" || error.kind === "nothing") return [];
    throw error;
  }
}

function told(answer) {
  const rule = answer.rule ? ` by rule ${answer.rule.number}, ${answer.rule.topic}` : "";
  const list = answer.readings ?? [];
  return [
    make(
      "p",
      {class: `verdict ${list.length ? "good" : "warn"}`, role: "status"},
      list.length
        ? `Taken${rule}.`
        : `${answer.outcome}${rule}: ${answer.reason ?? "no reading is made of it"}.`,
    ),
    list.length > 0 &&
      table(
        "Readings it would make",
        ["Namespace", "Device", "Sensor", "Value"],
        list.map((each) => [each.namespace, each.device, each.sensor, JSON.stringify(each.value)]),
      ),
  ];
}

export async function showMqtt(content, signal) {
  const {mqtt} = await json("/api/v1/status", {}, {signal});
  if (!mqtt)
    return fill(content, make("h1", {}, "MQTT"), make("p", {}, "This daemon is set up without MQTT."));
  const list = await rejected(signal);
  const payload = make("textarea", {id: "mqtt-payload", rows: 3, spellcheck: "false"});
  const topic = field("Topic", {id: "mqtt-topic", required: true, placeholder: "sensors/kitchen/temp"});
  const result = make("div", {});
  const form = make(
    "form",
    {class: "fields"},
    topic,
    make("div", {class: "field"}, make("label", {for: "mqtt-payload"}, "Payload"), payload),
    make("button", {type: "submit", class: "main"}, "Try it"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const asked = {topic: form.querySelector("#mqtt-topic").value};
      fill(
        result,
        told(await json("/api/v1/mqtt/test", asked, {method: "POST", body: payload.value, signal})),
      );
    } catch (error) {
      fill(result, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  const tryIt = (each) => () => {
    form.querySelector("#mqtt-topic").value = each.topic ?? "";
    payload.value = typeof each.payload === "string" ? each.payload : JSON.stringify(each.payload ?? "");
    form.requestSubmit();
    form.scrollIntoView();
  };
  const rows = connections(mqtt);
  fill(
    content,
    make("h1", {}, "MQTT"),
    rows.length > 0
      ? table(
          "Connections",
          ["Side", "State", "Messages", "Readings", "Rejected", "Acknowledged means"],
          rows,
        )
      : make("p", {}, "There is no broker, and no listener of the daemon's own."),
    make("h2", {}, "Try a message"),
    make("p", {class: "soft"}, "Which rule takes it, and which readings it would make. Nothing is stored."),
    form,
    result,
    list.length > 0
      ? table(
          "Rejected in 7 days, newest first",
          ["Time", "Topic", "Reason", "Payload", ""],
          list.map((each) => [
            time(Date.parse(each.time)),
            each.topic ?? "",
            each.reason ?? "",
            make("code", {}, String(each.payload ?? "").slice(0, 200)),
            make("button", {type: "button", onclick: tryIt(each)}, "Try"),
          ]),
        )
      : make("p", {class: "soft"}, "Nothing was rejected in 7 days, as far as this token may see."),
  );
}
