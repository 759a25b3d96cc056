// Where the person is: kept in the URL's hash, so that a reload, a bookmark and the back button work.

/** The place in the hash: `{as, in, thread}`, each a string or null. `in` is a channel id or "home". */
export function readPlace() {
  const parts = new URLSearchParams(location.hash.slice(1));
  return { as: parts.get("as"), in: parts.get("in"), thread: parts.get("thread") };
}

/** The hash of a place, to link to. */
export function placeHref(place) {
  const parts = new URLSearchParams();
  for (const name of ["as", "in", "thread"]) if (place[name]) parts.set(name, place[name]);
  return `#${parts}`;
}

/** Go to a place, given what changes; the back button returns. */
export function go(change) {
  location.hash = placeHref({ ...readPlace(), ...change });
}

/** Write the place without a step in the history: what the page filled in by itself. */
export function settle(place) {
  const href = placeHref(place);
  if (href !== location.hash) history.replaceState(null, "", href);
}

/** The place that a message's permanent link names: `{in, thread, ts}`, or null for any other address. */
export function linkedPlace(url) {
  const found = /^\/archives\/([A-Z0-9]+)(?:\/p(\d+)(\d{6}))?$/.exec(url.pathname);
  if (!found || url.origin !== location.origin) return null;
  const ts = found[2] ? `${found[2]}.${found[3]}` : null;
  return { in: found[1], thread: url.searchParams.get("thread_ts"), ts };
}

/** Turn the address of a permanent link into this page's own. */
export function adoptLink() {
  const place = linkedPlace(new URL(location.href));
  if (place)
    history.replaceState(null, "", `/${placeHref({ ...readPlace(), in: place.in, thread: place.thread })}`);
  return place?.ts ?? null;
}
