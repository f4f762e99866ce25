// Targets that readings are forwarded to: how each is, how far behind; pausing and going on.
import {fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {askToBeSure} from "./sure.js";
import {bytes, count, many, span} from "./words.js";

// What a state means, and whether somebody has to look.
const states = {
  current: ["has everything", "good"],
  sending: ["is being sent to", "good"],
  waiting: ["is not reached; it is tried again", "warn"],
  failing: ["fails; it is tried again", "warn"],
  denied: ["refuses who asks: its token is wrong", "bad"],
  wrong: ["is no target that can be sent to as configured", "bad"],
  paused: ["is paused", "soft"],
  "not configured": ["is configured no more", "soft"],
};

const wordsOf = ({state, why}) => `${states[state]?.[0] ?? state}${why ? `: ${why}` : ""}`;

// What went here before a target had it, or windows of it: "1,200: 1,000 expired, 200 evicted".
function unsentOf({unsent = {}, thinned_sent: sent = 0}) {
  const parts = Object.entries(unsent)
    .map(([reason, number]) => [reason, reason === "thinned" ? Math.max(number - sent, 0) : number])
    .filter(([, number]) => number > 0);
  const sum = parts.reduce((all, [, number]) => all + number, 0);
  const reasons = parts.map(([reason, number]) => `${count(number)} ${reason}`).join(", ");
  return parts.length === 0 ? "0" : `${count(sum)}: ${reasons}`;
}

// Targets that do not get what they should, for the health of all.
export const forwardConcerns = (targets) => [
  ...targets
    .filter(({state}) => ["warn", "bad"].includes(states[state]?.[1] ?? "warn"))
    .map((target) => ["warn", `The target ${target.name} ${wordsOf(target)}.`]),
  ...targets
    .filter(({apart}) => apart)
    .map(({name}) => [
      "warn",
      `The target ${name} knows another copy of this store, so what goes there is kept apart.`,
    ]),
];

export async function showForward(content, signal) {
  const {targets} = await json("/api/v1/forward", {}, {signal});
  const next = make("div", {});
  function change(target) {
    const action = target.state === "paused" ? "resume" : "pause";
    const told = make(
      "p",
      {class: "verdict warn"},
      action === "pause"
        ? `${target.name} gets nothing from then on. What is stored meanwhile waits here, and goes to it later.`
        : `${target.name} gets what has waited for it, then what comes.`,
    );
    askToBeSure(next, {
      told,
      name: target.name,
      label: action === "pause" ? "Pause" : "Go on",
      act: async () => {
        await json("/api/v1/forward", {name: target.name, action}, {method: "POST"});
        return make("p", {class: "verdict good", role: "status"}, `Done: ${target.name}, ${action}.`);
      },
    });
  }
  const row = (target) => [
    target.name,
    target.to ?? "–",
    [wordsOf(target), states[target.state]?.[1] ?? "warn"],
    [target.behind_seconds === null ? "unknown" : span(target.behind_seconds), "number"],
    [count(target.readings), "number"],
    [bytes(target.bytes), "number"],
    [count(target.undelivered), "number"],
    [unsentOf(target), "number"],
    make(
      "button",
      {type: "button", onclick: () => change(target)},
      target.state === "paused" ? "Go on" : "Pause",
    ),
  ];
  fill(
    content,
    make("h1", {}, "Forwarding"),
    targets.length === 0
      ? make(
          "p",
          {},
          "Nothing is forwarded: ",
          make("code", {}, "[[forward]]"),
          " in the configuration names targets.",
        )
      : [
          table(
            many(targets.length, "target"),
            ["Target", "To", "State", "Behind", "Readings", "Bytes", "Refused", "Unsent", ""],
            targets.map(row),
          ),
          make("p", {class: "soft"}, "What a target refused is kept by name: edgecase forward shows it."),
        ],
    next,
  );
}
