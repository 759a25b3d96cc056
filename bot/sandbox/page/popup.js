// Floating lists: placed beside their anchor, closed by a click elsewhere, gone when the anchor is gone.

import { arrange, el } from "./dom.js";

const GAP_PX = 4;
const EDGE_PX = 8;
const open = new Set();

function place(anchor, box) {
  const rect = anchor.getBoundingClientRect();
  const below = window.innerHeight - rect.bottom - GAP_PX - EDGE_PX;
  const above = rect.top - GAP_PX - EDGE_PX;
  box.style.maxHeight = `${Math.min(320, Math.max(below, above))}px`;
  const height = Math.min(box.offsetHeight, 320);
  const up = height > below && above > below;
  const top = up ? rect.top - GAP_PX - height : rect.bottom + GAP_PX;
  const left = Math.min(rect.left, window.innerWidth - box.offsetWidth - EDGE_PX);
  box.style.top = `${Math.max(EDGE_PX, top)}px`;
  box.style.left = `${Math.max(EDGE_PX, left)}px`;
}

/**
 * Show `box` at `anchor`. `onClose` runs once, however it closes. Returns `{close, place}`.
 * It is put into the anchor's dialog, since everything outside an open dialog cannot be clicked.
 */
export function showPopup(anchor, box, onClose) {
  box.classList.add("popup");
  (anchor.closest("dialog") ?? document.body).append(box);
  box.style.minWidth = `${anchor.offsetWidth}px`;
  const reposition = () => place(anchor, box);
  const outside = (event) => {
    if (!box.contains(event.target) && !anchor.contains(event.target)) popup.close();
  };
  const popup = {
    anchor,
    place: reposition,
    close() {
      if (!open.delete(popup)) return;
      document.removeEventListener("pointerdown", outside, true);
      window.removeEventListener("scroll", reposition, true);
      window.removeEventListener("resize", reposition);
      box.remove();
      onClose();
    },
  };
  open.add(popup);
  document.addEventListener("pointerdown", outside, true);
  window.addEventListener("scroll", reposition, true);
  window.addEventListener("resize", reposition);
  reposition();
  return popup;
}

/** Close the popups whose anchor has left the page, and move the others along with theirs. */
export function tidyPopups() {
  for (const popup of [...open]) {
    if (popup.anchor.isConnected) popup.place();
    else popup.close();
  }
}

/** Close the innermost popup inside `root`; false when there is none. */
export function closePopupIn(root) {
  const inside = [...open].filter((popup) => root.contains(popup.anchor)).pop();
  inside?.close();
  return inside !== undefined;
}

/**
 * A list of choices inside a popup, with one active row that the keyboard moves.
 * `role` is "option" or "menuitem"; `onActive(id)` tells the id of the active row (or null).
 */
export function choiceRows(box, role, onActive) {
  let rows = [];
  let active = -1;
  const setActive = (index, scroll = true) => {
    rows[active]?.classList.remove("active");
    active = index;
    rows[active]?.classList.add("active");
    if (scroll) rows[active]?.scrollIntoView({ block: "nearest" });
    onActive(rows[active]?.id ?? null, rows[active] ?? null);
  };
  return {
    /** Fill the box with nodes; those with the role are the choices. */
    fill(nodes, start) {
      arrange(box, nodes);
      rows = nodes.filter((node) => node.getAttribute("role") === role);
      for (const [index, row] of rows.entries())
        row.onpointermove = () => active !== index && setActive(index, false);
      setActive(rows.length ? Math.min(Math.max(start, 0), rows.length - 1) : -1);
    },
    current: () => rows[active] ?? null,
    index: () => active,
    /** Take a key: true when it moved the active row. */
    move(key) {
      const steps = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: rows.length - 1 };
      if (!Object.hasOwn(steps, key) || !rows.length) return false;
      setActive((steps[key] + rows.length) % rows.length);
      return true;
    },
  };
}

/** A choice's row: `label` and `description` are arrays of nodes. */
export function choiceRow(props, label, description) {
  const second = description?.length ? el("span", { class: "choice-description" }, ...description) : null;
  return el("div", { class: "choice", ...props }, el("span", { class: "choice-label" }, ...label), second);
}
