// Blocks of Block Kit as DOM nodes, and the patching of a surface's list of blocks.

import { bareValue, blockIdOf, controlOf, isAhead, valueControls } from "./control.js";
import { arrange, el, uid } from "./dom.js";
import { elementNode } from "./elements.js";
import { icon } from "./icons.js";
import { labelText, linkNode, textObject } from "./mrkdwn.js";
import { richText } from "./richtext.js";
import { world } from "./world.js";

/** An image of the page's own host; any other address is shown as its alternative text, with a link. */
function imageNode(image, small) {
  const url = image.image_url ?? image.slack_file?.url ?? "";
  const own =
    url.startsWith("data:image/") ||
    (URL.canParse(url, location.href) && new URL(url, location.href).origin === location.origin);
  if (own) return el("img", { class: small ? "image-small" : "image", src: url, alt: image.alt_text });
  const text = el("span", { class: "image-alt" }, icon("image"), image.alt_text);
  return small
    ? el("span", { class: "image-note" }, text)
    : el("div", { class: "image-note" }, text, linkNode(url));
}

function header(block) {
  return el("h3", { class: "block-header" }, ...textObject(block.text));
}

function section(block, surface) {
  const text = block.text ? el("div", { class: "section-text" }, ...textObject(block.text)) : null;
  const fields = block.fields
    ? el(
        "div",
        { class: "fields" },
        ...block.fields.map((field) => el("div", { class: "section-field" }, ...textObject(field))),
      )
    : null;
  const body = el("div", { class: "section-body" }, text, fields);
  if (!block.accessory) return body;
  const place = { label: block.text ? labelText(block.text) : "", dispatches: true };
  const accessory =
    block.accessory.type === "image"
      ? imageNode(block.accessory, false)
      : elementNode(block.accessory, surface, place);
  return el("div", { class: "section" }, body, el("div", { class: "accessory" }, accessory));
}

function context(block) {
  const items = block.elements.map((item) =>
    item.type === "image"
      ? imageNode(item, true)
      : el("span", { class: "context-text" }, ...textObject(item)),
  );
  return el("div", { class: "context" }, ...items);
}

function actions(block, surface) {
  return el(
    "div",
    { class: "actions" },
    ...block.elements.map((element) => elementNode(element, surface, { label: "", dispatches: true })),
  );
}

function input(block, surface) {
  const labelId = uid("label");
  const controlId = uid("control");
  const place = {
    labelId,
    controlId,
    inInput: true,
    dispatches: block.dispatch_action === true,
    optional: block.optional === true,
  };
  const optional = block.optional ? el("span", { class: "optional" }, " (optional)") : null;
  return el(
    "div",
    { class: "input" },
    el("label", { id: labelId, class: "input-label", for: controlId }, ...textObject(block.label), optional),
    elementNode(block.element, surface, place),
    el("div", { class: "input-error", role: "alert", id: uid("error"), hidden: true }),
    block.hint ? el("div", { class: "input-hint" }, ...textObject(block.hint)) : null,
  );
}

function image(block) {
  const title = block.title ? el("div", { class: "image-title" }, ...textObject(block.title)) : null;
  return el("figure", { class: "image-block" }, title, imageNode(block, false));
}

const MAKERS = {
  header,
  section,
  context,
  actions,
  input,
  image,
  divider: () => el("hr", { class: "divider" }),
  rich_text: (block) => el("div", { class: "rich-text" }, ...richText(block)),
};

function makeBlock(block, surface) {
  const known = Object.hasOwn(MAKERS, block.type);
  const content = known
    ? MAKERS[block.type](block, surface)
    : el("div", { class: "unknown" }, `Block of type ${block.type} is not drawn here.`);
  return el(
    "div",
    { class: `block block-${known ? block.type : "unknown"}`, data: { block: block.block_id ?? "" } },
    content,
  );
}

const actionIds = (block) =>
  [block.accessory, block.element, ...(block.elements ?? [])].map((item) => item?.action_id).filter(Boolean);

const shown = new WeakMap();

/** Blocks paired with keys that tell equal blocks of one list apart. */
function keyed(blocks) {
  const seen = new Map();
  return blocks.map((block) => {
    const json = JSON.stringify(block);
    seen.set(json, (seen.get(json) ?? 0) + 1);
    return { block, key: `${seen.get(json)}:${json}` };
  });
}

/**
 * Show `blocks` inside `holder`, keeping the nodes of blocks that did not change, and those in use whose
 * element still exists. `state` is Slack's `state.values` of this person for the surface.
 */
export function patchBlocks(holder, blocks, surface, state = {}) {
  const before = new Map((shown.get(holder) ?? []).map((entry) => [entry.key, entry]));
  const wanted = keyed(blocks);
  const after = wanted.map(({ key, block }) => take(before, key, block));
  for (const old of before.values()) adopt(old, wanted, after);
  const focus = focusedAction(holder);
  const entries = after.map((entry, index) => entry ?? fresh(wanted[index], surface, before));
  arrange(
    holder,
    entries.map((entry) => entry.node),
  );
  shown.set(holder, entries);
  applyState(holder, state);
  restoreFocus(holder, focus);
}

/** Move the entry with a key out of `before`, or null. */
function take(before, key, block) {
  const entry = before.get(key);
  before.delete(key);
  return entry ? { ...entry, block } : null;
}

/** Keep an old block that a person has in hand for the block of the new list that has the same element. */
function adopt(old, wanted, after) {
  const held = old.node.querySelector("[data-held]");
  if (!held) return;
  const index = wanted.findIndex(
    ({ block }, at) => !after[at] && actionIds(block).includes(held.dataset.action),
  );
  if (index < 0) return;
  const { block } = wanted[index];
  old.node.dataset.block = block.block_id ?? "";
  after[index] = { key: `held:${index}`, block, node: old.node };
}

function fresh({ block, key }, surface, before) {
  const node = makeBlock(block, surface);
  const twin = [...before.values()].find((old) => old.block.block_id === block.block_id);
  for (const control of valueControls(node)) {
    control.write(bareValue(control.element));
    // Slack keeps what a person typed when a view is updated and the field's ids stay the same.
    const old =
      twin && surface.kind !== "message"
        ? valueControls(twin.node).find((item) => item.element.action_id === control.element.action_id)
        : null;
    if (old?.dirty && old.element.type === control.element.type) {
      control.write(old.read());
      control.dirty = true;
      control.stateSeen = old.stateSeen;
    }
  }
  return { key, block, node };
}

/** Bring controls to the values that the server knows, where those differ from what it said before. */
function applyState(holder, state) {
  for (const control of valueControls(holder)) {
    const known = state?.[blockIdOf(control)]?.[control.element.action_id];
    const seen = JSON.stringify(known);
    if (seen === control.stateSeen || isAhead(control, world.askedAt)) continue;
    control.stateSeen = seen;
    if (known) control.write(bareValue(known));
  }
}

function focusedAction(holder) {
  const active = document.activeElement;
  return holder.contains(active) ? { active, action: controlOf(active)?.element.action_id } : null;
}

/** Give the focus to the element that took the place of the focused one, else to the whole message. */
function restoreFocus(holder, focus) {
  if (!focus || focus.active.isConnected) return;
  const same = [...holder.querySelectorAll("[data-action]")].find(
    (node) => node.dataset.action === focus.action,
  );
  const target = same?.querySelector("button, input, textarea") ?? holder.closest("[tabindex]");
  target?.focus({ preventScroll: true });
}
