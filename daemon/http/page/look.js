// The view of series: a chart of those that are numbers, bands of states, pictures; live while its
// end is now.
import {bandHeight, drawBand} from "./bands.js";
import {draw, nearest, scaleOf} from "./chart.js";
import {keepForm} from "./dashboards.js";
import {fill, make} from "./dom.js";
import {follow} from "./gestures.js";
import {showPictures} from "./pictures.js";
import {describe, gapMs, read} from "./readings.js";
import {isFavourite, nameOf, noteLookedAt, seriesOf, textOf, toggleFavourite} from "./series.js";
import {purpose, statePurpose} from "./session.js";
import {lengthOf, spans} from "./spans.js";
import {takeAlong} from "./take.js";
import {repeat, report} from "./trouble.js";
import {adjust, current, go} from "./view.js";
import {ago, bytes, isUtc, many, number, setUtc, span, time, valueText, zoneName} from "./words.js";

const seriesMax = 6;
const chartHeight = 300;
const livePeriodMs = 5000,
  wholePeriodMs = 60000;
// The view of an address: {list: [series], from, to} where from is "-1h" or a time, to a time or null: now.
function asked(given) {
  const list = given.getAll("s").map(seriesOf).filter(Boolean).slice(0, seriesMax);
  const from = given.get("from") ?? "-1h";
  const to = Date.parse(given.get("to") ?? "") || null;
  if (lengthOf(from)) return {list, from, to: null};
  const begin = Date.parse(from);
  return Number.isFinite(begin) && to > begin ? {list, from: begin, to} : {list, from: "-1h", to: null};
}

export async function showLook(content, signal) {
  const view = asked(current().given);
  let shown = []; // {series, info, points, every, leftOut, gap, ink, trouble, canvas?}
  let pointed = null,
    marked = null;
  let readAll = 0; // when
  let reading = null; // the request under way

  const range = () => {
    if (view.to) return [view.from, view.to];
    const now = Date.now();
    return [now - lengthOf(view.from), now];
  };
  const isLive = () => view.to === null;

  const heads = make("div", {class: "heads"});
  const canvas = make("canvas", {class: "chart", role: "img"});
  const chart = make(
    "div",
    {
      class: "chart-frame",
      tabindex: 0,
      role: "group",
      "aria-label": "Chart: arrows move in time, plus and minus zoom, 0 shows everything",
    },
    canvas,
  );
  const bands = make("div", {class: "bands"});
  const pictures = make("div", {});
  const note = make("p", {class: "soft", role: "status"});
  const holes = make("ul", {class: "holes"});
  // Some devices' readings may be used for what their owners said alone.
  const stated = make("input", {id: "purpose", name: "purpose", maxlength: 128, autocomplete: "off"});
  stated.value = purpose();
  const purposes = make(
    "form",
    {class: "keep", hidden: true},
    make("label", {for: "purpose"}, "What these readings are looked at for"),
    make("div", {class: "buttons"}, stated, make("button", {type: "submit"}, "State the purpose")),
  );
  purposes.addEventListener("submit", (event) => {
    event.preventDefault();
    statePurpose(stated.value);
    load().catch(report);
  });
  const when = make("p", {class: "when"});
  const spanButtons = spans.map(([text, label]) =>
    make("button", {type: "button", "data-span": text, onclick: () => setSpan(text)}, label),
  );
  const zone = make("button", {
    type: "button",
    onclick: () => {
      setUtc(!isUtc());
      paint();
    },
  });
  const live = make("button", {type: "button", onclick: () => setSpan(isLive() ? view.from : "-1h")});
  const tools = make(
    "div",
    {class: "tools", role: "toolbar", "aria-label": "Span of time"},
    spanButtons,
    make("button", {type: "button", onclick: () => shift(-0.5), "aria-label": "Earlier"}, "‹"),
    make("button", {type: "button", onclick: () => shift(0.5), "aria-label": "Later"}, "›"),
    make("button", {type: "button", onclick: () => widen(0.5), "aria-label": "Closer"}, "+"),
    make("button", {type: "button", onclick: () => widen(2), "aria-label": "Wider"}, "−"),
    make("button", {type: "button", onclick: everything}, "All"),
    live,
    zone,
    make(
      "button",
      {type: "button", onclick: () => document.documentElement.requestFullscreen().catch(() => {})},
      "Full screen",
    ),
  );

  const names = () => view.list.map(textOf);
  function keep() {
    const [from, to] = range();
    adjust(
      "look",
      view.to
        ? {s: names(), from: new Date(from).toISOString(), to: new Date(to).toISOString()}
        : {s: names(), from: view.from},
    );
  }
  function setSpan(text) {
    view.from = text;
    view.to = null;
    keep();
    load().catch(report);
  }
  let waits;
  function change(from, to) {
    const least = 2;
    if (!(to - from >= least)) return;
    view.from = Math.max(0, Math.round(from));
    view.to = Math.round(Math.max(to, from + least));
    paint();
    clearTimeout(waits);
    waits = setTimeout(() => {
      keep();
      load().catch(report);
    }, 150);
  }
  function shift(part) {
    const [from, to] = range();
    change(from + (to - from) * part, to + (to - from) * part);
  }
  function widen(factor) {
    const [from, to] = range();
    const middle = (from + to) / 2;
    change(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  function everything() {
    const firsts = shown.map(({info}) => info?.firstMs).filter(Boolean);
    const lasts = shown.map(({info}) => info?.lastMs).filter(Boolean);
    if (firsts.length === 0) return;
    const from = Math.min(...firsts),
      to = Math.max(...lasts) + 1;
    change(from - (to - from) * 0.01, to + (to - from) * 0.01);
  }
  follow(chart, {
    scale: () => scaleOf(canvas.clientWidth, ...range()),
    range,
    change,
    reset: everything,
    mark: (chosen) => {
      marked = chosen;
      paint();
    },
    point: (t) => {
      pointed = t;
      paint();
    },
  });

  const ofKind = (kind) => shown.filter((each) => each.info?.kind === kind);

  function head(each) {
    const {series, info, points} = each;
    const at = pointed !== null && info?.kind !== "bytes" ? nearest(points ?? [], pointed) : null;
    const value = at ? (at.mean ?? at.last) : info?.last;
    const numbers = (points ?? []).filter((point) => point.mean !== undefined);
    const low = numbers.reduce((least, point) => Math.min(least, point.min), Infinity);
    const high = numbers.reduce((most, point) => Math.max(most, point.max), -Infinity);
    const star = make(
      "button",
      {
        type: "button",
        class: "icon",
        "aria-pressed": String(isFavourite(series)),
        "aria-label": `Favourite: ${nameOf(series)}`,
        onclick: () => {
          toggleFavourite(series);
          paintHeads();
        },
      },
      isFavourite(series) ? "★" : "☆",
    );
    const leave =
      view.list.length > 1 &&
      make(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": `Leave out ${nameOf(series)}`,
          onclick: () =>
            go("look", {
              ...Object.fromEntries(current().given),
              s: names().filter((text) => text !== textOf(series)),
            }),
        },
        "×",
      );
    return make(
      "article",
      {class: `head ${each.ink}`},
      make(
        "h2",
        {},
        make(
          "span",
          {class: "name"},
          make("span", {class: "device"}, series.device),
          " ",
          make("span", {class: "sensor"}, series.sensor),
        ),
        star,
        leave,
      ),
      each.trouble
        ? make("p", {class: "bad"}, each.trouble)
        : make(
            "p",
            {class: "value"},
            info === undefined
              ? "…"
              : info.kind === "bytes"
                ? many(info.count, "file")
                : value === undefined
                  ? info.isThinned
                    ? "Kept as windows"
                    : "No readings yet"
                  : valueText(value),
          ),
      info &&
        make(
          "p",
          {class: "soft"},
          at ? time(at.t) : info.lastMs ? `${time(info.lastMs)} · ${ago(info.lastMs)}` : "",
          numbers.length > 0 && make("span", {class: "extent"}, `${number(low, 5)} to ${number(high, 5)}`),
        ),
    );
  }
  const paintHeads = () => fill(heads, shown.map(head));

  function paint() {
    const [from, to] = range();
    const numbers = ofKind("number");
    const lost = shown.flatMap((each) => each.leftOut ?? []);
    // Windows that lack something are known more closely.
    const lostSpans = shown
      .flatMap((each) => each.holes ?? each.leftOut ?? [])
      .map((hole) => ({
        from: Date.parse(hole.from ?? "") || from,
        to: Date.parse(hole.to ?? "") || to,
      }));
    chart.hidden = numbers.length === 0;
    if (!chart.hidden) {
      draw(canvas, {
        list: numbers.map(({points = [], gap = Infinity, ink}) => ({points, gap, ink: `--${ink}`})),
        holes: lostSpans,
        from,
        to,
        at: pointed,
        marked,
        height: chartHeight,
      });
      canvas.setAttribute(
        "aria-label",
        numbers
          .map(({series, points = []}) => `${nameOf(series)}: ${many(points.length, "point")}`)
          .join("; ") + `, ${time(from)} to ${time(to)}`,
      );
    }
    const laidOut = ofKind("state").filter((each) => each.canvas);
    laidOut.forEach((each) =>
      drawBand(each.canvas, {points: each.points ?? [], holes: lostSpans, from, to, at: pointed}),
    );
    paintHeads();
    for (const button of spanButtons) {
      button.setAttribute("aria-pressed", String(isLive() && button.dataset.span === view.from));
    }
    live.textContent = isLive() ? "● Live" : "Go live";
    live.setAttribute("aria-pressed", String(isLive()));
    zone.textContent = isUtc() ? "UTC" : "Local time";
    zone.title = `Times are shown in ${zoneName()}; press to change`;
    when.textContent = `${time(from)} – ${isLive() ? "now" : time(to)} · ${span((to - from) / 1000)}`;
    fill(
      holes,
      lost.map((hole) =>
        make(
          "li",
          {class: "bad"},
          hole.more
            ? `and ${hole.more} more`
            : `${hole.device} · ${hole.sensor}: some readings cannot be read (${hole.reason}). ` +
                "They are hatched where it is known when they were; `edgecase check` says more.",
        ),
      ),
    );
  }

  function layOut() {
    fill(
      bands,
      ofKind("state").map((each) => {
        each.canvas ??= make("canvas", {class: "band", height: bandHeight, role: "img"});
        each.canvas.setAttribute(
          "aria-label",
          `${nameOf(each.series)}: ${valueText(each.info.last ?? "no state")}`,
        );
        return make("div", {class: "band-row"}, make("p", {class: "soft"}, nameOf(each.series)), each.canvas);
      }),
    );
  }

  function notes() {
    const thinned = shown.filter((each) => each.every > 0);
    const texts = [];
    if (thinned.length > 0) {
      texts.push(
        `Thinned: means of ${span(thinned[0].every / 1000)} with the band between minimum and maximum.`,
      );
    }
    const tiers = new Set(shown.map((each) => each.tiers).filter(Boolean));
    for (const told of tiers) {
      const [, lengths, before] = /^([\w, ]+) before (\S+?)(;|$)/.exec(told) ?? [];
      texts.push(
        before && !lengths.startsWith("none")
          ? `Before ${time(Date.parse(before))} readings are kept as windows of ${lengths}: these are drawn there.`
          : "Some readings have become windows that this chart cannot show: widen it.",
      );
    }
    const isWithheld = shown.some((each) => each.info?.withheld > 0);
    if (isWithheld) texts.push("Some devices are withheld for their purposes.");
    purposes.hidden = !isWithheld && !purpose() && !shown.some((each) => each.isRefused);
    const isEmpty = shown.length > 0 && shown.every((each) => each.points?.length === 0);
    if (isEmpty) texts.push("There are no readings in this span of time: All shows where some are.");
    note.textContent = texts.join(" ");
  }

  // All of the view, or what came since.
  async function load(isWhole = true) {
    reading?.abort();
    reading = new AbortController();
    const mine = AbortSignal.any([signal, reading.signal]);
    const [from, to] = range();
    const width = Math.max(200, chart.clientWidth || content.clientWidth);
    const all = await Promise.allSettled(
      shown.map(async (each) => {
        try {
          if (isWhole || !each.info) each.info = await describe(each.series, mine);
          if (each.info.kind === "bytes") {
            if (isWhole) await showPictures(each.pictures, each.series, from, to, mine);
          } else if (isWhole || !each.points) {
            const whole = await read(each.series, each.info, from, to, Math.min(1000, width / 2), mine);
            Object.assign(each, whole, {gap: gapMs(whole.points, whole.every)});
          } else {
            await followOn(each, from, to, mine);
          }
          each.trouble = null;
          each.isRefused = false;
        } catch (error) {
          // What concerns all of them is not said of each.
          if (mine.aborted || ["sign-in", "away", "later"].includes(error.kind)) throw error;
          each.trouble = error.message;
          each.isRefused = error.kind === "scope";
        }
      }),
    );
    if (mine.aborted) return;
    const failed = all.find(({status}) => status === "rejected");
    if (failed) throw failed.reason;
    if (isWhole) readAll = Date.now();
    layOut();
    notes();
    paint();
  }
  async function followOn(each, from, to, mine) {
    const begin = each.points.at(-1)?.t ?? from;
    const fresh = await read(each.series, each.info, begin, to + 1, 1000, mine, each.every);
    // A state that began before the view holds on in it.
    const isSeen = (point, i) =>
      point.t >= from || (each.info.kind === "state" && each.points[i + 1]?.t > from);
    const kept = each.points.filter((point, i) => point.t < begin && isSeen(point, i));
    each.points = [...kept, ...fresh.points];
    const newest = fresh.points.at(-1);
    if (newest && each.every === 0) {
      each.info.last = newest.mean ?? newest.last;
      each.info.lastMs = newest.t;
    }
  }

  async function tick() {
    if (isLive() && !marked) await load(Date.now() - readAll > wholePeriodMs);
  }

  shown = view.list.map((series, i) => ({series, ink: `series-${i + 1}`, pictures: make("div", {})}));
  for (const series of view.list) noteLookedAt(series);
  fill(
    content,
    make("h1", {class: "unseen"}, view.list.map(nameOf).join(", ") || "No series"),
    heads,
    view.list.length === 0
      ? make("p", {}, "No series is chosen: find one above, by its device, sensor or tags.")
      : [
          tools,
          when,
          chart,
          bands,
          pictures,
          note,
          purposes,
          holes,
          keepForm(() => ({list: view.list, from: view.to ? "-1d" : view.from})),
          takeAlong(() => ({
            list: shown.map(({series, points = [], every = 0, info}) => ({
              series,
              points,
              every,
              identity: info?.identity,
            })),
            range: {from: range()[0], to: range()[1]},
          })),
        ],
  );
  fill(
    pictures,
    shown.map((each) => each.pictures),
  );
  const size = new ResizeObserver(() => paint());
  size.observe(content);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, {signal});
  signal.addEventListener("abort", () => size.disconnect());
  document.addEventListener(
    "visibilitychange",
    () => {
      if (document.visibilityState === "visible") tick().catch(report);
    },
    {signal},
  );
  paint();
  await load();
  repeat(tick, livePeriodMs, signal);
}
