// Where a token is needed: a place for it, and how to get one.
import {copyable, fill, make} from "./dom.js";
import {signIn} from "./session.js";

export function showSignIn(content, why) {
  const input = make("input", {
    type: "password",
    id: "token",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
    "aria-describedby": "token-why",
  });
  const form = make(
    "form",
    {class: "sign-in"},
    make("h1", {}, "Sign in"),
    make("p", {id: "token-why"}, why),
    make("label", {for: "token"}, "Token"),
    input,
    make("button", {type: "submit", class: "main"}, "Sign in"),
    make("p", {class: "soft"}, "It is kept for this tab alone, and gone when you sign out or close it."),
    make("h2", {}, "No token yet?"),
    make("p", {}, "Whoever may use the board makes one there:"),
    copyable("edgecase token create --read '*'", "the command for a token that reads"),
    make("p", {}, "To set retention, erase and make tokens here as well:"),
    copyable("edgecase token create --admin", "the command for an administrator's token"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) signIn(input.value);
  });
  fill(content, form);
  input.focus();
}
