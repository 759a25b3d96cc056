// The right pane: one message with its replies.

import { channelTitle } from "./channel.js";
import { makeComposer } from "./composer.js";
import { el } from "./dom.js";
import { makeFeed } from "./feed.js";
import { icon } from "./icons.js";
import { go } from "./place.js";
import { channelOf, messagesIn, repliesTo } from "./world.js";

/** Build a thread's pane. Returns `{nodes, update()}`. */
export function makeThread(channelId, ts) {
  const channel = channelOf(channelId);
  const close = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "Close thread",
      on: { click: () => go({ thread: null }) },
    },
    icon("close"),
  );
  const title = el(
    "h2",
    { class: "pane-title" },
    el("span", {}, "Thread"),
    el("span", { class: "pane-subtitle" }, channelTitle(channel)),
  );
  const feed = makeFeed("Thread", { channel: channelId, inThread: true });
  const composer = makeComposer({ channel: channelId, thread: ts, label: "Reply…", onSent: feed.toEnd });
  const update = () => {
    const root = messagesIn(channelId).filter((message) => message.ts === ts);
    feed.show([...root, ...repliesTo(channelId, ts)]);
  };
  return {
    nodes: [el("header", { class: "pane-head" }, title, close), feed.node, composer.node],
    update,
    focus: composer.focus,
  };
}
