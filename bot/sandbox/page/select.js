// Menus: static_select and users_select, and those of several choices, as an editable combobox with a listbox.

import { changed, hold, makeControl, release } from "./control.js";
import { confirmed } from "./confirm.js";
import { el, uid } from "./dom.js";
import { icon } from "./icons.js";
import { labelText, textObject } from "./mrkdwn.js";
import { choiceRow, choiceRows, showPopup } from "./popup.js";
import { displayName, people } from "./world.js";

/** The groups to choose from: `[{label, options: [{value, name, text, description}]}]`. */
function groupsOf(element) {
  if (["users_select", "multi_users_select"].includes(element.type)) {
    const named = people().map((user) => [user.id, displayName(user)]);
    const options = named.map(([value, name]) => ({ value, name, text: { type: "plain_text", text: name } }));
    return [{ label: null, options }];
  }
  const groups = element.option_groups ?? [{ label: null, options: element.options ?? [] }];
  return groups.map((group) => ({
    label: group.label ? labelText(group.label) : null,
    options: group.options.map((option) => ({ ...option, name: labelText(option.text) })),
  }));
}

class Menu {
  /** `element` and `place` as in `makeControl`. */
  constructor(element, place) {
    this.element = element;
    this.many = element.type.startsWith("multi_");
    this.groups = groupsOf(element);
    this.options = this.groups.flatMap((group) => group.options);
    this.placeholder = element.placeholder ? labelText(element.placeholder) : "Select an item";
    this.chosen = [];
    this.popup = null;
    /** True while the input holds words to filter by, rather than nothing or the choice's name. */
    this.filtering = false;
    this.build(place);
    this.rows = choiceRows(this.box, "option", (id) => this.activate(id));
    this.listen();
    this.show();
  }

  build(place) {
    const listId = uid("list");
    this.box = el("div", {
      id: listId,
      role: "listbox",
      "aria-label": place.label || this.placeholder,
      "aria-multiselectable": this.many ? "true" : null,
    });
    this.input = el("input", {
      class: "select-input",
      type: "text",
      role: "combobox",
      id: place.controlId,
      autocomplete: "off",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": listId,
      "aria-labelledby": place.labelId,
      "aria-label": place.labelId ? null : [place.label, this.placeholder].filter(Boolean).join(": "),
    });
    this.chips = el("span", { class: "chips" });
    this.node = el(
      "div",
      { class: `select${this.many ? " select-many" : ""}` },
      this.many ? this.chips : null,
      this.input,
      icon("down"),
    );
  }

  listen() {
    // The input keeps the focus while the list is used, so that leaving the input closes the list.
    this.box.addEventListener("pointerdown", (event) => event.preventDefault());
    this.node.addEventListener("click", (event) => this.clicked(event));
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** The present choice: one value or null, or a list of values. */
  read() {
    return this.many ? this.chosen : (this.chosen[0] ?? null);
  }

  write(value) {
    this.chosen = [value ?? []].flat();
    this.show();
  }

  nameOf(value) {
    return this.options.find((option) => option.value === value)?.name ?? value ?? "";
  }

  /** Draw the closed state: the choice's name, or a chip for each choice. */
  show() {
    const name = this.many ? "" : this.nameOf(this.chosen[0]);
    if (!this.popup) this.input.value = name;
    this.input.placeholder = this.many && this.chosen.length ? "" : name || this.placeholder;
    this.chips.replaceChildren(...(this.many ? this.chosen.map((value) => this.chip(value)) : []));
  }

  chip(value) {
    const name = this.nameOf(value);
    const remove = () => this.take(this.chosen.filter((other) => other !== value));
    return el(
      "span",
      { class: "chip" },
      el("span", { class: "chip-label" }, name),
      el(
        "button",
        { type: "button", class: "chip-remove", "aria-label": `Remove ${name}`, on: { click: remove } },
        "×",
      ),
    );
  }

  activate(id) {
    if (id) this.input.setAttribute("aria-activedescendant", id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  open() {
    if (this.popup) return;
    hold(this.node);
    this.filtering = false;
    this.input.value = "";
    this.input.setAttribute("aria-expanded", "true");
    this.popup = showPopup(this.node, this.box, () => this.closed());
    this.list(this.options.findIndex((option) => option.value === this.chosen[0]));
  }

  close() {
    this.popup?.close();
  }

  closed() {
    this.popup = null;
    this.input.setAttribute("aria-expanded", "false");
    this.activate(null);
    this.show();
    release(this.node);
  }

  /** Fill the open list with the options that match; `start` is the row to make active. */
  list(start) {
    const words = this.filtering ? this.input.value.trim().toLowerCase() : "";
    const nodes = this.groups.flatMap(({ label, options }) => {
      const rows = options
        .filter((option) => option.name.toLowerCase().includes(words))
        .map((option) => this.row(option));
      const heading = el("div", { class: "choice-group", role: "presentation" }, label ?? "");
      return label && rows.length ? [heading, ...rows] : rows;
    });
    this.rows.fill(nodes.length ? nodes : [el("div", { class: "choice-none" }, "No items")], start);
    this.popup.place();
  }

  row(option) {
    const picked = this.chosen.includes(option.value);
    const full = this.many && !picked && this.chosen.length >= (this.element.max_selected_items ?? Infinity);
    const row = choiceRow(
      {
        id: uid("option"),
        role: "option",
        "aria-selected": String(picked),
        "aria-disabled": full ? "true" : null,
        data: { value: option.value },
      },
      textObject(option.text),
      textObject(option.description),
    );
    if (picked) row.append(icon("check"));
    row.addEventListener("click", () => this.pick(row));
    return row;
  }

  /** Choose a row: a menu of one choice closes, one of several toggles and stays open. */
  pick(row) {
    if (!row || row.getAttribute("aria-disabled")) return;
    const { value } = row.dataset;
    if (this.many) {
      const without = this.chosen.filter((other) => other !== value);
      if (this.filtering) this.input.value = "";
      this.filtering = false;
      this.take(without.length < this.chosen.length ? without : [...this.chosen, value]);
    } else {
      const before = this.chosen[0];
      this.close();
      if (value !== before) this.take([value]);
    }
  }

  /** Make `values` the choice and send it, once the person has confirmed where that is asked for. */
  async take(values) {
    const before = this.chosen;
    this.chosen = values;
    this.show();
    if (this.popup) this.list(this.rows.index());
    if (this.element.confirm && !(await confirmed(this.element.confirm))) {
      this.chosen = before;
      this.show();
      return;
    }
    await changed(this.node);
  }

  clicked(event) {
    if (event.target.closest(".chip-remove")) return;
    this.input.focus();
    if (this.popup && event.target !== this.input) this.close();
    else this.open();
  }

  typed() {
    const text = this.input.value;
    this.open();
    this.filtering = true;
    this.input.value = text;
    this.list(0);
  }

  pressed(event) {
    if (event.key === "Tab") {
      this.close();
      return;
    }
    if (!this.handles(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Do what a key stands for; false when it is an ordinary key. */
  handles(key) {
    if (key === "Backspace" && this.many && !this.input.value && this.chosen.length) {
      this.take(this.chosen.slice(0, -1));
      return true;
    }
    const opens = ["ArrowDown", "ArrowUp", "Enter", " "].includes(key);
    if (!this.popup) {
      if (opens) this.open();
      return opens;
    }
    if (key === "Enter" || (key === " " && !(this.filtering && this.input.value))) {
      this.pick(this.rows.current());
      return true;
    }
    if (key === "Escape") {
      this.close();
      return true;
    }
    return this.rows.move(key);
  }
}

/** A menu element as a control. Each change is sent at once, as Slack does. */
export function selectControl(element, surface, place) {
  const menu = new Menu(element, place);
  const behaviour = { read: () => menu.read(), write: (value) => menu.write(value) };
  return makeControl(element, surface, place, [menu.node], behaviour);
}
