// Makes elements. What they say comes from devices, so it is always text and never markup.

// make("td", {class: "number", title: "…"}, "text", element, …): `on…` are listeners, true and
// false set and leave out an attribute; children that are null, undefined or false are left out.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, String(value));
    }
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// In place of what an element held.
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

export const at = (id) => document.getElementById(id);

// A table whose first row names the columns; cells are texts, elements, or [text, class]. On a phone a
// row is a card whose lines name their columns, unless it has two; roles keep it a table for readers.
export function table(caption, columns, rows, kind = "") {
  const isNumber = (i) => rows.some((cells) => Array.isArray(cells[i]) && cells[i][1] === "number");
  function cell(content, i) {
    const [text, look] = Array.isArray(content) ? content : [content, null];
    return make("td", {role: "cell", class: look, "data-label": columns[i] || null}, text);
  }
  const head = columns.map((name, i) =>
    make("th", {role: "columnheader", scope: "col", class: isNumber(i) && "number"}, name),
  );
  return make(
    "div",
    {class: `wide ${kind}`, tabindex: 0, role: "region", "aria-label": caption},
    make(
      "table",
      {role: "table"},
      make("caption", {}, caption),
      make("thead", {role: "rowgroup"}, make("tr", {role: "row"}, head)),
      make(
        "tbody",
        {role: "rowgroup"},
        rows.map((cells) => make("tr", {role: "row"}, cells.map(cell))),
      ),
    ),
  );
}

// A text with a button that copies it.
export function copyable(text, label) {
  const button = make("button", {type: "button", "aria-label": `Copy ${label}`, onclick: copy}, "Copy");
  const code = make("code", {}, text);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Not offered over plain HTTP from elsewhere: it is marked, for the keyboard's own copying.
      getSelection().selectAllChildren(code);
      button.textContent = "Marked: copy it now";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  }
  return make("div", {class: "copyable"}, code, button);
}
