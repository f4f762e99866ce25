// The search: series whose names, tags or labels hold what is typed, from the daemon, a page at a
// time; those that one likes, or looked at, first. The keyboard does all of it: / to begin, arrows
// and Enter to choose, Control and Enter to add to the chart, Escape to leave.
import {at, fill, make} from "./dom.js";
import {json} from "./server.js";
import {byLiking, favourites, noteLookedAt, recent, seriesOf, textOf} from "./series.js";
import {current, go} from "./view.js";

const dashboardsIn = "_views";
const waitMs = 60; // for the next letter
const pageSize = 50;

const input = make("input", {
  type: "search",
  id: "words",
  placeholder: "Find devices, sensors, tags",
  autocomplete: "off",
  spellcheck: "false",
  role: "combobox",
  "aria-expanded": "false",
  "aria-controls": "found",
  "aria-autocomplete": "list",
  "aria-label": "Find devices, sensors, tags or label=value",
});
const list = make("ul", {id: "found", role: "listbox", "aria-label": "Series found", hidden: true});
const note = make("p", {id: "found-note", role: "status", hidden: true});

let shown = [];
let chosen = -1;
let asked = null; // the request under way
let next = null; // where the next page begins

function close() {
  asked?.abort();
  list.hidden = true;
  note.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function mark(index) {
  chosen = index;
  [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
  const item = list.children[index];
  if (!item) return input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", item.id);
  item.scrollIntoView({block: "nearest"});
  if (index === shown.length - 1 && next !== null) search(next);
}

function choose(series, adds) {
  const view = current();
  const others = adds && view.name === "look" ? view.given.getAll("s") : [];
  const from = view.name === "look" ? (view.given.get("from") ?? undefined) : undefined;
  const to = view.name === "look" ? (view.given.get("to") ?? undefined) : undefined;
  close();
  input.value = "";
  if (series.namespace === dashboardsIn) return go("dashboard", {name: series.device});
  noteLookedAt(series);
  go("look", {s: [...new Set([...others, textOf(series)])], from, to});
}

function item(series, index) {
  return make(
    "li",
    {
      id: `found-${index}`,
      role: "option",
      "aria-selected": "false",
      onclick: (event) => choose(series, event.ctrlKey || event.metaKey),
    },
    make("span", {class: "star", "aria-hidden": "true"}, favourites().includes(textOf(series)) ? "★" : ""),
    make("span", {class: "device"}, series.device),
    make("span", {class: "sensor"}, series.sensor),
    series.namespace !== "default" && make("span", {class: "namespace"}, series.namespace),
  );
}

function show(found, isMore) {
  shown = isMore ? [...shown, ...found] : found;
  if (isMore) list.append(...found.map((series, i) => item(series, shown.length - found.length + i)));
  else fill(list, shown.map(item));
  list.hidden = shown.length === 0;
  input.setAttribute("aria-expanded", String(shown.length > 0));
  if (!isMore) mark(shown.length > 0 && input.value.trim() ? 0 : -1);
}

function tell(text) {
  note.textContent = text;
  note.hidden = !text;
}

async function search(offset = 0) {
  asked?.abort();
  asked = new AbortController();
  const {signal} = asked;
  const words = input.value.trim();
  const known = [...new Set([...favourites(), ...recent()])].map(seriesOf).filter(Boolean);
  if (!words && offset === 0 && known.length > 0) {
    next = null;
    tell("");
    return show(known.slice(0, 20), false);
  }
  try {
    const answer = await json("/api/v1/find", {ns: "*", q: words, limit: pageSize, offset}, {signal});
    next = answer.next;
    show(offset > 0 ? answer.found : byLiking(answer.found), offset > 0);
    tell(
      shown.length > 0
        ? ""
        : words
          ? `No series has all of “${words}” in its names.`
          : "Nothing is stored yet.",
    );
  } catch (error) {
    if (!signal.aborted) tell(error.message);
  }
}

function key(event) {
  const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8};
  if (event.key in steps) {
    event.preventDefault();
    if (list.hidden) return search();
    mark(Math.min(shown.length - 1, Math.max(0, chosen + steps[event.key])));
  } else if (event.key === "Enter") {
    event.preventDefault();
    const series = shown[Math.max(0, chosen)];
    if (!list.hidden && series) choose(series, event.ctrlKey || event.metaKey);
  } else if (event.key === "Escape") {
    event.preventDefault();
    if (list.hidden) {
      input.value = "";
      input.blur();
    }
    close();
  }
}

export function startFind() {
  let timer;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, waitMs);
  });
  input.addEventListener("focus", () => search());
  input.addEventListener("keydown", key);
  list.addEventListener("scroll", () => {
    const isLow = list.scrollTop + list.clientHeight > list.scrollHeight - 80;
    if (isLow && next !== null) {
      const from = next;
      next = null;
      search(from);
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the input keeps its focus
  input.addEventListener("blur", close);
  at("find").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
  });
  fill(at("find"), input, list, note);
}
