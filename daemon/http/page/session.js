// Who looks: a token that is kept for this tab alone, in no URL and no cookie.
const key = "edgecase-token";
const watchers = [];

export const token = () => sessionStorage.getItem(key) ?? "";

export function signIn(text) {
  sessionStorage.setItem(key, text.trim());
  tell();
}

export function signOut() {
  sessionStorage.removeItem(key);
  tell();
}

// `watcher` is called whenever somebody has signed in or out.
export function onChange(watcher) {
  watchers.push(watcher);
}

function tell() {
  for (const watcher of watchers) watcher();
}
