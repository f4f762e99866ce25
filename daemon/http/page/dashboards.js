// Dashboards: charts kept by name in the store. One is a text reading in the namespace `_views`, whose
// device is the dashboard's name; backups take them along, and erasing one erases it.
import {bandHeight, drawBand} from "./bands.js";
import {draw} from "./chart.js";
import {fill, make, table} from "./dom.js";
import {describe, gapMs, read} from "./readings.js";
import {ask, json, readings} from "./server.js";
import {deviceSelector, nameOf, seriesOf, textOf} from "./series.js";
import {lengthOf, spans} from "./spans.js";
import {askToBeSure} from "./sure.js";
import {repeat, report} from "./trouble.js";
import {addressOf, adjust, current, go} from "./view.js";
import {ago, many, time, valueText} from "./words.js";

const namespace = "_views";
const sensor = "charts";
const chartsMax = 24;
const seriesMax = 6;
const chartHeight = 190;
const refreshMs = 15000;
const bytesMax = 65536;

// {name, from, charts: [[series]], savedMs}. Anybody may have written the reading: null where it is none.
function dashboardOf(row) {
  try {
    const {from, charts} = JSON.parse(row.value);
    const lists = charts
      .slice(0, chartsMax)
      .map((texts) => texts.slice(0, seriesMax).map(seriesOf).filter(Boolean))
      .filter((list) => list.length > 0);
    return {
      name: row.device,
      from: lengthOf(from) ? from : "-1d",
      charts: lists,
      savedMs: Date.parse(row.time),
    };
  } catch {
    return null;
  }
}

async function allDashboards(signal) {
  try {
    const {rows} = await readings("/api/v1/last", {ns: namespace, select: `*/${sensor}`}, signal);
    return rows
      .map(dashboardOf)
      .filter(Boolean)
      .sort((a, b) => a.name.localeCompare(b.name));
  } catch (error) {
    if (error.kind === "nothing") return [];
    throw error;
  }
}

async function keep({name, from, charts}) {
  const value = JSON.stringify({version: 1, from, charts: charts.map((list) => list.map(textOf))});
  if (value.length > bytesMax) throw new Error("This dashboard is too long to be kept.");
  await ask(
    "/api/v1/readings",
    {},
    {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({namespace, device: name, sensor, value, type: "text"}),
    },
  );
}

// A form that adds the chart that is seen to a dashboard. `seen()`: {list, from}.
export function keepForm(seen) {
  const input = make("input", {
    id: "keep-name",
    name: "name",
    list: "keep-names",
    required: true,
    maxlength: 64,
    autocomplete: "off",
  });
  const names = make("datalist", {id: "keep-names"});
  const result = make("p", {role: "status"});
  const form = make(
    "form",
    {class: "keep"},
    make("label", {for: "keep-name"}, "Keep this chart in a dashboard"),
    make("div", {class: "buttons"}, input, make("button", {type: "submit"}, "Keep")),
    names,
    result,
  );
  input.addEventListener(
    "focus",
    async () => {
      try {
        const known = await allDashboards();
        fill(
          names,
          known.map((each) => make("option", {value: each.name})),
        );
      } catch {
        // Keeping says why.
      }
    },
    {once: true},
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    const {list, from} = seen();
    try {
      const known = (await allDashboards()).find((each) => each.name === name);
      if (known?.charts.length >= chartsMax) throw new Error(`It has ${chartsMax} charts, the most.`);
      await keep({name, from: known?.from ?? from, charts: [...(known?.charts ?? []), list]});
      fill(result, "Kept in ", make("a", {href: addressOf("dashboard", {name})}, name), ".");
    } catch (error) {
      fill(result, error.message);
    }
  });
  return form;
}

// One chart of a dashboard: its series' last values, and their course.
function panel(list, remove) {
  const canvas = make("canvas", {class: "chart small", role: "img"});
  const legend = make("p", {class: "legend"});
  const bands = make("div", {});
  const note = make("p", {class: "soft", role: "status"});
  const title = list.map(nameOf).join(", ");
  const link = make("a", {}, title);
  let shown = [];
  const element = make(
    "article",
    {class: "panel"},
    make(
      "h2",
      {},
      link,
      make("button", {type: "button", class: "icon", "aria-label": `Remove ${title}`, onclick: remove}, "×"),
    ),
    legend,
    canvas,
    bands,
    note,
  );

  function paint(from, to) {
    const numbers = shown.filter((each) => each.info?.kind === "number");
    const holes = shown
      .flatMap((each) => each.holes ?? each.leftOut ?? [])
      .map((hole) => ({
        from: Date.parse(hole.from ?? "") || from,
        to: Date.parse(hole.to ?? "") || to,
      }));
    canvas.hidden = numbers.length === 0;
    if (!canvas.hidden) {
      canvas.setAttribute("aria-label", `${title}, ${time(from)} to ${time(to)}`);
      draw(canvas, {
        list: numbers.map(({points, gap, ink}) => ({points, gap, ink: `--${ink}`})),
        holes,
        from,
        to,
        height: chartHeight,
      });
    }
    for (const each of shown) if (each.canvas) drawBand(each.canvas, {points: each.points, holes, from, to});
  }

  async function load(from, to, signal) {
    const width = Math.max(200, element.clientWidth);
    shown = await Promise.all(
      list.map(async (series, i) => {
        const each = {series, ink: `series-${i + 1}`, points: [], gap: Infinity};
        try {
          each.info = await describe(series, signal);
          if (each.info.kind === "bytes") return each;
          Object.assign(each, await read(series, each.info, from, to, Math.min(500, width / 2), signal));
          each.gap = gapMs(each.points, each.every);
        } catch (error) {
          if (signal.aborted || ["sign-in", "away", "later"].includes(error.kind)) throw error;
          each.trouble = error.message;
        }
        return each;
      }),
    );
    fill(
      legend,
      shown.map(({series, info, ink, trouble}) =>
        make(
          "span",
          {class: `key ${ink}`},
          list.length > 1 && make("span", {class: "soft"}, `${nameOf(series)} `),
          make(
            "strong",
            {class: trouble && "bad"},
            trouble ?? (info.kind === "bytes" ? many(info.count, "file") : valueText(info.last ?? "–")),
          ),
        ),
      ),
    );
    fill(
      bands,
      shown
        .filter((each) => each.info?.kind === "state")
        .map((each) => {
          each.canvas = make("canvas", {
            class: "band",
            height: bandHeight,
            role: "img",
            "aria-label": `${nameOf(each.series)}: ${valueText(each.info.last ?? "no state")}`,
          });
          return each.canvas;
        }),
    );
    const last = Math.max(0, ...shown.map(({info}) => info?.lastMs ?? 0));
    const isCut = shown.some(({leftOut}) => leftOut?.length > 0);
    note.textContent = [
      last ? `last ${ago(last)}` : "no readings yet",
      isCut && "hatched: readings that cannot be read",
    ]
      .filter(Boolean)
      .join(" · ");
    paint(from, to);
  }
  const aim = (from) => link.setAttribute("href", addressOf("look", {s: list.map(textOf), from}));
  return {element, load, paint, aim};
}

export async function showDashboard(content, signal) {
  const {given} = current();
  const name = given.get("name") ?? "";
  const board = (await allDashboards(signal)).find((each) => each.name === name);
  if (!board) {
    fill(
      content,
      make("h1", {}, "Dashboard"),
      make("p", {}, `No dashboard is called “${name}”. `, make("a", {href: "#/dashboards"}, "All dashboards")),
    );
    return;
  }
  let from = lengthOf(given.get("from")) ? given.get("from") : board.from;
  let isWall = given.get("wall") === "1";
  const root = document.documentElement;
  const sure = make("div", {});
  const result = make("p", {role: "status", class: "bad"});
  const range = () => {
    const now = Date.now();
    return [now - lengthOf(from), now];
  };

  async function change(charts) {
    try {
      await keep({...board, charts, from});
      await showDashboard(content, signal);
    } catch (error) {
      result.textContent = error.message;
    }
  }
  const panels = board.charts.map((list, i) =>
    panel(list, () => change(board.charts.filter((_, each) => each !== i))),
  );
  const load = () => Promise.all(panels.map((each) => each.load(...range(), signal)));
  const paint = () => panels.forEach((each) => each.paint(...range()));

  const buttons = spans.map(([text, label]) =>
    make(
      "button",
      {
        type: "button",
        "data-span": text,
        onclick: () => {
          from = text;
          mark();
          load().catch(report);
        },
      },
      label,
    ),
  );
  function mark() {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.span === from));
    panels.forEach((each) => each.aim(from));
    adjust("dashboard", {name, from, wall: isWall ? "1" : ""});
  }
  function wall(wanted) {
    isWall = wanted;
    root.classList.toggle("wall", isWall);
    leave.hidden = !isWall;
    mark();
    paint();
  }
  const leave = make(
    "button",
    {
      type: "button",
      class: "leave",
      onclick: () => {
        if (document.fullscreenElement) document.exitFullscreen();
        wall(false);
      },
    },
    "Leave the wall",
  );
  function askRemoval() {
    askToBeSure(sure, {
      told: make("p", {class: "verdict warn"}, `The dashboard ${name} goes, not the readings that it shows.`),
      name,
      label: "Erase the dashboard",
      act: async () => {
        await json(
          "/api/v1/erase",
          {ns: namespace, select: deviceSelector(name), wait: "10s"},
          {method: "POST"},
        );
        go("dashboards");
        return "It is erased.";
      },
    });
  }
  fill(
    content,
    make("h1", {}, name),
    make(
      "div",
      {class: "tools", role: "toolbar", "aria-label": "Dashboard"},
      buttons,
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            root.requestFullscreen().catch(() => {}); // the wall fills the window then
            wall(true);
          },
        },
        "Wall",
      ),
      make("button", {type: "button", onclick: () => change(board.charts)}, "Keep this span"),
      make("button", {type: "button", class: "danger", onclick: askRemoval}, "Erase"),
    ),
    result,
    sure,
    panels.length > 0
      ? make(
          "div",
          {class: "panels"},
          panels.map((each) => each.element),
        )
      : make("p", {}, "It has no chart yet: look at series, and keep their chart here."),
    leave,
  );
  wall(isWall);
  const size = new ResizeObserver(paint);
  size.observe(content);
  const whileSeen = {signal};
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, whileSeen);
  document.addEventListener(
    "fullscreenchange",
    () => {
      if (!document.fullscreenElement && isWall) wall(false);
    },
    whileSeen,
  );
  signal.addEventListener("abort", () => {
    size.disconnect();
    root.classList.remove("wall");
  });
  await load();
  repeat(load, refreshMs, signal);
}

export async function showDashboards(content, signal) {
  const list = await allDashboards(signal);
  fill(
    content,
    make("h1", {}, "Dashboards"),
    list.length > 0
      ? table(
          "Charts kept by name, in this store",
          ["Dashboard", "Charts", "Kept"],
          list.map((each) => [
            make("a", {href: addressOf("dashboard", {name: each.name})}, each.name),
            [each.charts.length, "number"],
            [ago(each.savedMs), "soft"],
          ]),
        )
      : make(
          "p",
          {},
          "There is none yet. Find series above, look at them, and keep their chart in a dashboard.",
        ),
  );
}
