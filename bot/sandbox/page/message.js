// One message: who, when, what, and the way into its thread.

import { runShortcut } from "./api.js";
import { avatar } from "./avatar.js";
import { patchBlocks } from "./blocks.js";
import { clock, lastReply, tsDate } from "./dates.js";
import { el, renderOnce } from "./dom.js";
import { dots, icon } from "./icons.js";
import { attachMenu } from "./menu.js";
import { go } from "./place.js";
import { displayName, repliesTo, userOf, world } from "./world.js";

const FACES_SHOWN = 3;

/** What tells one message of a channel from the others. */
export const messageKey = (message) => `${message.ts}${message.ephemeral ? ":private" : ""}`;

/** The name that a message stands under. */
const authorName = (message) => message.bot_name || displayName(userOf(message.user));

const parts = new WeakMap();

/**
 * A message's node. `channel` is its channel's id; `inThread` leaves out the link to the thread;
 * `onDismiss` runs when the person puts a private message away.
 */
export function makeMessage(message, { channel, inThread, onDismiss }) {
  const author = userOf(message.user);
  const time = tsDate(message.ts);
  const body = el("div", { class: "message-body" });
  const files = el("div", { class: "message-files" });
  const note = el("div", { class: "message-note" });
  const footer = el("div", { class: "message-footer" });
  const head = el(
    "div",
    { class: "message-head" },
    el("span", { class: "author" }, authorName(message)),
    author.is_bot ? el("span", { class: "badge" }, "APP") : null,
    el(
      "time",
      { class: "time", title: time.toLocaleString("en-US"), datetime: time.toISOString() },
      clock(time),
    ),
  );
  const content = el("div", { class: "message-content" }, head, body, files, note, footer);
  const gutter = el(
    "div",
    { class: "gutter" },
    avatar(author),
    el("span", { class: "gutter-time", "aria-hidden": "true" }, clock(time).replace(/ [AP]M$/, "")),
  );
  const node = el(
    "article",
    {
      class: "message",
      tabIndex: -1,
      "aria-label": `${authorName(message)}, ${clock(time)}`,
      data: { ts: message.ts },
    },
    message.ephemeral ? privateNote(() => onDismiss(message)) : null,
    el("div", { class: "message-row" }, gutter, content),
    message.ephemeral ? null : toolbar(message, channel, inThread),
  );
  node.classList.toggle("private", Boolean(message.ephemeral));
  const container = {
    type: "message",
    channel,
    ts: message.ts,
    ...(message.ephemeral ? { ephemeral: true } : {}),
  };
  parts.set(node, { body, files, note, footer, inThread, surface: { kind: "message", container } });
  updateMessage(node, message);
  return node;
}

/** How a message's text reads that has no blocks: apps may ask for text without styles. */
const textType = (message) => (message.mrkdwn === false && !message.deleted ? "unstyled" : "mrkdwn");

/** Bring a message's node up to date. */
export function updateMessage(node, message) {
  const { body, files, note, footer, inThread, surface } = parts.get(node);
  node.classList.toggle("compact", Boolean(message.compact));
  const blocks = message.deleted ? [] : (message.blocks ?? []);
  const text = message.deleted ? "_This message was deleted._" : (message.text ?? "");
  body.classList.toggle("blocks", blocks.length > 0);
  patchBlocks(
    body,
    blocks.length ? blocks : [{ type: "section", text: { type: textType(message), text } }],
    surface,
    message.state,
  );
  const shared = message.deleted ? [] : (message.files ?? []);
  renderOnce(files, JSON.stringify(shared), () => shared.map(fileLink));
  renderOnce(note, String(Boolean(message.edited)), () =>
    message.edited ? [el("span", { class: "edited" }, "(edited)")] : [],
  );
  if (inThread) return;
  const replies = repliesTo(surface.container.channel, message.ts).filter((reply) => !reply.ephemeral);
  const signature = JSON.stringify([
    message.reply_count,
    message.latest_reply,
    replies.map((reply) => reply.user),
  ]);
  renderOnce(footer, signature, () => (message.reply_count ? threadLink(message, replies) : []));
}

const SIZES = ["bytes", "kB", "MB"];

/** How large a file is, to three digits at most. */
function sizeText(bytes) {
  let [size, step] = [bytes, 0];
  while (size >= 1000 && step < SIZES.length - 1) [size, step] = [size / 1000, step + 1];
  return `${size < 10 && step ? size.toFixed(1) : Math.round(size)} ${SIZES[step]}`;
}

/** A file that a message shares: its title, what it is, and the way to it. */
function fileLink(file) {
  return el(
    "a",
    { class: "file", href: file.permalink, rel: "noopener noreferrer", download: file.name },
    icon("file"),
    el(
      "span",
      { class: "file-text" },
      el("span", { class: "file-title" }, file.title),
      el("span", { class: "file-kind" }, `${file.pretty_type}, ${sizeText(file.size)}`),
    ),
  );
}

function threadLink(message, replies) {
  const faces = [...new Set(replies.map((reply) => reply.user))].slice(0, FACES_SHOWN);
  const count = message.reply_count;
  return el(
    "button",
    { type: "button", class: "thread-link", on: { click: () => go({ thread: message.ts }) } },
    el("span", { class: "faces" }, ...faces.map((id) => avatar(userOf(id), "medium"))),
    el("span", { class: "thread-count" }, `${count} ${count === 1 ? "reply" : "replies"}`),
    message.latest_reply
      ? el("span", { class: "thread-last" }, `Last reply ${lastReply(tsDate(message.latest_reply))}`)
      : null,
    el("span", { class: "thread-view" }, "View thread"),
  );
}

function privateNote(dismiss) {
  return el(
    "div",
    { class: "private-note" },
    icon("eye"),
    el("span", {}, "Only visible to you"),
    el("button", { type: "button", class: "link-button", on: { click: dismiss } }, "Dismiss"),
  );
}

/** The shortcuts that the apps offer on a message, behind three dots. */
function shortcutsMenu(message, channel) {
  const offered = world.state.shortcuts.filter((item) => item.type === "message");
  if (!offered.length) return null;
  const button = el(
    "button",
    { type: "button", class: "tool", "aria-label": "More actions", title: "More actions" },
    dots(),
  );
  const items = offered.map((item) => ({
    text: [item.name],
    description: [item.app],
    act: () => runShortcut(item.callback_id, { channel, ts: message.ts }),
  }));
  attachMenu(button, "More actions", items);
  return button;
}

function toolbar(message, channel, inThread) {
  const reply = el(
    "button",
    {
      type: "button",
      class: "tool",
      "aria-label": "Reply in thread",
      title: "Reply in thread",
      on: { click: () => go({ thread: message.ts }) },
    },
    icon("reply"),
  );
  return el("div", { class: "toolbar" }, inThread ? null : reply, shortcutsMenu(message, channel));
}
