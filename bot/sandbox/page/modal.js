// Modals: a dialog for the top view of the person's stack.

import { closeView, submitView } from "./api.js";
import { patchBlocks } from "./blocks.js";
import { blockIdOf, valueControls } from "./control.js";
import { el, tabStops, uid } from "./dom.js";
import { icon } from "./icons.js";
import { textObject } from "./mrkdwn.js";
import { closePopupIn } from "./popup.js";
import { world } from "./world.js";

let open = null;
let refresh = async () => {};

/** `reload` fetches the state anew; it resolves when the page shows it. */
export function startModals(reload) {
  refresh = reload;
}

/** Show the top view of the state, keep it, or take the dialog away. */
export function renderModal() {
  const view = world.state.modal;
  if (open && open.id !== view?.id) {
    open.dialog.close();
    open.dialog.remove();
    open.opener?.isConnected && open.opener.focus({ preventScroll: true });
    open = null;
  }
  if (!view) return;
  open ??= makeModal(view);
  patchModal(open, view);
}

function makeModal(view) {
  const titleId = uid("title");
  const title = el("h2", { id: titleId, class: "dialog-title" });
  const back = el("button", { type: "button", class: "icon-button", "aria-label": "Back" }, icon("back"));
  const close = el("button", { type: "button", class: "icon-button", "aria-label": "Close" }, icon("close"));
  const body = el("div", { class: "dialog-body blocks" });
  const trouble = el("div", { class: "dialog-trouble", role: "alert", hidden: true });
  const cancel = el("button", { type: "button", class: "button dialog-cancel" });
  const submit = el(
    "button",
    { type: "submit", class: "button button-primary dialog-submit" },
    el("span", { class: "button-text" }),
    el("span", { class: "spinner" }),
  );
  const form = el(
    "form",
    { class: "dialog-form", novalidate: true },
    el("header", { class: "dialog-head" }, back, title, close),
    body,
    trouble,
    el("footer", { class: "dialog-foot" }, cancel, submit),
  );
  const dialog = el("dialog", { class: "dialog modal", "aria-labelledby": titleId }, form);
  const modal = {
    id: view.id,
    dialog,
    title,
    back,
    body,
    trouble,
    cancel,
    submit,
    opener: document.activeElement,
    surface: { kind: "modal", container: { type: "view", view_id: view.id } },
  };

  back.addEventListener("click", () => leave(modal));
  cancel.addEventListener("click", () => leave(modal));
  close.addEventListener("click", () => leaveAll(modal));
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    if (event.target === dialog && !closePopupIn(dialog)) leave(modal);
  });
  dialog.addEventListener("keydown", (event) => onKey(modal, event));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!submit.hidden) send(modal);
  });
  form.addEventListener("input", (event) => setError(event.target.closest("[data-block]"), null));
  form.addEventListener("control-changed", (event) => setError(event.target.closest("[data-block]"), null));
  document.body.append(dialog);
  dialog.showModal();
  queueMicrotask(() => firstField(modal)?.focus());
  return modal;
}

function firstField({ body, dialog }) {
  return (
    body.querySelector("[autofocus]") ??
    tabStops(body).find((node) => node.matches("input, textarea")) ??
    tabStops(dialog).at(-1)
  );
}

function patchModal(modal, view) {
  modal.title.replaceChildren(...textObject(view.title));
  modal.back.hidden = world.state.modal_depth < 2;
  modal.cancel.replaceChildren(...(view.close ? textObject(view.close) : [view.submit ? "Cancel" : "Close"]));
  modal.submit.hidden = !view.submit;
  modal.submit.firstElementChild.replaceChildren(...textObject(view.submit));
  patchBlocks(modal.body, view.blocks, modal.surface, view.state?.values);
}

/** Keep the Tab key inside the dialog, and let Ctrl+Enter submit from a text of several lines. */
function onKey(modal, event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
    event.preventDefault();
    if (!modal.submit.hidden) send(modal);
    return;
  }
  if (event.key !== "Tab") return;
  const stops = tabStops(modal.dialog);
  const edge = event.shiftKey ? stops[0] : stops.at(-1);
  if (document.activeElement !== edge && stops.includes(document.activeElement)) return;
  event.preventDefault();
  (event.shiftKey ? stops.at(-1) : stops[0])?.focus();
}

async function leave(modal) {
  const answer = await closeView(modal.id);
  if (!answer.ok) setTrouble(modal, answer.error);
  await refresh();
}

/** Close the whole stack, from its top down. */
async function leaveAll(modal) {
  for (let depth = world.state.modal_depth; depth > 0 && world.state.modal; depth -= 1) {
    const answer = await closeView(world.state.modal.id);
    if (!answer.ok) return setTrouble(modal, answer.error);
    await refresh();
  }
  return undefined;
}

function setTrouble({ trouble }, error) {
  trouble.hidden = error === null;
  trouble.replaceChildren(icon("warning"), "That didn't work. Try again.");
  trouble.title = error ?? "";
}

/** The error text under an input block's element; null takes it away. */
function setError(block, text) {
  const holder = block?.querySelector(".input-error");
  if (!holder) return;
  holder.hidden = text === null;
  holder.textContent = text ?? "";
  block.classList.toggle("invalid", text !== null);
  for (const field of block.querySelectorAll("input, textarea")) {
    if (text === null) {
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
    } else {
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", holder.id);
    }
  }
}

/** Show errors by block id, and bring the first of them into view. */
function setErrors(modal, errors) {
  const blocks = [...modal.body.querySelectorAll("[data-block]")];
  for (const block of blocks) setError(block, errors[block.dataset.block] ?? null);
  const first = blocks.find((block) => Object.hasOwn(errors, block.dataset.block));
  first?.querySelector("input, textarea, button")?.focus();
  first?.scrollIntoView({ block: "nearest" });
}

const isEmpty = (value) => value === null || value.length === 0;

/** What Slack refuses before it asks the app: required fields without a value, values out of bounds. */
function ownErrors(controls) {
  const found = controls.map((control) => {
    const missing = !control.place.optional && isEmpty(control.read());
    const text = missing ? "Please complete this required field." : control.problem?.();
    return text ? [blockIdOf(control), text] : null;
  });
  return Object.fromEntries(found.filter(Boolean));
}

async function send(modal) {
  if (modal.submit.getAttribute("aria-busy")) return;
  const controls = valueControls(modal.body).filter((control) => control.place.inInput);
  const errors = ownErrors(controls);
  setErrors(modal, errors);
  modal.trouble.hidden = true;
  if (Object.keys(errors).length) return;
  const values = {};
  for (const control of valueControls(modal.body)) {
    const block = blockIdOf(control);
    values[block] = { ...values[block], [control.element.action_id]: control.read() };
  }
  modal.submit.setAttribute("aria-busy", "true");
  modal.submit.classList.add("busy");
  const answer = await submitView(modal.id, values);
  modal.submit.removeAttribute("aria-busy");
  modal.submit.classList.remove("busy");
  if (answer.errors) setErrors(modal, answer.errors);
  else if (!answer.ok) setTrouble(modal, answer.error ?? "");
  await refresh();
}
