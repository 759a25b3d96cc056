// Fields: plain_text_input, number_input, datepicker and datetimepicker.

import { changed, hold, makeControl, release } from "./control.js";
import { el } from "./dom.js";
import { labelText } from "./mrkdwn.js";

/** The count of what is left shows only near the limit. */
const COUNTED = 100;

/** How a text field of a dispatching block tells the app (Slack: dispatch action configuration). */
function triggers(element, place) {
  if (!place.dispatches) return [];
  return element.dispatch_action_config?.trigger_actions_on ?? ["on_enter_pressed"];
}

function fieldProps(element, place) {
  return {
    class: "field",
    id: place.controlId,
    placeholder: element.placeholder ? labelText(element.placeholder) : null,
    "aria-labelledby": place.labelId,
    "aria-label": place.labelId ? null : place.label,
    autofocus: element.focus_on_load,
  };
}

/** Join a field to its block: what is typed is stored when the person pauses or leaves. */
function wire(field, element, place) {
  const tells = triggers(element, place);
  field.addEventListener("focus", () => hold(field));
  field.addEventListener("blur", () => release(field));
  field.addEventListener("change", () => changed(field, { dispatch: false }));
  field.addEventListener(
    "input",
    () => tells.includes("on_character_entered") && changed(field, { dispatch: true }),
  );
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || !tells.includes("on_enter_pressed"))
      return;
    event.preventDefault();
    changed(field, { dispatch: true });
  });
}

/** plain_text_input, one line or several, with the count of characters that are left. */
export function textControl(element, surface, place) {
  const props = fieldProps(element, place);
  const field = element.multiline
    ? el("textarea", { ...props, rows: 4 })
    : el("input", { ...props, type: "text", autocomplete: "off" });
  const counter = element.max_length ? el("span", { class: "counter", "aria-live": "polite" }) : null;
  const count = () => {
    if (!counter) return;
    const left = element.max_length - field.value.length;
    counter.textContent = String(left);
    counter.setAttribute("aria-label", `${left} characters left`);
    counter.classList.toggle("over", left < 0);
    counter.hidden = left > COUNTED;
  };
  field.addEventListener("input", count);
  wire(field, element, place);
  count();
  return makeControl(element, surface, place, [el("div", { class: "field-frame" }, field, counter)], {
    read: () => field.value || null,
    write: (value) => {
      field.value = value ?? "";
      count();
    },
    problem: () => textProblem(element, field.value),
  });
}

function textProblem(element, text) {
  if (text && text.length < (element.min_length ?? 0))
    return `Use at least ${element.min_length} characters.`;
  if (text.length > (element.max_length ?? Infinity)) return `Use at most ${element.max_length} characters.`;
  return null;
}

/** number_input. */
export function numberControl(element, surface, place) {
  const field = el("input", {
    ...fieldProps(element, place),
    type: "text",
    inputmode: element.is_decimal_allowed ? "decimal" : "numeric",
    autocomplete: "off",
  });
  wire(field, element, place);
  return makeControl(element, surface, place, [el("div", { class: "field-frame" }, field)], {
    read: () => field.value.trim() || null,
    write: (value) => {
      field.value = value ?? "";
    },
    problem: () => numberProblem(element, field.value.trim()),
  });
}

function numberProblem(element, text) {
  if (!text) return null;
  const shape = element.is_decimal_allowed ? /^-?\d+(\.\d+)?$/ : /^-?\d+$/;
  if (!shape.test(text)) return element.is_decimal_allowed ? "Enter a number." : "Enter a whole number.";
  const number = Number(text);
  if (element.min_value !== undefined && number < Number(element.min_value))
    return `Enter ${element.min_value} or more.`;
  if (element.max_value !== undefined && number > Number(element.max_value))
    return `Enter ${element.max_value} or less.`;
  return null;
}

/** datepicker. */
export function dateControl(element, surface, place) {
  const field = el("input", { ...fieldProps(element, place), type: "date" });
  return pickerControl(field, element, surface, place, {
    read: () => field.value || null,
    write: (value) => {
      field.value = value ?? "";
    },
  });
}

/** datetimepicker: seconds since 1970, seen in the browser's time zone. */
export function momentControl(element, surface, place) {
  const field = el("input", { ...fieldProps(element, place), type: "datetime-local" });
  return pickerControl(field, element, surface, place, {
    read: () => (field.value ? String(new Date(field.value).getTime() / 1000) : null),
    write: (value) => {
      field.value = value ? localMinute(new Date(Number(value) * 1000)) : "";
    },
  });
}

/** Half a date is none, and is said: a native picker holds nothing until it is whole. */
function pickerControl(field, element, surface, place, behaviour) {
  field.classList.add("picker");
  field.addEventListener("focus", () => hold(field));
  field.addEventListener("blur", () => release(field));
  field.addEventListener("change", () => changed(field));
  return makeControl(element, surface, place, [el("div", { class: "field-frame" }, field)], {
    ...behaviour,
    problem: () => (field.validity.badInput ? "Enter a whole date." : null),
  });
}

function localMinute(moment) {
  const two = (number) => String(number).padStart(2, "0");
  const day = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join("-");
  return `${day}T${two(moment.getHours())}:${two(moment.getMinutes())}`;
}
