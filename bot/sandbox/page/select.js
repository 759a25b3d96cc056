// Menus: static_select, multi_static_select and users_select, as an editable combobox with a listbox.

import { changed, hold, makeControl, release } from "./control.js";
import { confirmed } from "./confirm.js";
import { el, uid } from "./dom.js";
import { icon } from "./icons.js";
import { labelText, textObject } from "./mrkdwn.js";
import { choiceRow, choiceRows, showPopup } from "./popup.js";
import { displayName, people } from "./world.js";

/** The groups to choose from: `[{label, options: [{value, text, name, description}]}]`. */
function groupsOf(element) {
  if (element.type === "users_select") {
    const options = people().map((user) => ({ value: user.id, text: [displayName(user)], name: displayName(user) }));
    return [{ label: null, options }];
  }
  const groups = element.option_groups ?? [{ label: null, options: element.options ?? [] }];
  return groups.map((group) => ({
    label: group.label ? labelText(group.label) : null,
    options: group.options.map((option) => ({
      value: option.value,
      text: option.text,
      name: labelText(option.text),
      description: option.description,
    })),
  }));
}

const labelNodes = (option) => (Array.isArray(option.text) ? option.text : textObject(option.text));

/** A menu element as a control. Each change is sent at once, as Slack does. */
export function selectControl(element, surface, place) {
  const many = element.type.startsWith("multi_");
  const groups = groupsOf(element);
  const named = new Map(groups.flatMap((group) => group.options.map((option) => [option.value, option])));
  const placeholder = element.placeholder ? labelText(element.placeholder) : "Select an item";
  const limit = element.max_selected_items ?? Infinity;
  let chosen = [];
  let popup = null;
  let typed = false;

  const listId = uid("list");
  const box = el("div", { id: listId, role: "listbox", "aria-label": place.label || placeholder, "aria-multiselectable": many ? "true" : null });
  const input = el("input", {
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
    "aria-label": place.labelId ? null : [place.label, placeholder].filter(Boolean).join(": "),
  });
  const chips = el("span", { class: "chips" });
  const frame = el("div", { class: `select${many ? " select-many" : ""}` }, many ? chips : null, input, icon("down"));
  const rows = choiceRows(box, "option", (id) => {
    if (id) input.setAttribute("aria-activedescendant", id);
    else input.removeAttribute("aria-activedescendant");
  });

  const show = () => {
    const name = named.get(chosen[0])?.name ?? chosen[0] ?? "";
    if (!popup) input.value = many ? "" : name;
    input.placeholder = many ? (chosen.length ? "" : placeholder) : name || placeholder;
    input.classList.toggle("empty", !chosen.length);
    if (many) chips.replaceChildren(...chosen.map(chip));
  };
  const chip = (value) => {
    const label = named.get(value)?.name ?? value;
    const remove = el("button", { type: "button", class: "chip-remove", "aria-label": `Remove ${label}`, on: { click: () => take(chosen.filter((item) => item !== value)) } }, "×");
    return el("span", { class: "chip" }, el("span", { class: "chip-label" }, label), remove);
  };
  const take = async (values) => {
    const before = chosen;
    chosen = values;
    show();
    if (popup) list(rows.index());
    if (element.confirm && !(await confirmed(element.confirm))) {
      chosen = before;
      show();
      return;
    }
    await changed(frame);
  };

  const matching = () => {
    const words = typed ? input.value.trim().toLowerCase() : "";
    return groups.map((group) => ({ ...group, options: group.options.filter((option) => option.name.toLowerCase().includes(words)) })).filter((group) => group.options.length);
  };
  const optionRow = (option) => {
    const picked = chosen.includes(option.value);
    const full = many && !picked && chosen.length >= limit;
    const props = { id: uid("option"), role: "option", "aria-selected": String(picked), "aria-disabled": full ? "true" : null, data: { value: option.value } };
    const row = choiceRow(props, labelNodes(option).map((node) => node.cloneNode?.(true) ?? node), option.description ? textObject(option.description) : null);
    if (picked) row.append(icon("check"));
    row.addEventListener("click", () => pick(row));
    return row;
  };
  const list = (start) => {
    const found = matching();
    const nodes = found.flatMap((group) => [group.label ? el("div", { class: "choice-group", role: "presentation" }, group.label) : null, ...group.options.map(optionRow)]);
    const empty = el("div", { class: "choice-none" }, "No items");
    rows.fill(found.length ? nodes.filter(Boolean) : [empty], start);
    popup?.place();
  };
  const pick = (row) => {
    if (!row || row.getAttribute("aria-disabled")) return;
    const { value } = row.dataset;
    if (!many) {
      const same = chosen[0] === value;
      chosen = [value];
      close();
      if (!same) take([value]);
      return;
    }
    if (typed) input.value = "";
    typed = false;
    take(chosen.includes(value) ? chosen.filter((item) => item !== value) : [...chosen, value]);
  };
  const openList = () => {
    if (popup) return;
    hold(frame);
    typed = false;
    popup = showPopup(frame, box, () => {
      popup = null;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
      frame.classList.remove("open");
      show();
      release(frame);
    });
    input.value = "";
    input.setAttribute("aria-expanded", "true");
    frame.classList.add("open");
    const values = groups.flatMap((group) => group.options.map((option) => option.value));
    list(values.indexOf(chosen[0]));
  };
  const close = () => popup?.close();

  box.addEventListener("pointerdown", (event) => event.preventDefault());
  frame.addEventListener("click", (event) => {
    if (event.target.closest(".chip-remove")) return;
    input.focus();
    if (popup && event.target !== input) close();
    else openList();
  });
  input.addEventListener("input", () => {
    const text = input.value;
    openList();
    typed = true;
    input.value = text;
    list(0);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Tab") return close();
    if (event.key === "Backspace" && many && !input.value && chosen.length) return take(chosen.slice(0, -1));
    const opens = ["ArrowDown", "ArrowUp", "Enter", " "].includes(event.key);
    const picks = event.key === "Enter" || (event.key === " " && !(typed && input.value));
    if (!popup && opens) openList();
    else if (popup && picks) pick(rows.current());
    else if (popup && event.key === "Escape") close();
    else if (!(popup && rows.move(event.key))) return undefined;
    event.preventDefault();
    return event.stopPropagation();
  });

  const write = (value) => {
    chosen = [value ?? []].flat();
    show();
  };
  show();
  return makeControl(element, surface, place, [frame], { read: () => (many ? chosen : (chosen[0] ?? null)), write });
}
