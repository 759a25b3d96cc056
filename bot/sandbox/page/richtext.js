// The rich_text block as DOM nodes (Slack: rich text block).

import { slackDate } from "./dates.js";
import { el } from "./dom.js";
import { emojiNode, withEmoji } from "./emoji.js";
import { channelMention, linkNode, mention, userMention } from "./mrkdwn.js";

const STYLE_TAGS = { bold: "strong", italic: "em", strike: "del", underline: "u", code: "code" };

/** Wrap nodes in the tags of an element's style. */
function styled(nodes, style = {}) {
  return Object.entries(STYLE_TAGS).reduce(
    (inner, [name, tag]) => (style[name] ? [el(tag, {}, ...inner)] : inner),
    nodes,
  );
}

const LEAVES = {
  text: (item) => withEmoji(item.text, false),
  link: (item) => [linkNode(item.url, item.text || item.url)],
  emoji: (item) => [emojiNode(item.name) ?? `:${item.name}:`],
  user: (item) => [userMention(item.user_id)],
  channel: (item) => [channelMention(item.channel_id)],
  usergroup: (item) => [mention(`@${item.usergroup_id}`)],
  broadcast: (item) => [mention(`@${item.range}`)],
  color: (item) => [item.value],
  date: (item) => {
    const written = slackDate(item.timestamp, item.format) ?? item.fallback ?? "";
    return [item.url ? linkNode(item.url, written) : el("time", {}, written)];
  },
};

function leaf(item) {
  if (!Object.hasOwn(LEAVES, item.type)) return [el("span", { class: "unknown" }, `[${item.type}]`)];
  return styled(LEAVES[item.type](item), item.style);
}

const leaves = (items) => items.flatMap(leaf);

function list(part) {
  const ordered = part.style === "ordered";
  const props = {
    class: `rich-list indent-${Math.min(part.indent ?? 0, 8)}`,
    start: ordered && part.offset ? part.offset + 1 : null,
  };
  const items = part.elements.map((item) => el("li", {}, ...leaves(item.elements)));
  return el(ordered ? "ol" : "ul", props, ...items);
}

const PARTS = {
  rich_text_section: (part) => el("div", { class: "text-lines" }, ...leaves(part.elements)),
  rich_text_preformatted: (part) => el("pre", {}, ...leaves(part.elements)),
  rich_text_quote: (part) => el("blockquote", {}, ...leaves(part.elements)),
  rich_text_list: list,
};

/** A rich_text block's parts as an array of nodes. */
export function richText(block) {
  return block.elements.map((part) =>
    Object.hasOwn(PARTS, part.type)
      ? PARTS[part.type](part)
      : el("div", { class: "unknown" }, `Rich text of type ${part.type} is not drawn here.`),
  );
}
