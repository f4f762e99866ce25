// Erasing for good: what would go, the device's name typed, the certificate at the end; and the
// certificates of before.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {deviceSelector} from "./series.js";
import {askToBeSure, deviceOptions, field} from "./sure.js";
import {offer} from "./take.js";
import {bytes, count, many, time} from "./words.js";

const waitSeconds = 10;

const when = (text) => (text ? time(Date.parse(text)) : "–");
const levels = {
  physical: "overwritten where it lay on the drives",
  cryptographic: "its keys are destroyed, so that nobody can read what may be left",
  logical: "removed and never shown again; a drive that copies may keep traces",
};

function showCertificate(certificate) {
  const save = () =>
    offer(
      `edgecase-certificate-${certificate.id}.json`,
      "application/json",
      JSON.stringify(certificate, null, 2),
    );
  return make(
    "section",
    {class: "certificate"},
    make("h2", {}, `Certificate ${certificate.id}`),
    make(
      "p",
      {class: certificate.state === "gone" ? "verdict good" : "verdict warn"},
      certificate.gone
        ? `Gone at ${when(certificate.gone)}: ${levels[certificate.level] ?? certificate.level}.`
        : "Nobody sees it any more; its bytes are still being removed from the drives. Come back to this list for the signed certificate.",
    ),
    certificate.level_why && make("p", {}, `Why this level: ${certificate.level_why}.`),
    make(
      "pre",
      {tabindex: 0, role: "region", "aria-label": "The certificate as it is kept"},
      JSON.stringify(certificate, null, 2),
    ),
    make("button", {type: "button", onclick: save}, "Save the certificate"),
  );
}

function told(preview, device) {
  return [
    make("h2", {}, `This will go, from ${device}`),
    make(
      "p",
      {class: "verdict warn"},
      `${many(preview.readings, "reading")}, ${bytes(preview.bytes)}, of ` +
        `${many(preview.series, "series", "series")}: ${levels[preview.level] ?? preview.level}. It can not be taken back.`,
    ),
    preview.level_why && make("p", {}, `Why this level: ${preview.level_why}.`),
    table(
      "Series that are matched",
      ["Sensor", "Readings", "Bytes", "First", "Last"],
      (preview.matched ?? []).map((each) => [
        each.sensor,
        [count(each.readings), "number"],
        [bytes(each.bytes), "number"],
        when(each.first),
        when(each.last),
      ]),
    ),
  ];
}

export async function showErase(content, signal) {
  const options = await deviceOptions("erase-devices", json, signal);
  const {erasures} = await json("/api/v1/erasures", {ns: "*"}, {signal});
  const next = make("div", {});
  const form = make(
    "form",
    {class: "fields"},
    field("Namespace", {id: "erase-ns", name: "ns", value: "default", required: true}),
    field("Device", {id: "erase-device", name: "device", list: "erase-devices", required: true}),
    field(
      "From",
      {id: "erase-from", name: "from", placeholder: "its first reading"},
      "as -30d or 2026-01-31T12:00:00Z",
    ),
    field("To", {id: "erase-to", name: "to", placeholder: "its last reading"}),
    options,
    make("button", {type: "submit", class: "main"}, "Show what would go"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const {ns, device, from, to} = Object.fromEntries(new FormData(form));
    const asked = {ns, select: deviceSelector(device), from, to};
    fill(next, make("p", {role: "status"}, "Looking…"));
    try {
      const preview = await json("/api/v1/erase/preview", asked, {signal});
      askToBeSure(next, {
        told: told(preview, device),
        name: device,
        label: `Erase for good`,
        act: async () =>
          showCertificate(
            await json(
              "/api/v1/erase",
              {...asked, wait: `${waitSeconds}s`, yes: preview.everything ? "true" : ""},
              {method: "POST"},
            ),
          ),
      });
    } catch (error) {
      fill(next, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  fill(
    content,
    make("h1", {}, "Erase"),
    make(
      "p",
      {class: "soft"},
      "Erased means gone: from both drives, the log and memory, with a certificate that says how far.",
    ),
    form,
    next,
    erasures.length > 0
      ? table(
          "Certificates, newest first",
          ["Number", "Asked", "State", "Level", "Readings", ""],
          erasures.map((each) => [
            each.id,
            when(each.asked),
            each.state,
            each.level ?? "",
            [count(each.readings ?? 0), "number"],
            make("button", {type: "button", onclick: () => fill(next, showCertificate(each))}, "Show"),
          ]),
        )
      : make("p", {class: "soft"}, "Nothing was erased yet."),
  );
}
