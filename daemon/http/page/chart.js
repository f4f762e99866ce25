// Draws series into a canvas: lines with the band between minimum and maximum, gaps as gaps, and
// hatches where readings cannot be had. It knows no server and keeps nothing.
import {clock, number, zoneMinutes} from "./words.js";

const pad = {left: 52, right: 10, top: 10, bottom: 24};
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [1, 2]];

const minute = 60000,
  hour = 60 * minute,
  day = 24 * hour;
const timeSteps = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  1e3,
  2e3,
  5e3,
  1e4,
  15e3,
  3e4,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  7 * day,
  14 * day,
  28 * day,
  56 * day,
  91 * day,
  182 * day,
  365 * day,
  730 * day,
  1825 * day,
];

// Multiples of a round step between two values, at most about `most` of them.
function ticks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const list = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) list.push(i * step + 0); // never -0
  return list;
}

function timeTicks(from, to, most) {
  const step = timeSteps.find((each) => (to - from) / each <= most) ?? timeSteps.at(-1);
  const ahead = zoneMinutes(from) * minute;
  const list = [];
  for (let t = Math.ceil((from + ahead) / step) * step - ahead; t <= to; t += step) list.push(t);
  return {list, step};
}

function timeText(t, step) {
  if (step >= 28 * day) return clock(t, {month: "short", year: "numeric"});
  if (step >= day) return clock(t, {day: "numeric", month: "short"});
  if (step >= minute) {
    const text = clock(t, {hour: "2-digit", minute: "2-digit"});
    return text === "00:00" ? clock(t, {day: "numeric", month: "short"}) : text;
  }
  if (step >= 1000) return clock(t, {hour: "2-digit", minute: "2-digit", second: "2-digit"});
  return clock(t, {minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3});
}

// The lowest and highest value, with some air.
export function reach(list) {
  let low = Infinity,
    high = -Infinity;
  for (const {points} of list) {
    for (const {min, max} of points) {
      if (min < low) low = min;
      if (max > high) high = max;
    }
  }
  if (low > high) return [0, 1];
  const air = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return [low - air, high + air];
}

// Where times lie from left to right, for who points at them.
export function scaleOf(width, from, to) {
  const inner = Math.max(1, width - pad.left - pad.right);
  return {
    x: (t) => pad.left + ((t - from) / (to - from)) * inner,
    t: (x) => from + ((x - pad.left) / inner) * (to - from),
    left: pad.left,
    right: width - pad.right,
    inner,
  };
}

function runs(points, gap) {
  const list = [];
  points.forEach((point, i) => {
    if (i === 0 || point.t - points[i - 1].t > gap) list.push([]);
    list.at(-1).push(point);
  });
  return list;
}

export function context(canvas, height) {
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name).trim();
  pen.font = `11px ${style.fontFamily}`;
  return {pen, width, height, colour};
}

export function hatch(pen, left, right, top, bottom, ink) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, bottom - top);
  pen.clip();
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = left - (bottom - top); x < right; x += 7) {
    pen.moveTo(x, bottom);
    pen.lineTo(x + bottom - top, top);
  }
  pen.stroke();
  pen.restore();
}

function axes({pen, width, height, colour}, scale, y, [low, high], from, to) {
  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--soft");
  pen.lineWidth = 1;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of ticks(low, high, Math.max(2, (height - 40) / 44))) {
    const at = Math.round(y(value)) + 0.5;
    pen.beginPath();
    pen.moveTo(scale.left, at);
    pen.lineTo(scale.right, at);
    pen.stroke();
    pen.fillText(number(value, 5), scale.left - 6, at);
  }
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  const {list, step} = timeTicks(from, to, Math.max(2, width / 90));
  for (const t of list) {
    const half = pen.measureText(timeText(t, step)).width / 2;
    if (scale.x(t) + half > width || scale.x(t) - half < 0) continue;
    pen.fillText(timeText(t, step), scale.x(t), height - 7);
  }
}

function line({pen}, points, gap, x, y, ink, dash) {
  pen.strokeStyle = ink;
  pen.fillStyle = ink;
  for (const run of runs(points, gap)) {
    pen.globalAlpha = 0.16;
    pen.beginPath();
    run.forEach((point, i) => pen[i ? "lineTo" : "moveTo"](x(point.t), y(point.max)));
    [...run].reverse().forEach((point) => pen.lineTo(x(point.t), y(point.min)));
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    pen.setLineDash(dash);
    pen.beginPath();
    run.forEach((point, i) => pen[i ? "lineTo" : "moveTo"](x(point.t), y(point.mean)));
    pen.stroke();
    pen.setLineDash([]);
    if (run.length > 1) continue;
    pen.beginPath();
    pen.arc(x(run[0].t), y(run[0].mean), 2.4, 0, 7);
    pen.fill();
  }
}

// list: [{points, gap, colour: "--series-1"}]; holes: [{from, to}]; at: a time that is pointed at;
// marked: [from, to] that is being chosen.
export function draw(canvas, {list, holes, from, to, at, marked, height}) {
  const place = context(canvas, height);
  const {pen, colour} = place;
  const scale = scaleOf(place.width, from, to);
  const bounds = reach(list);
  const y = (value) =>
    pad.top + ((bounds[1] - value) / (bounds[1] - bounds[0])) * (height - pad.top - pad.bottom);
  axes(place, scale, y, bounds, from, to);
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, 0, scale.inner, height - pad.bottom + 1);
  pen.clip();
  for (const hole of holes) {
    const left = Math.max(scale.left, scale.x(hole.from));
    const right = Math.max(left + 3, Math.min(scale.right, scale.x(hole.to)));
    hatch(pen, left, right, pad.top, height - pad.bottom, colour("--bad"));
  }
  list.forEach(({points, gap, ink}, i) =>
    line(place, points, gap, scale.x, y, colour(ink), dashes[i % dashes.length]),
  );
  if (marked) {
    pen.fillStyle = colour("--accent");
    pen.globalAlpha = 0.15;
    const [left, right] = marked.map(scale.x).sort((a, b) => a - b);
    pen.fillRect(left, 0, right - left, height - pad.bottom);
    pen.globalAlpha = 1;
  }
  if (at !== null && at !== undefined) {
    pen.strokeStyle = colour("--soft");
    pen.beginPath();
    pen.moveTo(Math.round(scale.x(at)) + 0.5, pad.top);
    pen.lineTo(Math.round(scale.x(at)) + 0.5, height - pad.bottom);
    pen.stroke();
    pen.fillStyle = colour("--paper");
    list.forEach(({points, ink}) => {
      const point = nearest(points, at);
      if (!point) return;
      pen.strokeStyle = colour(ink);
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(scale.x(point.t), y(point.mean), 3.5, 0, 7);
      pen.fill();
      pen.stroke();
    });
  }
  pen.restore();
}

// The point whose time is next to `t`; points are in order.
export function nearest(points, t) {
  let low = 0,
    high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].t < t) low = middle + 1;
    else high = middle;
  }
  const before = points[low - 1],
    after = points[low];
  if (!before || !after) return before ?? after;
  return t - before.t < after.t - t ? before : after;
}
