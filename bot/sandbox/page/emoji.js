// Emoji by Slack's :name: codes.

import { el } from "./dom.js";

const CODES = {
  "+1": "👍",
  "-1": "👎",
  alarm_clock: "⏰",
  arrow_double_up: "⏫",
  arrow_left: "⬅️",
  arrow_right: "➡️",
  art: "🎨",
  bell: "🔔",
  books: "📚",
  broom: "🧹",
  bug: "🐛",
  bulb: "💡",
  calendar: "📅",
  chart_with_upwards_trend: "📈",
  clap: "👏",
  computer: "💻",
  construction: "🚧",
  credit_card: "💳",
  cry: "😢",
  envelope: "✉️",
  eyes: "👀",
  exclamation: "❗",
  file_folder: "📁",
  fire: "🔥",
  gear: "⚙️",
  grey_question: "❔",
  hammer: "🔨",
  heart: "❤️",
  heavy_check_mark: "✔️",
  hourglass: "⌛",
  hourglass_flowing_sand: "⏳",
  information_source: "ℹ️",
  key: "🔑",
  large_blue_circle: "🔵",
  large_green_circle: "🟢",
  large_orange_circle: "🟠",
  large_yellow_circle: "🟡",
  leftwards_arrow_with_hook: "↩️",
  link: "🔗",
  lock: "🔒",
  mag: "🔍",
  mailbox_with_no_mail: "📭",
  mega: "📣",
  memo: "📝",
  moneybag: "💰",
  no_bell: "🔕",
  no_entry: "⛔",
  no_entry_sign: "🚫",
  octagonal_sign: "🛑",
  package: "📦",
  paperclip: "📎",
  pencil2: "✏️",
  pushpin: "📌",
  question: "❓",
  raised_hand: "✋",
  recycle: "♻️",
  red_circle: "🔴",
  repeat: "🔁",
  robot_face: "🤖",
  rocket: "🚀",
  rotating_light: "🚨",
  shield: "🛡️",
  smile: "😄",
  sparkles: "✨",
  speech_balloon: "💬",
  star: "⭐",
  stopwatch: "⏱️",
  tada: "🎉",
  thinking_face: "🤔",
  thumbsdown: "👎",
  thumbsup: "👍",
  timer_clock: "⏲️",
  triangular_flag_on_post: "🚩",
  unlock: "🔓",
  wastebasket: "🗑️",
  warning: "⚠️",
  wave: "👋",
  white_check_mark: "✅",
  wrench: "🔧",
  x: "❌",
  zap: "⚡",
};

/** Signs are written with and without the mark that asks for a coloured picture. */
const bare = (sign) => sign.replace("\uFE0F", "");

const NAMES = new Map(Object.entries(CODES).map(([name, sign]) => [bare(sign), name]));

/** One token of text that stands for an emoji: a code, or a sign that the page knows. */
const TOKEN = new RegExp(`:([a-z0-9_+'-]+):|(${[...NAMES.keys()].join("|")})\uFE0F?`, "gu");

/** A node for the emoji called `name`, or null for a name that is not known. */
export function emojiNode(name) {
  const sign = Object.hasOwn(CODES, name) ? CODES[name] : undefined;
  if (sign === undefined) return null;
  return el(
    "span",
    {
      class: "emoji",
      role: "img",
      "aria-label": `${name.replaceAll("_", " ")} emoji`,
      data: { emoji: NAMES.get(bare(sign)) },
    },
    sign,
  );
}

/**
 * Text as nodes, with emoji drawn. `codes` false leaves `:name:` as it is (plain text whose `emoji` is
 * off); signs typed as characters are always drawn.
 */
export function withEmoji(text, codes = true) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    const name = match[1] ?? NAMES.get(match[2]);
    const node = match[1] && !codes ? null : emojiNode(name);
    if (!node) continue;
    if (match.index > from) nodes.push(text.slice(from, match.index));
    nodes.push(node);
    from = match.index + match[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** Hide emoji from a control's accessible name when words stand beside them. */
export function quietEmoji(node) {
  const words = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  if (words) for (const sign of node.querySelectorAll(".emoji")) sign.setAttribute("aria-hidden", "true");
  return node;
}
