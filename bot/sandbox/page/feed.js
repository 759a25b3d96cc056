// A scrolling list of messages: kept at its end while the person is there, otherwise where it was.

import { dayHeading, tsDate } from "./dates.js";
import { atEnd, el, patchList } from "./dom.js";
import { makeMessage, messageKey, updateMessage } from "./message.js";
import { world } from "./world.js";

const COMPACT_S = 300;
const dismissed = new Set();

const dismissKey = (message) => `${world.state.you}:${messageKey(message)}`;

/** True unless the person has put this private message away. */
const isShown = (message) => !dismissed.has(dismissKey(message));

/** Messages with what their neighbours decide: whether they follow closely on one of the same author. */
function withNeighbours(messages) {
  return messages.map((message, index) => {
    const before = messages[index - 1];
    const near =
      before && Number(message.ts) - Number(before.ts) < COMPACT_S && dayOf(before) === dayOf(message);
    const same = near && before.user === message.user && before.bot_name === message.bot_name;
    return {
      ...message,
      compact: Boolean(same && !before.ephemeral && !message.ephemeral && !before.reply_count),
    };
  });
}

const dayOf = (message) => tsDate(message.ts).toDateString();

/**
 * A feed inside a pane. `options` are those of `makeMessage`. Returns `{node, show(messages), toEnd()}`.
 */
export function makeFeed(label, options) {
  const list = el("div", { class: "feed-list" });
  const empty = el("p", { class: "feed-empty" }, "No messages yet.");
  const node = el("div", { class: "feed", tabIndex: -1, role: "log", "aria-label": label }, list, empty);
  let last = [];
  const settings = {
    ...options,
    onDismiss: (message) => {
      dismissed.add(dismissKey(message));
      show(last);
    },
  };
  let stick = true;
  node.addEventListener("scroll", () => {
    stick = atEnd(node);
  });
  const follow = () => {
    if (stick) node.scrollTop = node.scrollHeight;
  };
  new ResizeObserver(follow).observe(list);
  new ResizeObserver(follow).observe(node);

  const show = (messages) => {
    last = messages;
    empty.hidden = messages.length > 0;
    patchList(list, items(withNeighbours(messages.filter(isShown)), options), {
      key: (item) => item.id,
      make: (item) => item.make?.() ?? makeMessage(item.message, settings),
      update: (row, item) => item.message && updateMessage(row, item.message),
    });
    follow();
  };
  const toEnd = () => {
    stick = true;
    follow();
  };
  return { node, show, toEnd };
}

/** Messages with day headings between them, or with the count of replies below a thread's first one. */
function items(messages, { inThread }) {
  return messages.flatMap((message, index) => {
    const row = { id: messageKey(message), message };
    if (inThread) return index === 1 ? [replyRule(messages), row] : [row];
    const opensDay = index === 0 || dayOf(messages[index - 1]) !== dayOf(message);
    return opensDay ? [dayRule(message), row] : [row];
  });
}

function dayRule(message) {
  const heading = dayHeading(tsDate(message.ts));
  return {
    id: `day:${heading}`,
    make: () =>
      el(
        "div",
        { class: "rule", role: "separator", "aria-label": heading },
        el("span", { class: "rule-day" }, heading),
      ),
  };
}

function replyRule(messages) {
  const count = messages.slice(1).filter((message) => !message.ephemeral).length;
  const words = `${count} ${count === 1 ? "reply" : "replies"}`;
  return {
    id: `replies:${count}`,
    make: () => el("div", { class: "rule rule-replies" }, el("span", {}, words)),
  };
}
