// The start: how the store is in a sentence, and the series that one likes and looked at.
import {fill, make, table} from "./dom.js";
import {verdict} from "./health.js";
import {json, readings} from "./server.js";
import {byLiking, favourites, isFavourite, nameOf, only, recent, seriesOf, textOf} from "./series.js";
import {repeat} from "./trouble.js";
import {addressOf} from "./view.js";
import {ago, many, valueText} from "./words.js";

const shownMax = 24;
const refreshMs = 10000;

async function lastOf(series, signal) {
  try {
    const {rows} = await readings("/api/v1/last", only(series), signal);
    return rows[0];
  } catch (error) {
    if (error.kind === "nothing" || error.kind === "scope") return null;
    throw error;
  }
}

function row(series, last) {
  const isShort = last && last.type !== "bytes";
  return [
    make(
      "span",
      {},
      make("span", {class: "star", "aria-hidden": "true"}, isFavourite(series) ? "★ " : ""),
      make(
        "a",
        {href: addressOf("look", {s: textOf(series)}), "aria-label": nameOf(series)},
        make("span", {class: "device"}, series.device),
        " ",
        make("span", {class: "sensor"}, series.sensor),
      ),
    ),
    [last ? (isShort ? valueText(last.value) : "a file") : "–", "number"],
    [last ? ago(Date.parse(last.time)) : "", "soft"],
  ];
}

const empty = () => [
  make("h2", {}, "Nothing is stored yet"),
  make("p", {}, "Send a first reading from the board:"),
  make("pre", {}, "edgecase write kitchen/temp 21.5"),
  make("p", {}, "or from anywhere that speaks HTTP:"),
  make("pre", {}, `curl ${location.origin}/write --data-binary 'air,device=kitchen temp=21.5'`),
];

export async function showHome(content, signal) {
  async function refresh() {
    const [status, found] = await Promise.all([
      json("/api/v1/status", {}, {signal}),
      json("/api/v1/find", {ns: "*", limit: shownMax}, {signal}),
    ]);
    const known = [...new Set([...favourites(), ...recent()])].map(seriesOf).filter(Boolean);
    const others = byLiking(found.found).filter(
      (series) => series.namespace !== "_views" && !known.some((each) => textOf(each) === textOf(series)),
    );
    const list = [...known, ...others].slice(0, shownMax);
    const lasts = await Promise.all(list.map((series) => lastOf(series, signal)));
    const {level, sentence} = verdict(status);
    const {series, devices} = status.catalog;
    fill(
      content,
      make("h1", {class: "unseen"}, "Start"),
      make("p", {class: `verdict ${level}`}, make("a", {href: addressOf("health")}, sentence)),
      list.length === 0
        ? empty()
        : [
            table(
              known.length ? "Favourites and what you looked at, then others" : "Series",
              ["Series", "Last value", "When"],
              list.map((each, i) => row(each, lasts[i])),
            ),
            make(
              "p",
              {class: "soft"},
              `${many(series, "series", "series")} of ${many(devices, "device")} in all. Find the others by typing above.`,
            ),
          ],
    );
  }
  await refresh();
  repeat(
    async () => {
      // What has the keyboard stays.
      const isHeld = content.contains(document.activeElement) && document.activeElement !== content;
      if (!isHeld) await refresh();
    },
    refreshMs,
    signal,
  );
}
