// What the server last told about the workspace, and look-ups in it.

import { setNow } from "./dates.js";

/** The person's view of the workspace: `state` is the body of GET /ui/state, asked for at `askedAt` (ms). */
export const world = { state: null, askedAt: 0 };

/** Take a state body that was asked for at `askedAt`, a time of `performance.now()`. */
export function learn(state, askedAt) {
  world.state = state;
  world.askedAt = askedAt;
  setNow(state.now);
}

/** The user with an id, or a stand-in that shows the bare id. */
export function userOf(id) {
  const known = world.state.users.find((user) => user.id === id);
  return (
    known ?? { id, name: id ?? "unknown", real_name: id ?? "Unknown", avatar_color: "#888888", is_bot: false }
  );
}

/** The name that people see. */
export function displayName(user) {
  return user.real_name || user.name;
}

/** A user group's handle, or its id when it is not known. */
export const handleOf = (id) => world.state.groups.find((group) => group.id === id)?.handle ?? id;

/** A channel's name, if the person may know it. */
export const channelName = (id) => channelOf(id)?.name ?? world.state.elsewhere[id];

export function channelOf(id) {
  return world.state.channels.find((channel) => channel.id === id) ?? null;
}

export function people() {
  return world.state.users.filter((user) => !user.is_bot);
}

/** The app whose Home tab the page shows: askgate, the first of the apps. */
export function homeApp() {
  const bots = apps();
  return bots.find((bot) => bot.name === "askgate") ?? bots[0] ?? null;
}

export function apps() {
  return world.state.users.filter((user) => user.is_bot);
}

/** The direct message channel with a user, or null when it was never opened. */
export function dmWith(userId) {
  return world.state.channels.find((channel) => channel.kind === "dm" && channel.with === userId) ?? null;
}

export function messagesIn(channelId) {
  return world.state.messages[channelId] ?? [];
}

/** True when a message belongs into a thread rather than into the channel's own list. */
export function isReply(message) {
  return Boolean(message.thread_ts) && message.thread_ts !== message.ts;
}

/** A message's replies, oldest first, private ones for this person included. */
export function repliesTo(channelId, ts) {
  return messagesIn(channelId).filter((message) => isReply(message) && message.thread_ts === ts);
}
