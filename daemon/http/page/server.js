// Asks the daemon that served this page. What fails becomes a Trouble, with a sentence that says
// what is the matter and what to do.
import {purpose, token} from "./session.js";

// Tells views of this page apart: the audit log has one record of each a minute.
const view = Math.random().toString(36).slice(2);
const patienceMs = 20000;

export class Trouble extends Error {
  constructor(kind, sentence) {
    super(sentence);
    this.kind = kind; // away, sign-in, scope, nothing, later, wrong
  }
}

function kindOf(status) {
  if (status === 401) return "sign-in";
  if (status === 403) return "scope";
  if (status === 404) return "nothing";
  if (status === 429 || status === 503) return "later";
  return "wrong";
}

async function troubleOf(answer) {
  let told = "";
  try {
    told = (await answer.json()).error?.message ?? "";
  } catch {
    // Something between here and the daemon has answered.
  }
  const kind = kindOf(answer.status);
  const sentences = {
    "sign-in": token()
      ? "This token is not good, or no longer: it expired or was revoked. Sign in with another one."
      : "A token is needed here.",
    scope: `This token may not do that: ${told}. Sign in with one of a wider scope.`,
    nothing: `There is no such thing: ${told}.`,
    later: `The daemon cannot do it now: ${told}. It is asked again.`,
    wrong: `The daemon answered ${answer.status}: ${told || "no reason was given"}.`,
  };
  return new Trouble(kind, sentences[kind]);
}

export function target(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null || value === "") continue;
    for (const each of [value].flat()) query.append(name, each);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// The answer to a request, good; throws a Trouble, or the signal's reason.
export async function ask(path, parameters = {}, {method = "GET", body, headers = {}, signal} = {}) {
  const late = AbortSignal.timeout(patienceMs);
  const all = {...headers, "X-EdgeCase-Page": view};
  if (token()) all.Authorization = `Bearer ${token()}`;
  let answer;
  try {
    answer = await fetch(target(path, parameters), {
      method,
      body,
      headers: all,
      credentials: "omit",
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble(
      "away",
      late.aborted
        ? "The daemon does not answer: it is busy, or the link is slow. It is asked again."
        : "The daemon cannot be reached: it is restarting, or the network is away. It is asked again.",
    );
  }
  if (!answer.ok) throw await troubleOf(answer);
  return answer;
}

export async function json(path, parameters, options) {
  return (await ask(path, parameters, options)).json();
}

// Readings as NDJSON, and what of them is left out since it cannot be read.
export async function readings(path, parameters, signal) {
  const answer = await ask(
    path,
    {...parameters, purpose: purpose()},
    {signal, headers: {"X-EdgeCase-Report": "inline"}},
  );
  let text = await answer.text();
  let leftOut = JSON.parse(answer.headers.get("X-EdgeCase-Left-Out") ?? "[]");
  if (answer.headers.get("X-EdgeCase-Report") === "inline") {
    const length = Number(text.slice(-8));
    leftOut = JSON.parse(text.slice(-8 - length, -8));
    text = text.slice(0, -8 - length);
  }
  const rows = text
    .split("\n")
    .filter((line) => line)
    .map((line) => JSON.parse(line));
  return {
    rows,
    leftOut,
    withheld: Number(answer.headers.get("X-EdgeCase-Withheld-Devices") ?? 0),
    tiers: answer.headers.get("X-EdgeCase-Tiers") ?? "",
  };
}
