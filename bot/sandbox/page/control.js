// What all interactive elements share: identity, the way to the app, waiting and failing.

import { sendAction, sendInput } from "./api.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";

const controls = new WeakMap();

/**
 * Wrap an element's nodes into its control.
 *
 * `surface` is the message, modal or home it stands on (`{kind, container}`), `place` says where in it
 * (`{inInput, dispatches, label, labelId}`), `behaviour` has `read()` and `write(value)` for elements with
 * a value: a string, a list of strings, or null for nothing chosen.
 */
export function makeControl(element, surface, place, nodes, behaviour = {}) {
  const node = el(
    "div",
    { class: `control control-${element.type}`, data: { action: element.action_id ?? "" } },
    ...nodes,
  );
  controls.set(node, { node, element, surface, place, dirty: false, ...behaviour });
  return node;
}

export const controlOf = (node) => controls.get(node.closest("[data-action]"));

/** The controls inside a node that hold a value. */
export function valueControls(root) {
  return [...root.querySelectorAll("[data-action]")]
    .map((node) => controls.get(node))
    .filter((control) => control?.read);
}

/** The id of the block that a control stands in: read late, since an update may give a block another id. */
export const blockIdOf = (control) => control.node.closest("[data-block]").dataset.block;

/** A control in use: its block is not rebuilt under the person's hands. */
export function hold(node) {
  node.closest("[data-action]").dataset.held = "";
}

/** The control is free; blocks that waited for it are brought up to date. */
export function release(node) {
  const control = node.closest("[data-action]");
  if (!control || control.dataset.held === undefined) return;
  delete control.dataset.held;
  document.dispatchEvent(new CustomEvent("control-released"));
}

function clearFailure(node) {
  node.querySelector(":scope > .failure")?.remove();
}

/** Show beside a control that its last act did not arrive. */
function showFailure(node, error) {
  clearFailure(node);
  const note = el(
    "span",
    { class: "failure", role: "alert", title: error ?? null },
    icon("warning"),
    "That didn't work. Try again.",
  );
  node.append(note);
}

/** Run one request of a control: a spinner until the answer is there, a warning when it is not good. */
async function attempt(node, request) {
  clearFailure(node);
  node.classList.add("busy");
  node.setAttribute("aria-busy", "true");
  const answer = await request();
  node.classList.remove("busy");
  node.removeAttribute("aria-busy");
  if (!answer.ok) showFailure(node, answer.error);
  return answer;
}

/** Send a click on a control that has no value of its own; a second click while waiting is dropped. */
export async function press(node, value) {
  const control = controlOf(node);
  if (control.node.classList.contains("busy")) return;
  const { surface, element } = control;
  await attempt(control.node, () =>
    sendAction(surface.container, blockIdOf(control), element.action_id, value),
  );
}

/**
 * Send a control's present value: stored only, or told to the app when the block dispatches.
 * While one request runs, later values wait, and only the newest of them is sent.
 */
export async function changed(node, { dispatch } = {}) {
  const control = controlOf(node);
  control.dirty = true;
  control.node.dispatchEvent(new CustomEvent("control-changed", { bubbles: true }));
  const tell = dispatch ?? control.place.dispatches;
  if (control.sending) {
    control.again = { tell: tell || control.again?.tell };
    return;
  }
  const { surface, element } = control;
  const send = () =>
    (tell ? sendAction : sendInput)(surface.container, blockIdOf(control), element.action_id, control.read());
  control.sending = true;
  await (tell ? attempt(control.node, send) : store(control.node, send));
  control.sending = false;
  control.settledAt = performance.now();
  const next = control.again;
  control.again = undefined;
  if (next && control.node.isConnected) await changed(node, { dispatch: next.tell });
}

/** True when a state that the server was asked for at `askedAt` may lack what this control has sent since. */
export function isAhead(control, askedAt) {
  return control.sending || control.node.dataset.held !== undefined || askedAt < (control.settledAt ?? 0);
}

async function store(node, send) {
  clearFailure(node);
  const answer = await send();
  if (!answer.ok) showFailure(node, answer.error);
}

/** A value object of Slack's `state.values`, or an element's own initial value, as a bare value. */
export function bareValue(source) {
  const option = source.selected_option ?? source.initial_option;
  const options = source.selected_options ?? source.initial_options;
  if (options) return options.map((item) => item.value);
  if (option) return option.value;
  const user = source.selected_user ?? source.initial_user;
  const date = source.selected_date ?? source.initial_date;
  const moment = source.selected_date_time ?? source.initial_date_time;
  return user ?? date ?? moment ?? source.value ?? source.initial_value ?? null;
}
