// The routes of the local Slack that the page talks to.

import { world } from "./world.js";

async function post(path, body) {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user: world.state.you, ...body }),
    });
    const answer = await response.json();
    return response.ok ? answer : { ...answer, ok: false };
  } catch (error) {
    // A lost connection or a body that is no JSON: the person sees that it did not work.
    return { ok: false, error: String(error) };
  }
}

/** GET /ui/state for a person; without one, the server picks who you are. Throws when it cannot be had. */
export async function fetchState(user) {
  const response = await fetch(user ? `/ui/state?user=${encodeURIComponent(user)}` : "/ui/state");
  if (!response.ok) throw new Error(`GET /ui/state answered ${response.status}`);
  return response.json();
}

const pendingInputs = new Set();

/** Store the value of an input element without telling the app. */
export function sendInput(container, blockId, actionId, value) {
  const sent = post("/ui/input", { container, block_id: blockId, action_id: actionId, value });
  pendingInputs.add(sent);
  return sent.finally(() => pendingInputs.delete(sent));
}

/** Act on an element; answers once the app has acknowledged. Inputs typed before it arrive before it. */
export async function sendAction(container, blockId, actionId, value) {
  await Promise.all(pendingInputs);
  const body = { container, block_id: blockId, action_id: actionId };
  return post("/ui/action", value === undefined ? body : { ...body, value });
}

/** Submit a modal; `values` maps block ids to action ids to values. */
export async function submitView(viewId, values) {
  await Promise.all(pendingInputs);
  return post("/ui/submit", { view_id: viewId, values });
}

export const closeView = (viewId) => post("/ui/close", { view_id: viewId });
export const openHome = () => post("/ui/home", {});
export const skip = (seconds) => post("/ui/skip", { seconds });
export const markRead = (channel) => post("/ui/read", { channel });
export const openDm = (userId) => post("/ui/dm", { with: userId });

/** Post a message, or run a slash command when the text starts with a slash. */
export function say(channel, text, threadTs) {
  return post("/ui/say", threadTs ? { channel, text, thread_ts: threadTs } : { channel, text });
}

/** Run a shortcut by its callback id; `on` is `{channel, ts}` of a message for a message shortcut. */
export const runShortcut = (callbackId, on) => post("/ui/shortcut", { callback_id: callbackId, ...on });

const RETRY_MS = 1000;

/**
 * Follow GET /ui/stream for a person. `onChange` runs after each change and after each reconnection,
 * `onLink(up)` when the connection comes or goes. Returns a function that stops it.
 */
export function follow(user, { onChange, onLink }) {
  let source = null;
  let timer = null;
  const connect = () => {
    source = new EventSource(`/ui/stream?user=${encodeURIComponent(user)}`);
    source.addEventListener("open", () => {
      onLink(true);
      onChange();
    });
    source.addEventListener("changed", onChange);
    source.addEventListener("error", () => {
      onLink(false);
      // The browser reconnects by itself, but gives up after an answer that is no event stream.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(connect, RETRY_MS);
    });
  };
  connect();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
