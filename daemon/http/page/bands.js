// Draws a series of states (text, yes and no) as a band: one colour a state, its name in it.
import {context, hatch, scaleOf} from "./chart.js";
import {valueText} from "./words.js";

const inks = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];
const top = 6,
  bottom = 34,
  height = 44;

// Which colour stands for which state, the most usual first.
export function inksOf(points) {
  const seen = new Map();
  for (const {last} of points) seen.set(String(last), (seen.get(String(last)) ?? 0) + 1);
  const order = [...seen.keys()].sort((a, b) => seen.get(b) - seen.get(a));
  return new Map(order.map((state, i) => [state, inks[Math.min(i, inks.length - 1)]]));
}

export function drawBand(canvas, {points, holes, from, to, at}) {
  const {pen, width, colour} = context(canvas, height);
  const scale = scaleOf(width, from, to);
  const colours = inksOf(points);
  const end = Math.min(to, Date.now());
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, 0, scale.inner, height);
  pen.clip();
  points.forEach((point, i) => {
    if (i > 0 && String(points[i - 1].last) === String(point.last)) return;
    let next = i + 1;
    while (next < points.length && String(points[next].last) === String(point.last)) ++next;
    const left = scale.x(point.t);
    const right = Math.max(left + 1, scale.x(points[next]?.t ?? Math.max(end, point.t)));
    pen.fillStyle = colour(colours.get(String(point.last)));
    pen.globalAlpha = 0.3;
    pen.fillRect(left, top, right - left, bottom - top);
    pen.globalAlpha = 1;
    pen.fillRect(left, top, 2, bottom - top);
    const seen = Math.max(left, scale.left) + 6;
    if (right - seen < 24) return;
    pen.save();
    pen.beginPath();
    pen.rect(seen, top, right - seen - 4, bottom - top);
    pen.clip();
    pen.fillStyle = colour("--ink");
    pen.textBaseline = "middle";
    pen.fillText(valueText(point.last), seen, (top + bottom) / 2 + 0.5);
    pen.restore();
  });
  for (const hole of holes) {
    hatch(pen, Math.max(scale.left, scale.x(hole.from)), scale.x(hole.to), top, bottom, colour("--bad"));
  }
  if (at !== null && at !== undefined) {
    pen.fillStyle = colour("--soft");
    pen.fillRect(Math.round(scale.x(at)), 0, 1, height);
  }
  pen.restore();
}
export const bandHeight = height;
