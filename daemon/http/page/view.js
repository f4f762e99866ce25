// What is shown, as the part of the address behind #: `#/look?s=…&from=-1h`. A link to it shows the
// same again; the daemon never sees it.

// {name: "look", given: URLSearchParams}
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return {name: path || "home", given: new URLSearchParams(query)};
}

export function addressOf(name, given = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(given)) {
    for (const each of [value].flat()) if (each !== undefined && each !== "") query.append(key, each);
  }
  const text = query.toString().replaceAll("%2F", "/");
  return `#/${name === "home" ? "" : name}${text ? `?${text}` : ""}`;
}

export const go = (name, given) => {
  location.hash = addressOf(name, given);
};

// The same view, shown a little otherwise: no step of the browser's Back.
export const adjust = (name, given) => history.replaceState(null, "", addressOf(name, given));
