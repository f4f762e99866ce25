// What went wrong, in the one place where it is said; and what is done again and again.
import {at} from "./dom.js";

let handler = () => {};

// `given` takes what a view has thrown after it was shown.
export function handleWith(given) {
  handler = given;
}

export const report = (error) => handler(error);

export function tell(sentence) {
  at("trouble").textContent = sentence;
  at("trouble").hidden = !sentence;
}

// Until the view is left: `refresh` each `ms`, while the tab is seen.
export function repeat(refresh, ms, signal) {
  async function turn() {
    if (signal.aborted) return;
    if (document.visibilityState === "visible") {
      try {
        await refresh();
        if (!signal.aborted) tell("");
      } catch (error) {
        if (!signal.aborted) return handler(error);
      }
    }
    if (!signal.aborted) setTimeout(turn, ms);
  }
  setTimeout(turn, ms);
}
