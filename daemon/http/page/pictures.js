// Series of bytes: pictures as thumbnails by time with the picture behind, newest first; of what is
// no picture its size, and the file.
import {fill, make} from "./dom.js";
import {readings} from "./server.js";
import {only} from "./series.js";
import {bytes, time} from "./words.js";

const pageSize = 12;
const pictureTypes = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/; // inside <img> none runs a script

const sizeOf = (base64) =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);

function blobOf(row) {
  const binary = atob(row.value);
  const data = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  return new Blob([data], {type: row.content_type ?? "application/octet-stream"});
}

function item(row, series) {
  const when = time(Date.parse(row.time));
  const url = URL.createObjectURL(blobOf(row));
  const type = (row.content_type ?? "").split(";")[0].trim().toLowerCase();
  const name = `${series.device}-${series.sensor}-${row.time}`.replace(/[^\w.-]/g, "_");
  const told = `${when}, ${bytes(sizeOf(row.value))}`;
  if (!pictureTypes.test(type)) {
    return make(
      "figure",
      {},
      make("a", {href: url, download: name, class: "file"}, "Save the file"),
      make("figcaption", {}, told, make("br"), type || "bytes of no stated type"),
    );
  }
  const image = make("img", {src: url, alt: `${series.device} ${series.sensor}, ${when}`, loading: "lazy"});
  image.addEventListener("error", () => image.replaceWith("This picture cannot be shown."));
  return make(
    "figure",
    {},
    make(
      "button",
      {
        type: "button",
        class: "picture",
        "aria-label": `Show the picture of ${when}`,
        onclick: () => open(url, name, told, image.alt),
      },
      image,
    ),
    make("figcaption", {}, told),
  );
}

function open(url, name, told, alt) {
  const dialog = make(
    "dialog",
    {"aria-label": alt},
    make("img", {src: url, alt}),
    make(
      "p",
      {},
      told,
      " ",
      make("a", {href: url, download: name}, "Save"),
      " ",
      make("button", {type: "button", onclick: () => dialog.close()}, "Close"),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Fills `element` with the newest of the range; answers nothing. Throws Troubles.
export async function showPictures(element, series, from, to, signal) {
  const grid = make("div", {class: "pictures"});
  const more = make("button", {type: "button", hidden: true}, "Earlier ones");
  async function page(until) {
    const {rows} = await readings(
      "/api/v1/query",
      {...only(series), from: new Date(from).toISOString(), to: until, desc: true, limit: pageSize},
      signal,
    );
    grid.append(...rows.filter((row) => row.type === "bytes").map((row) => item(row, series)));
    more.hidden = rows.length < pageSize;
    more.onclick = () => page(rows.at(-1).time).catch((error) => more.replaceWith(error.message));
    if (grid.children.length === 0) fill(grid, make("p", {}, "There is none in this span of time."));
  }
  await page(new Date(to).toISOString());
  fill(element, grid, more);
}
