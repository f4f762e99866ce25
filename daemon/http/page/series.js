// Series by their names: {namespace, device, sensor}; in addresses each is NS/DEVICE/SENSOR,
// percent-encoded. Which ones somebody likes, and looked at, this browser remembers.
const recentMax = 12;

export const textOf = (series) =>
  [series.namespace, series.device, series.sensor].map(encodeURIComponent).join("/");

export function seriesOf(text) {
  const [namespace, device, sensor] = text.split("/").map(decodeURIComponent);
  return sensor === undefined ? null : {namespace, device, sensor};
}

export const nameOf = (series) => `${series.device} · ${series.sensor}`;

const escaped = (name) => name.replace(/[\\*?]/g, "\\$&");
export const selectorOf = (series) => `${escaped(series.device)}/${escaped(series.sensor)}`;
export const deviceSelector = (device) => `${escaped(device)}/*`;

// What asks for one series.
export const only = (series) => ({ns: series.namespace, select: selectorOf(series)});

function kept(key) {
  try {
    const list = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(list) ? list.filter((text) => typeof text === "string") : [];
  } catch {
    return [];
  }
}
const keep = (key, list) => localStorage.setItem(key, JSON.stringify(list));

export const favourites = () => kept("edgecase-favourites");
export const recent = () => kept("edgecase-recent");
export const isFavourite = (series) => favourites().includes(textOf(series));

export function toggleFavourite(series) {
  const text = textOf(series);
  const others = favourites().filter((each) => each !== text);
  keep("edgecase-favourites", isFavourite(series) ? others : [...others, text]);
}

export function noteLookedAt(series) {
  const text = textOf(series);
  keep("edgecase-recent", [text, ...recent().filter((each) => each !== text)].slice(0, recentMax));
}

// Favourites, then those looked at last, then the others as they are.
export function byLiking(list) {
  const order = [...favourites(), ...recent()];
  const rank = (series) => {
    const place = order.indexOf(textOf(series));
    return place < 0 ? order.length : place;
  };
  return list
    .map((series, i) => [rank(series), i, series])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
    .map(([, , series]) => series);
}
