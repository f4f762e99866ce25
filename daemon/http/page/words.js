// Numbers, sizes and times as people read them.
const storedZone = "edgecase-zone";

export const isUtc = () => localStorage.getItem(storedZone) === "utc";
export const setUtc = (utc) => localStorage.setItem(storedZone, utc ? "utc" : "browser");
const zone = () => (isUtc() ? "UTC" : undefined);
export const zoneName = () => (isUtc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone);

// How many minutes the zone is ahead of UTC at that time.
export const zoneMinutes = (ms) => (isUtc() ? 0 : -new Date(ms).getTimezoneOffset());

export function number(value, digits = 6) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e12 || size < 1e-4)) return value.toExponential(3);
  return new Intl.NumberFormat("en", {maximumSignificantDigits: digits}).format(value);
}

export const count = (value) => new Intl.NumberFormat("en").format(value);

// "1 reading", "2 readings"
export const many = (value, one, several = `${one}s`) => `${count(value)} ${value === 1 ? one : several}`;

export function bytes(value) {
  if (value === null || value === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; ++unit) value /= 1024;
  return `${value.toFixed(unit && value < 100 ? 1 : 0)} ${units[unit]}`;
}

export function span(seconds) {
  const steps = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  const first = steps.findIndex(([, size]) => seconds >= size);
  const [unit, size] = steps[first];
  const whole = Math.floor(seconds / size);
  const next = steps[first + 1];
  const rest = next ? Math.floor((seconds - whole * size) / next[1]) : 0;
  return rest && whole < 10 ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

export function ago(ms) {
  const seconds = (Date.now() - ms) / 1000;
  if (seconds < -2) return `in ${span(-seconds)}`;
  return seconds < 2 ? "now" : `${span(seconds)} ago`;
}

export function time(ms, withSeconds = true) {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone: zone(),
    year: "numeric",
    month: "short",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: withSeconds ? "2-digit" : undefined,
  }).format(ms);
}

export function clock(ms, parts) {
  return new Intl.DateTimeFormat("en-GB", {timeZone: zone(), ...parts}).format(ms);
}

// What a reading says, in a line.
export function valueText(value) {
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}
