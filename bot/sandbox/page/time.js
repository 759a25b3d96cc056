// The workspace's time: what it is, two ways to skip some of it, and what a skip has changed.

import { skip } from "./api.js";
import { nowMs } from "./dates.js";
import { el, renderOnce } from "./dom.js";
import { go } from "./place.js";
import { isReply, world } from "./world.js";

const STEPS = [
  { words: "Skip 1 h", said: "1 hour", seconds: 3600 },
  { words: "Skip 1 day", said: "1 day", seconds: 86_400 },
];
/** How long after a skip what happens is taken for its doing: agents answer a moment later. */
const WATCHED_MS = 5000;
const TICK_MS = 10_000;

/** The last skip: what it was called, what there was before it, and the messages that differ since. */
let last = null;

const keyOf = (channel, message) => `${channel}/${message.ts}/${message.ephemeral ? "private" : ""}`;
const looks = (message) => JSON.stringify([message.text, message.blocks, message.deleted]);

function* everyMessage() {
  for (const [channel, messages] of Object.entries(world.state.messages)) {
    for (const message of messages) yield { key: keyOf(channel, message), channel, message };
  }
}

function snapshot() {
  return new Map([...everyMessage()].map(({ key, message }) => [key, looks(message)]));
}

/** Note what differs from before the skip, as long as it may be its doing. */
function compare() {
  if (!last || performance.now() > last.until) return;
  for (const { key, channel, message } of everyMessage()) {
    const before = last.before.get(key);
    if (before === undefined) last.changes.set(key, { kind: "new", channel, message });
    else if (before !== looks(message)) last.changes.set(key, { kind: "changed", channel, message });
  }
}

const count = (kind) => [...last.changes.values()].filter((change) => change.kind === kind).length;
const some = (number, one, many) => `${number} ${number === 1 ? one : many}`;

function summary() {
  const parts = [];
  if (count("changed")) parts.push(some(count("changed"), "message changed", "messages changed"));
  if (count("new")) parts.push(some(count("new"), "new message", "new messages"));
  return parts.join(", ") || "nothing changed";
}

/** Go to where the newest change is, in its thread if it stands in one. */
function show() {
  const changes = [...last.changes.values()];
  const { channel, message } = changes.at(-1);
  go({ in: channel, thread: isReply(message) ? message.thread_ts : null });
}

/** "1 day 2 h ahead", or nothing while the time is that outside. */
function ahead(seconds) {
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3600);
  const parts = [days && some(days, "day", "days"), hours && `${hours} h`].filter(Boolean);
  return parts.length ? `${parts.join(" ")} ahead` : "";
}

function clockText() {
  const options = { weekday: "short", month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
  return new Date(nowMs()).toLocaleString("en-US", options);
}

const parts = {};

/** Build the time's part of the bar; `reload` fetches the state anew. */
export function startTime(node, reload) {
  parts.clock = el("time", { class: "clock" });
  parts.ahead = el("span", { class: "clock-ahead" });
  parts.buttons = STEPS.map((step) =>
    el("button", { type: "button", class: "skip", on: { click: () => pass(step, reload) } }, step.words),
  );
  parts.report = el("span", { class: "skip-report", role: "status" });
  node.replaceChildren(parts.clock, parts.ahead, ...parts.buttons, parts.report);
  // what follows an act of the person's own is that act's doing
  document.addEventListener("click", (event) => last && !node.contains(event.target) && (last.until = 0), true);
  setInterval(() => world.state && renderTime(), TICK_MS);
}

async function pass(step, reload) {
  last = { said: step.said, before: snapshot(), until: Infinity, changes: new Map(), error: null };
  busy(true);
  const answer = await skip(step.seconds);
  if (!answer.ok) last.error = answer.error;
  last.until = performance.now() + WATCHED_MS;
  await reload();
  busy(false);
  renderTime();
}

function busy(on) {
  for (const button of parts.buttons) button.disabled = on;
  parts.busy = on;
  if (on) renderOnce(parts.report, `busy ${last.said}`, () => [`Skipping ${last.said}…`]);
}

/** Draw the time and what the last skip did, and mark the messages that it changed. */
export function renderTime() {
  parts.clock.textContent = clockText();
  parts.clock.dateTime = new Date(nowMs()).toISOString();
  parts.ahead.textContent = ahead(world.state.skipped_s);
  compare();
  if (!last || parts.busy) return;
  const said = last.error ? "That didn't work." : `${last.said} passed: ${summary()}`;
  renderOnce(parts.report, said + last.changes.size, () => [
    said,
    last.changes.size ? el("button", { type: "button", class: "skip-show", on: { click: show } }, "Show") : null,
  ]);
  const changed = new Set([...last.changes.values()].map(({ message }) => message.ts));
  for (const message of document.querySelectorAll(".message")) {
    message.classList.toggle("after-skip", changed.has(message.dataset.ts));
  }
}
