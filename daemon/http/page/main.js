// Begins the page: the frame with search, views and sign out, and one view at a time.
import {at, fill, make} from "./dom.js";
import {showAudit} from "./audit.js";
import {showDashboard, showDashboards} from "./dashboards.js";
import {showErase} from "./erase.js";
import {startFind} from "./find.js";
import {showForward} from "./forward.js";
import {showHealth} from "./health.js";
import {showHome} from "./home.js";
import {showLook} from "./look.js";
import {showMqtt} from "./mqtt.js";
import {showReport} from "./report.js";
import {showRetention} from "./retention.js";
import {json} from "./server.js";
import {onChange, signOut, token} from "./session.js";
import {showSignIn} from "./sign-in.js";
import {showTokens} from "./tokens.js";
import {handleWith, tell} from "./trouble.js";
import {addressOf, current} from "./view.js";

const views = {
  home: ["Start", showHome],
  dashboards: ["Dashboards", showDashboards],
  health: ["Health", showHealth],
  mqtt: ["MQTT", showMqtt],
  forward: ["Forward", showForward],
  retention: ["Retention", showRetention],
  erase: ["Erase", showErase],
  audit: ["Audit", showAudit],
  report: ["Report", showReport],
  tokens: ["Tokens", showTokens],
  look: [null, showLook],
  dashboard: [null, showDashboard],
};
const againMs = 3000;
const ageMs = 60_000; // between two looks whether the daemon is newer, which nothing else may show

let showing = null; // of the view at hand; aborted when it is left
let again;
let version = null; // of the daemon that this page came from

// Without a good token there is nothing to find, view or leave.
function showFrame(isUsable) {
  at("find").hidden = !isUsable;
  at("views").hidden = !isUsable;
  at("sign-out").hidden = !isUsable || !token();
}

// A view threw: what it says, and whether it is tried again.
function fail(error, content) {
  if (error.kind === "sign-in") {
    tell("");
    showFrame(false);
    return showSignIn(content, error.message);
  }
  // What threw is the page itself: it takes the daemon for another one than it is.
  tell(
    error.kind
      ? error.message
      : "This page does not understand what the daemon answered: reload it. If that does not help, " +
          "edgecase status on the board tells how it is.",
  );
  showFrame(true);
  if (error.kind === "away" || error.kind === "later") {
    again = setTimeout(() => show(false).then(checkAge), againMs);
  } else if (content.children.length === 0) {
    fill(content, make("p", {}, make("a", {href: "#/"}, "Back to the start")));
  }
  if (!["away", "later", "scope"].includes(error.kind)) checkAge();
  if (!error.kind) console.error(error);
}

// Nobody stands before such a screen who could press a button.
const isOnWall = () => current().given.get("wall") === "1";

// An older page against a newer daemon: after a restart, or where something is not as it was.
async function checkAge() {
  if (version === null) return;
  try {
    const isOld = (await json("/api/v1/status")).version !== version;
    at("outdated").hidden = !isOld;
    if (isOld && isOnWall()) {
      showing.abort(); // leaving the full screen for a new page is not leaving the wall
      location.reload();
    }
  } catch {
    // The view at hand says why.
  }
}

async function show(isNew = true) {
  clearTimeout(again);
  showing?.abort();
  const mine = new AbortController();
  showing = mine;
  const {name} = current();
  const content = at("content");
  const [title, view] = views[name] ?? views.home;
  document.title = title && name !== "home" ? `${title} · EdgeCase` : "EdgeCase";
  for (const link of at("views").children) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (isNew) {
    fill(content);
    scrollTo(0, 0);
  }
  try {
    await view(content, mine.signal);
    if (mine.signal.aborted) return;
    tell("");
    showFrame(true);
    if (!at("foot").textContent) showVersion();
  } catch (error) {
    if (!mine.signal.aborted) fail(error, content);
  }
}

async function showVersion() {
  try {
    version = (await json("/api/v1/status")).version;
    fill(
      at("foot"),
      `EdgeCase ${version} · `,
      make("kbd", {}, "/"),
      " finds, ",
      make("kbd", {}, "Ctrl Enter"),
      " adds to the chart",
    );
  } catch {
    // The view at hand says why.
  }
}

fill(
  at("views"),
  Object.entries(views)
    .filter(([, [title]]) => title)
    .map(([name, [title]]) => make("a", {href: addressOf(name), "data-view": name}, title)),
);
startFind();
at("skip").addEventListener("click", () => at("content").focus());
at("reload").addEventListener("click", () => location.reload());
at("sign-out").addEventListener("click", signOut);
addEventListener("hashchange", () => show());
onChange(() => show());
handleWith((error) => fail(error, at("content")));
setInterval(checkAge, ageMs);
show();
