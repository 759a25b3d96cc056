// Slack's mrkdwn and text objects as DOM nodes. Nothing of the text is ever parsed as HTML.

import { slackDate } from "./dates.js";
import { el } from "./dom.js";
import { emojiNode, withEmoji } from "./emoji.js";
import { channelName, displayName, handleOf, userOf } from "./world.js";

const STYLES = { "*": "strong", _: "em", "~": "del" };
const WORD = /[\p{L}\p{N}]/u;
const LINK_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);

/** Undo Slack's escaping of its three control characters. */
function decode(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** A link that opens apart from the page, or plain text when the address is not one to follow. */
export function linkNode(url, ...label) {
  const content = label.length ? label : [url];
  const scheme = URL.canParse(url) ? new URL(url).protocol : "";
  if (!LINK_SCHEMES.has(scheme)) return el("span", {}, ...content);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...content);
}

/** A mention chip. */
export function mention(text) {
  return el("span", { class: "mention" }, text);
}

export const userMention = (id) => mention(`@${displayName(userOf(id))}`);
export const channelMention = (id, label) => mention(`#${channelName(id) ?? label ?? "private-channel"}`);

/** The meaning of `<…>`; `body` is what stands between the angle brackets. Null: it means nothing. */
function angle(body) {
  const bar = body.indexOf("|");
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? null : decode(body.slice(bar + 1));
  if (/^@[UW][A-Z0-9]+$/.test(target)) return userMention(target.slice(1));
  if (/^#C[A-Z0-9]+$/.test(target)) return channelMention(target.slice(1), label);
  if (target.startsWith("!")) return special(target.slice(1), label);
  if (/^[a-z][a-z0-9+.-]*:/i.test(target))
    return linkNode(decode(target), ...(label ? withEmoji(label) : []));
  return null;
}

function special(command, label) {
  if (["here", "channel", "everyone"].includes(command)) return mention(`@${command}`);
  if (command.startsWith("subteam^")) return mention(label ?? `@${handleOf(command.slice("subteam^".length))}`);
  if (!command.startsWith("date^")) return el("span", {}, label ?? `<!${command}>`);
  const [, unix, template, url] = command.split("^");
  const written = slackDate(unix, decode(template ?? "")) ?? label ?? "";
  return url ? linkNode(decode(url), written) : el("time", {}, written);
}

/** Where the style opened by `sign` at `start` closes, or -1. It never crosses a line, code or `<…>`. */
function closing(text, start, sign) {
  for (let at = start + 1; at < text.length && text[at] !== "\n"; at += 1) {
    if (text[at] === "<") {
      const end = text.indexOf(">", at);
      if (end > 0) at = end;
    } else if (text[at] === "`") {
      const end = text.indexOf("`", at + 1);
      if (end > 0) at = end;
    } else if (
      text[at] === sign &&
      at > start + 1 &&
      !/\s/.test(text[at - 1]) &&
      !WORD.test(text[at + 1] ?? "")
    ) {
      return at;
    }
  }
  return -1;
}

/** Try to read one construct at `at`: `[node, length]`, or null when it is plain text there. */
function construct(text, at) {
  const sign = text[at];
  const previous = text[at - 1] ?? "";
  if (sign === "<") {
    const end = text.indexOf(">", at);
    const node = end > at + 1 ? angle(text.slice(at + 1, end)) : null;
    return node && [node, end + 1 - at];
  }
  if (sign === "`") {
    const end = text.indexOf("`", at + 1);
    const body = text.slice(at + 1, end);
    if (end <= at + 1 || body.includes("\n")) return null;
    return [el("code", {}, decode(body)), end + 1 - at];
  }
  if (sign === ":") {
    const code = /^:([a-z0-9_+'-]+):/.exec(text.slice(at, at + 64));
    const node = code && emojiNode(code[1]);
    return node && [node, code[0].length];
  }
  if (STYLES[sign] && !WORD.test(previous) && previous !== sign && /\S/.test(text[at + 1] ?? "")) {
    const end = closing(text, at, sign);
    return end < 0 ? null : [el(STYLES[sign], {}, ...inline(text.slice(at + 1, end))), end + 1 - at];
  }
  if (sign === "h" && !WORD.test(previous)) {
    const url = /^https?:\/\/[^\s<>|]*[^\s<>|.,;:!?)\]}'"*_~]/.exec(text.slice(at));
    return url && [linkNode(decode(url[0])), url[0].length];
  }
  return null;
}

/** Inline mrkdwn as an array of nodes and strings. */
function inline(text) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(...withEmoji(decode(plain), false));
    plain = "";
  };
  for (let at = 0; at < text.length;) {
    const found = construct(text, at);
    if (found) {
      flush();
      nodes.push(found[0]);
      at += found[1];
    } else {
      plain += text[at];
      at += 1;
    }
  }
  flush();
  return nodes;
}

const QUOTE = /^(?:&gt;|>)\s?/;

/** Text between code fences: lines, with runs of quoted ones in a bar. */
function lines(text) {
  const nodes = [];
  let open = [];
  let quoted = false;
  const flush = () => {
    if (open.length) nodes.push(quoted ? el("blockquote", {}, ...inline(open.join("\n"))) : paragraph(open));
    open = [];
  };
  const all = text.split("\n");
  for (const [index, line] of all.entries()) {
    if (/^(?:&gt;|>){3}/.test(line)) {
      flush();
      const rest = [line.replace(/^(?:&gt;|>){3}\s?/, ""), ...all.slice(index + 1)];
      nodes.push(el("blockquote", {}, ...inline(rest.join("\n"))));
      return nodes;
    }
    if (QUOTE.test(line) !== quoted) {
      flush();
      quoted = !quoted;
    }
    open.push(quoted ? line.replace(QUOTE, "") : line);
  }
  flush();
  return nodes;
}

const paragraph = (open) => el("div", { class: "text-lines" }, ...inline(open.join("\n")));

/** mrkdwn as an array of nodes. */
export function mrkdwn(text) {
  return text.split(/```\n?([\s\S]+?)\n?```/).flatMap((part, index) => {
    if (index % 2) return [el("pre", {}, decode(part))];
    const trimmed = index ? part.replace(/^\n/, "") : part;
    return trimmed.replace(/\n$/, "") === "" ? [] : lines(trimmed.replace(/\n$/, ""));
  });
}

/** A message's text whose app wants no styles: `<…>` means what it means in mrkdwn, and nothing else does. */
function unstyled(text) {
  return text.split(/<([^<>]+)>/).flatMap((part, index) => {
    const node = index % 2 ? angle(part) : null;
    return node ? [node] : withEmoji(decode(index % 2 ? `<${part}>` : part));
  });
}

/** Plain text as it is; `:name:` codes become emoji unless `emoji` is false. */
export function plainText(text, emoji = true) {
  return withEmoji(text, emoji);
}

/** A Block Kit text object as an array of nodes. */
export function textObject(object) {
  if (!object) return [];
  if (object.type === "unstyled") return unstyled(object.text);
  return object.type === "mrkdwn" ? mrkdwn(object.text) : plainText(object.text, object.emoji !== false);
}

/** A text object's first line as a bare string, for accessible names. */
export function labelText(object) {
  const holder = el("div", {}, ...textObject(object));
  return holder.textContent.split("\n")[0].trim();
}
