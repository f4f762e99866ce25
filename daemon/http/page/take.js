// What can be taken along of a view: a CSV of what is seen, and ways to ask for the same elsewhere.
import {copyable, make} from "./dom.js";
import {target} from "./server.js";
import {only} from "./series.js";

const iso = (ms) => new Date(ms).toISOString();
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell
const cell = (value) => {
  const text = value === undefined || value === null ? "" : String(value);
  // A spreadsheet takes what begins so for a formula.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

// All that is drawn: list of {series, points}.
export function csvOf(list) {
  const rows = ["namespace,device,sensor,time,mean,min,max,state"];
  for (const {series, points} of list) {
    for (const point of points) {
      rows.push(
        [
          series.namespace,
          series.device,
          series.sensor,
          iso(point.t),
          point.mean,
          point.min,
          point.max,
          point.last,
        ]
          .map(cell)
          .join(","),
      );
    }
  }
  return rows.join("\r\n") + "\r\n";
}

export function offer(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  make("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function parameters(series, {from, to, every}, format) {
  return {
    ...only(series),
    from: iso(from),
    to: iso(to),
    every: every ? `${every}ms` : "",
    agg: every ? "mean" : "",
    format,
  };
}

// The readings themselves, by the daemon; opened by itself the browser asks for the token.
export const rawAddress = (series, range) =>
  target("/api/v1/query", {...only(series), from: iso(range.from), to: iso(range.to), format: "csv"});

export function curlOf(list, range) {
  return list
    .map(
      ({series, every}) =>
        `curl -H "Authorization: Bearer $EDGECASE_TOKEN" ` +
        quoted(location.origin + target("/api/v1/query", parameters(series, {...range, every}, "csv"))),
    )
    .join("\n");
}

export function pythonOf(list, range) {
  const asked = list
    .map(({series, every}) => `    ${JSON.stringify(parameters(series, {...range, every}, "ndjson"))},`)
    .join("\n");
  return `import json, os, urllib.parse, urllib.request

for asked in [
${asked}
]:
    request = urllib.request.Request(
        ${JSON.stringify(`${location.origin}/api/v1/query?`)} + urllib.parse.urlencode(
            {name: value for name, value in asked.items() if value}))
    if token := os.environ.get("EDGECASE_TOKEN"):
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            print(json.loads(line))
`;
}

const name = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
const string = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

// `identity`: measurement, tags and field of the series, as a reading tells them where it has some.
export function influxOf(list, range) {
  return list
    .map(({series, every, identity}) => {
      const {measurement = series.sensor, field = "value", tags = {device: series.device}} = identity ?? {};
      const what = every ? `mean(${name(field)})` : name(field);
      const where = [
        `time >= '${iso(range.from)}'`,
        `time < '${iso(range.to)}'`,
        ...Object.entries(tags).map(([key, value]) => `${name(key)} = ${string(value)}`),
      ];
      return (
        `SELECT ${what} FROM ${name(series.namespace)}..${name(measurement)} WHERE ` +
        where.join(" AND ") +
        (every ? ` GROUP BY time(${every}ms)` : "")
      );
    })
    .join(";\n");
}

// The part of a page with all of that; `seen()` answers {list, range}.
export function takeAlong(seen) {
  const ways = [
    ["curl", curlOf],
    ["Python", pythonOf],
    ["InfluxQL", influxOf],
  ];
  const shown = make("div", {});
  const show = (way, text) => shown.replaceChildren(copyable(text, `as ${way}`));
  const link = () => show("link", location.href);
  const csv = () => offer("edgecase.csv", "text/csv", csvOf(seen().list));
  const raw = () =>
    shown.replaceChildren(
      make(
        "ul",
        {class: "plain"},
        seen().list.map(({series}) =>
          make(
            "li",
            {},
            make(
              "a",
              {href: rawAddress(series, seen().range), download: ""},
              `${series.device} · ${series.sensor}`,
            ),
          ),
        ),
      ),
      make(
        "p",
        {class: "soft"},
        "Where a token is needed, the browser asks for a name and a password: " +
          "the token is the password.",
      ),
    );
  return make(
    "section",
    {class: "take", "aria-label": "Take along"},
    make("h2", {}, "Take along"),
    make(
      "p",
      {class: "buttons"},
      make("button", {type: "button", onclick: csv}, "CSV of what is seen"),
      make("button", {type: "button", onclick: raw}, "CSV of all readings"),
      make("button", {type: "button", onclick: link}, "Link"),
      ways.map(([way, of]) =>
        make(
          "button",
          {type: "button", onclick: () => show(way, of(seen().list, seen().range))},
          `Copy as ${way}`,
        ),
      ),
    ),
    shown,
  );
}
