// Spans of time that end now, as addresses and buttons have them: "-1h".
export const spans = [
  ["-15m", "15 min"],
  ["-1h", "1 h"],
  ["-6h", "6 h"],
  ["-1d", "1 d"],
  ["-7d", "7 d"],
  ["-30d", "30 d"],
  ["-365d", "1 y"],
];
const unitsMs = {s: 1e3, m: 6e4, h: 36e5, d: 864e5};

// Milliseconds; null: it is none.
export function lengthOf(text) {
  const found = /^-(\d+)([smhd])$/.exec(text ?? "");
  return found ? Number(found[1]) * unitsMs[found[2]] : null;
}
