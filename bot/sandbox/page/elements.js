// Interactive elements of Block Kit, by type. Menus are in select.js, fields in inputs.js.

import { confirmed } from "./confirm.js";
import { changed, makeControl, press } from "./control.js";
import { el, uid } from "./dom.js";
import { quietEmoji } from "./emoji.js";
import { dots } from "./icons.js";
import { dateControl, momentControl, numberControl, textControl } from "./inputs.js";
import { attachMenu } from "./menu.js";
import { textObject } from "./mrkdwn.js";
import { selectControl } from "./select.js";

/** Go to an element's address as a link does: to a message of this workspace in place, else apart from the page. */
function visit(url) {
  if (!/^https?:/i.test(url ?? "")) return;
  const link = el("a", { href: url, target: "_blank", rel: "noopener noreferrer", hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}

function buttonControl(element, surface, place) {
  const style = element.style ? ` button-${element.style}` : "";
  const words = quietEmoji(el("span", { class: "button-text" }, ...textObject(element.text)));
  const button = el(
    "button",
    { type: "button", class: `button${style}`, "aria-label": element.accessibility_label },
    words,
    el("span", { class: "spinner" }),
  );
  button.addEventListener("click", async () => {
    if (element.confirm && !(await confirmed(element.confirm))) return;
    visit(element.url);
    await press(button);
  });
  return makeControl(element, surface, place, [button]);
}

/** checkboxes and radio_buttons. */
function choicesControl(element, surface, place) {
  const many = element.type === "checkboxes";
  const group = uid("choice");
  const inputs = element.options.map((option) =>
    el("input", { type: many ? "checkbox" : "radio", name: group, value: option.value, id: uid("choice") }),
  );
  const rows = element.options.map((option, index) => {
    const description = option.description
      ? el("span", { class: "tick-description" }, ...textObject(option.description))
      : null;
    return el(
      "div",
      { class: "tick" },
      inputs[index],
      el(
        "label",
        { for: inputs[index].id },
        el("span", { class: "tick-text" }, ...textObject(option.text)),
        description,
      ),
    );
  });
  const box = el(
    "div",
    {
      class: "ticks",
      role: many ? "group" : "radiogroup",
      id: place.controlId,
      "aria-labelledby": place.labelId,
      "aria-label": place.labelId ? null : place.label,
    },
    ...rows,
  );
  const read = () => {
    const values = inputs.filter((input) => input.checked).map((input) => input.value);
    return many ? values : (values[0] ?? null);
  };
  const write = (value) => {
    const values = [value ?? []].flat();
    for (const input of inputs) input.checked = values.includes(input.value);
  };
  let before = null;
  box.addEventListener("change", async () => {
    if (element.confirm && !(await confirmed(element.confirm))) return write(before);
    before = read();
    return changed(box);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  return makeControl(element, surface, place, [box], {
    read,
    write: (value) => {
      write(value);
      before = value;
    },
  });
}

function overflowControl(element, surface, place) {
  const button = el(
    "button",
    { type: "button", class: "button button-overflow", "aria-label": "More options" },
    dots(),
    el("span", { class: "spinner" }),
  );
  const pick = async (option) => {
    if (element.confirm && !(await confirmed(element.confirm))) return;
    visit(option.url);
    await press(button, option.value);
  };
  const items = element.options.map((option) => ({
    text: textObject(option.text),
    description: option.description ? textObject(option.description) : null,
    act: () => pick(option),
  }));
  attachMenu(button, "More options", items);
  return makeControl(element, surface, place, [button]);
}

const MAKERS = {
  button: buttonControl,
  checkboxes: choicesControl,
  radio_buttons: choicesControl,
  overflow: overflowControl,
  static_select: selectControl,
  multi_static_select: selectControl,
  users_select: selectControl,
  multi_users_select: selectControl,
  plain_text_input: textControl,
  number_input: numberControl,
  datepicker: dateControl,
  datetimepicker: momentControl,
};

/** The node of an interactive element; `place` as in `makeControl`. */
export function elementNode(element, surface, place) {
  if (!Object.hasOwn(MAKERS, element.type))
    return el("div", { class: "unknown" }, `Element of type ${element.type} is not drawn here.`);
  return MAKERS[element.type](element, surface, place);
}
