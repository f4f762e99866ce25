// Who looks: a token that is kept for this tab alone, in no URL and no cookie.
const key = "edgecase-token";
const purposeKey = "edgecase-purpose";
const watchers = [];

export const token = () => sessionStorage.getItem(key) ?? "";

export function signIn(text) {
  sessionStorage.setItem(key, text.trim());
  tell();
}

export function signOut() {
  sessionStorage.removeItem(key);
  sessionStorage.removeItem(purposeKey);
  tell();
}

// What readings are looked at for, as it was stated in this tab; "": nothing was.
export const purpose = () => sessionStorage.getItem(purposeKey) ?? "";

export function statePurpose(text) {
  if (text.trim()) sessionStorage.setItem(purposeKey, text.trim());
  else sessionStorage.removeItem(purposeKey);
}

// `watcher` is called whenever somebody has signed in or out.
export function onChange(watcher) {
  watchers.push(watcher);
}

function tell() {
  for (const watcher of watchers) watcher();
}
