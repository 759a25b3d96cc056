// A button that opens a menu of acts, moved through by the arrow keys.

import { el, uid } from "./dom.js";
import { choiceRow, choiceRows, showPopup } from "./popup.js";

/**
 * Have `button` open a menu named `label`. `items` are `{text, description, act}`: nodes, nodes or null, and
 * what runs when the item is chosen, after the menu has closed and the button has the focus again.
 */
export function attachMenu(button, label, items) {
  const menu = el("div", { id: uid("menu"), role: "menu", "aria-label": label, tabIndex: -1 });
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", menu.id);
  let popup = null;
  const rows = choiceRows(menu, "menuitem", (id, row) => {
    if (popup) row?.focus();
  });
  const nodes = items.map(({ text, description, act }) => {
    const item = choiceRow({ id: uid("item"), role: "menuitem", tabIndex: -1 }, text, description);
    item.addEventListener("click", () => {
      popup.close();
      button.focus();
      act();
    });
    return item;
  });
  const open = () => {
    popup = showPopup(button, menu, () => {
      popup = null;
      button.setAttribute("aria-expanded", "false");
    });
    button.setAttribute("aria-expanded", "true");
    rows.fill(nodes, 0);
    popup.place();
  };
  button.addEventListener("click", () => (popup ? popup.close() : open()));
  button.addEventListener("keydown", (event) => {
    if (!popup && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      open();
    }
  });
  menu.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (rows.move(event.key)) event.preventDefault();
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      rows.current()?.click();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      popup?.close();
      button.focus();
    }
  });
}
