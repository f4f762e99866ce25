// What a chart shows of a series: readings as they are where there are few, else windows with
// minimum, mean and maximum, so that never a million points come here.
import {json, readings} from "./server.js";
import {only} from "./series.js";

const rawMax = 4000;
const stepsMs = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
  72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 2592e6,
];

const unitsMs = {s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5, y: 31536e6};
// "1h30m", as the daemon writes the length of a tier's windows.
const durationMs = (text) =>
  [...text.matchAll(/(\d+)([smhdwy])/g)].reduce((sum, [, many, unit]) => sum + many * unitsMs[unit], 0);
// Of tiers that the answer could not be made of: when they end, and the lengths of their windows, the finest first.
function missedTiers(note) {
  const [, before, lengths] = /none before (\S+): windows of ([\w, ]+) are kept there/.exec(note) ?? [];
  if (!before) return null;
  return {before: Date.parse(before), lengths: lengths.split(", ").map(durationMs).sort((a, b) => a - b)};
}

const iso = (ms) => new Date(ms).toISOString();
const kindOf = (value, type) => {
  if (type === "bytes" || type === "blob") return "bytes";
  return typeof value === "number" ? "number" : "state";
};

// {kind, last, lastMs, first, count, rate, isThinned}: what is known of a series before its readings are read.
export async function describe(series, signal) {
  const [listed, last, oldest] = await Promise.all([
    json("/api/v1/series", only(series), {signal}),
    readings("/api/v1/last", only(series), signal).catch((error) => {
      // The drive that it lies on may be away; what others know of the series is shown.
      if (error.kind !== "later") throw error;
      return {rows: [], withheld: 0};
    }),
    // A window, where readings have become some.
    readings("/api/v1/query", {...only(series), tiers: true, limit: 1}, signal).catch(() => ({rows: []})),
  ]);
  const isThinned = Boolean(oldest.rows[0]?.window);
  const info = listed.series[0] ?? {};
  const first = isThinned ? oldest.rows[0].time : info.first;
  const row = last.rows[0];
  return {
    kind: row ? kindOf(row.value, row.type) : "number",
    last: row?.value,
    type: row?.type,
    lastMs: row ? Date.parse(row.time) : null,
    isThinned,
    firstMs: first ? Date.parse(first) : null,
    count: info.count ?? 0,
    rate: info.rate ?? 0,
    bytes: info.bytes ?? 0,
    isDamaged: Boolean(info.damaged),
    withheld: last.withheld,
    identity: row?.measurement ? {measurement: row.measurement, field: row.field, tags: row.tags} : null,
  };
}

// Windows of about `points` in the range, or 0: readings as they are.
function windowMs(info, from, to, points) {
  const begin = Math.max(from, info.firstMs ?? from);
  const end = Math.min(to, Math.max(info.lastMs ?? to, Date.now()));
  if ((Math.max(0, end - begin) / 1000) * info.rate < rawMax * 0.75 || info.count < rawMax) return 0;
  return windowFor(to - from, points);
}
const windowFor = (spanMs, points) => stepsMs.find((step) => step * points >= spanMs) ?? stepsMs.at(-1);

async function windows(series, from, to, every, aggregates, signal) {
  const given = {...only(series), from: iso(from), to: iso(to), every: `${every}ms`};
  const answers = await Promise.all(
    aggregates.map((agg) => readings("/api/v1/query", {...given, agg}, signal)),
  );
  const points = new Map();
  const lacking = new Set(); // windows that cannot be answered
  answers.forEach(({rows}, i) => {
    for (const row of rows) {
      const t = Date.parse(row.time);
      if (row.value === null) {
        lacking.add(t);
        continue;
      }
      const point = points.get(t) ?? {t};
      point[aggregates[i]] = row.value;
      points.set(t, point);
    }
  });
  return {
    points: [...points.values()].filter(({t}) => !lacking.has(t)).sort((a, b) => a.t - b.t),
    leftOut: answers[0].leftOut,
    tiers: answers[0].tiers,
    holes: lacking.size > 0 ? holesOf(lacking, every) : undefined,
  };
}

// Neighbours are one hole.
function holesOf(lacking, every) {
  const holes = [];
  for (const t of [...lacking].sort((a, b) => a - b)) {
    const last = holes.at(-1);
    if (last?.end === t) last.end = t + every;
    else holes.push({begin: t, end: t + every});
  }
  return holes.map(({begin, end}) => ({from: iso(begin), to: iso(end)}));
}

// {points: [{t, mean, min, max}] or [{t, last}], every, leftOut: [{from, to, reason}], holes?: [{from, to}]}
// With `every` they go on from a view that was read before.
export async function read(series, info, from, to, points, signal, every) {
  const isState = info.kind === "state";
  if (every !== undefined || !isState) return readRange(series, info, from, to, points, signal, every);
  const [before, range] = await Promise.all([
    stateBefore(series, from, signal),
    readRange(series, info, from, to, points, signal),
  ]);
  return {...range, points: [...before, ...range.points]};
}

// The state in which the view begins.
async function stateBefore(series, from, signal) {
  const {rows} = await readings(
    "/api/v1/query",
    {...only(series), to: iso(from), desc: true, limit: 1},
    signal,
  );
  return rows.map((row) => pointOf(row, true));
}

// Where readings have become windows that the ones asked for are not made of, others are asked for: of the finest
// tier, and where that has none, of the next one.
async function readRange(series, info, from, to, points, signal, every) {
  const asked = await readOnce(series, info, from, to, points, signal, every);
  const missed = missedTiers(asked.tiers ?? "");
  if (!missed || info.kind === "state") return asked;
  for (const length of missed.lengths) {
    const step = stepsMs.find((ms) => ms * points >= to - from && ms % length === 0) ?? length;
    const aggregates = ["mean", "min", "max"];
    const thinned = {every: step, ...(await windows(series, from, to, step, aggregates, signal))};
    if (thinned.points.some(({t}) => t < missed.before)) return thinned;
  }
  return asked;
}

async function readOnce(series, info, from, to, points, signal, every) {
  every ??= windowMs(info, from, to, points);
  const isState = info.kind === "state";
  if (every === 0) {
    const {rows, leftOut, tiers} = await readings(
      "/api/v1/query",
      {...only(series), from: iso(from), to: iso(to), limit: rawMax + 1},
      signal,
    );
    if (rows.length <= rawMax) {
      return {every, leftOut, tiers, points: rows.map((row) => pointOf(row, isState)).filter(Boolean)};
    }
    every = windowFor(to - from, points);
  }
  const aggregates = isState ? ["last"] : ["mean", "min", "max"];
  return {every, ...(await windows(series, from, to, every, aggregates, signal))};
}

function pointOf(row, isState) {
  const t = Date.parse(row.time);
  if (isState) return {t, last: row.value};
  if (typeof row.value !== "number") return null;
  return {t, mean: row.value, min: row.value, max: row.value};
}

// From which distance on two neighbours are not joined: readings that come now and then are not.
export function gapMs(points, every) {
  if (points.length < 3) return Infinity;
  const steps = points
    .slice(1)
    .map((point, i) => point.t - points[i].t)
    .sort((a, b) => a - b);
  const usual = steps[Math.floor(steps.length / 2)];
  const long = steps[Math.floor(steps.length * 0.9)];
  return Math.max(every * 1.5, usual * 4, long * 2);
}
