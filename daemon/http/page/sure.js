// What changes or removes something: says first exactly what will go, and is done only when the
// name of it was typed.
import {fill, make} from "./dom.js";

// Fills `element` with `told` (texts and elements), a field for `name`, and a button that runs
// `act`, which answers what to show at the end. What it throws is shown, and it can be tried again.
export function askToBeSure(element, {told, name, label, act}) {
  const input = make("input", {
    type: "text",
    id: "sure-name",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "sure-told",
  });
  const button = make("button", {type: "submit", class: "danger", disabled: true}, label);
  const result = make("p", {role: "status", class: "bad"});
  input.addEventListener("input", () => {
    button.disabled = input.value !== name;
  });
  const form = make(
    "form",
    {class: "sure"},
    make("div", {id: "sure-told"}, told),
    make("label", {for: "sure-name"}, "Type ", make("strong", {}, name), " to go on"),
    input,
    button,
    result,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (input.value !== name) return;
    button.disabled = true;
    result.textContent = "It is being done…";
    try {
      fill(element, await act());
    } catch (error) {
      result.textContent = error.message;
      button.disabled = false;
    }
  });
  fill(element, form);
  input.focus();
}

// The list of devices as options of a field, for `list=`.
export async function deviceOptions(id, json, signal) {
  const {devices} = await json("/api/v1/devices", {ns: "*", limit: 500}, {signal});
  return make(
    "datalist",
    {id},
    devices.map((each) => make("option", {value: each.device}, each.namespace)),
  );
}

// A labelled field.
export function field(label, attributes, note) {
  return make(
    "div",
    {class: "field"},
    make("label", {for: attributes.id}, label),
    make("input", {autocomplete: "off", spellcheck: "false", ...attributes}),
    note && make("small", {}, note),
  );
}
