// The middle pane: a channel's or a direct message's feed with its composer.

import { avatar } from "./avatar.js";
import { makeComposer } from "./composer.js";
import { el } from "./dom.js";
import { makeFeed } from "./feed.js";
import { icon } from "./icons.js";
import { displayName, isReply, messagesIn, userOf } from "./world.js";

/** A channel's name as people write it: "#agents", or the other person's name. */
export function channelTitle(channel) {
  return channel.kind === "dm" ? displayName(userOf(channel.with)) : `#${channel.name}`;
}

/** The heading of a channel: an icon and its name. */
function heading(channel) {
  if (channel.kind === "channel")
    return el("h1", { class: "pane-title" }, icon("hash"), el("span", {}, channel.name));
  const other = userOf(channel.with);
  return el(
    "h1",
    { class: "pane-title" },
    avatar(other, "medium"),
    el("span", {}, displayName(other)),
    other.is_bot ? el("span", { class: "badge" }, "APP") : null,
  );
}

/** Build a channel's pane. Returns `{nodes, update()}`; `tabs` is an app's row of tabs, or null. */
export function makeChannel(channel, tabs) {
  const feed = makeFeed(`Messages in ${channelTitle(channel)}`, { channel: channel.id, inThread: false });
  const composer = makeComposer({
    channel: channel.id,
    label: `Message ${channelTitle(channel)}`,
    onSent: feed.toEnd,
  });
  const update = () => feed.show(messagesIn(channel.id).filter((message) => !isReply(message)));
  return {
    nodes: [el("header", { class: "pane-head" }, heading(channel)), tabs, feed.node, composer.node].filter(
      Boolean,
    ),
    update,
    focus: composer.focus,
  };
}
