// Tokens: which there are, making one, ending one. A new one's secret is shown once.
import {copyable, fill, make, table} from "./dom.js";
import {json} from "./server.js";
import {askToBeSure, field} from "./sure.js";
import {time} from "./words.js";

const when = (text, never) => (text ? time(Date.parse(text), false) : never);
const scopes = (each) =>
  each.admin
    ? "administrator"
    : ["read", "write", "export", "erase"]
        .filter((scope) => each[scope])
        .map((scope) => `${scope} ${[each[scope]].flat().join(" ")}`)
        .join(", ");

export async function showTokens(content, signal) {
  const {tokens} = await json("/api/v1/tokens", {}, {signal});
  const next = make("div", {});
  const form = make(
    "form",
    {class: "fields"},
    field("Namespace", {id: "token-ns", name: "ns", value: "default"}),
    field("May read", {id: "token-read", name: "read", value: "*"}, "series, as kitchen/*"),
    field("May write", {id: "token-write", name: "write"}),
    field("May export", {id: "token-export", name: "export"}),
    field("May erase", {id: "token-erase", name: "erase"}),
    field("Ends after", {id: "token-expires", name: "expires", value: "365d"}),
    make("button", {type: "submit", class: "main"}, "Make a token"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const made = await json("/api/v1/tokens", Object.fromEntries(new FormData(form)), {
        method: "POST",
        signal,
      });
      fill(
        next,
        make("p", {class: "verdict good", role: "status"}, "Made. Copy it now: it is not shown again."),
        copyable(made.token, "the token"),
      );
    } catch (error) {
      fill(next, make("p", {class: "bad", role: "status"}, error.message));
    }
  });
  const end = (each) =>
    askToBeSure(next, {
      told: make(
        "p",
        {class: "verdict warn"},
        `Whoever uses token ${each.id} (${scopes(each)}) is refused from then on.`,
      ),
      name: each.id,
      label: "End this token",
      act: async () => {
        await json("/api/v1/tokens", {id: each.id}, {method: "DELETE"});
        return make("p", {class: "verdict good", role: "status"}, `Token ${each.id} has ended.`);
      },
    });
  fill(
    content,
    make("h1", {}, "Tokens"),
    tokens.length > 0
      ? table(
          "Tokens",
          ["Id", "State", "Namespace", "May", "Ends", "Last used", ""],
          tokens.map((each) => [
            each.id,
            [each.state, each.state === "valid" ? "good" : "soft"],
            each.namespace || "all",
            scopes(each),
            when(each.ends, "never"),
            when(each.last_used, "never"),
            make("button", {type: "button", onclick: () => end(each)}, "End"),
          ]),
        )
      : make(
          "p",
          {},
          "There are none: this machine may do everything without. With the first one, everybody else needs one, " +
            "and so does this page.",
        ),
    make("h2", {}, "A new one"),
    form,
    next,
  );
}
