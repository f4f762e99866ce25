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

// A table whose first row names the columns; cells are texts, elements, or [text, class].
export function table(caption, columns, rows, kind = "") {
  const cell = (content) =>
    Array.isArray(content) ? make("td", {class: content[1]}, content[0]) : make("td", {}, content);
  const isNumber = (i) => rows.some((cells) => Array.isArray(cells[i]) && cells[i][1] === "number");
  return make(
    "div",
    {class: `wide ${kind}`, tabindex: 0, role: "region", "aria-label": caption},
    make(
      "table",
      {},
      make("caption", {}, caption),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          columns.map((name, i) => make("th", {scope: "col", class: isNumber(i) && "number"}, name)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((cells) => make("tr", {}, cells.map(cell))),
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
