// The box to write in: Enter sends, "/" offers the slash commands, "@" the people.

import { say } from "./api.js";
import { avatar } from "./avatar.js";
import { el, uid } from "./dom.js";
import { icon } from "./icons.js";
import { choiceRow, choiceRows, showPopup } from "./popup.js";
import { apps, displayName, people, world } from "./world.js";

const MAX_ROWS_PX = 180;
const drafts = new Map();

/** What to offer for the text before the caret: `{from, rows: [{insert, label, description}]}` or null. */
function offers(before) {
  const command = /^\/(\S*)$/.exec(before);
  if (command) {
    const rows = world.state.commands
      .filter((item) => item.command.startsWith(before))
      .map((item) => ({ insert: `${item.command} `, label: [item.command, " ", el("span", { class: "usage" }, item.usage ?? "")], description: [item.description ?? ""] }));
    return rows.length ? { from: 0, rows } : null;
  }
  const name = /(?:^|\s)@([\p{L}\p{N}._-]*)$/u.exec(before);
  if (!name || before.startsWith("/")) return null;
  const wanted = name[1].toLowerCase();
  const rows = [...people(), ...apps()]
    .filter((user) => [user.name, displayName(user)].some((word) => word.toLowerCase().startsWith(wanted)))
    .map((user) => ({ insert: `@${user.name} `, label: [avatar(user, "small"), " ", displayName(user)], description: [`@${user.name}`] }));
  return rows.length ? { from: before.length - name[1].length - 1, rows } : null;
}

/** A composer for `{channel, thread?, label}`. Returns `{node, focus()}`. */
export function makeComposer({ channel, thread, label }) {
  const draftKey = () => `${world.state.you}:${channel}:${thread ?? ""}`;
  const listId = uid("offers");
  const box = el("div", { id: listId, role: "listbox", "aria-label": "Suggestions" });
  const field = el("textarea", { class: "composer-field", rows: 1, placeholder: label, "aria-label": label, "aria-autocomplete": "list", "aria-controls": listId });
  const send = el("button", { type: "button", class: "send", "aria-label": "Send", title: "Send", disabled: true }, icon("send"));
  const failure = el("div", { class: "composer-failure", role: "alert", hidden: true });
  const frame = el("div", { class: "composer-frame" }, field, el("div", { class: "composer-foot" }, el("span", { class: "composer-help" }, "Enter to send · Shift+Enter for a new line · / for commands"), send));
  const node = el("div", { class: "composer" }, frame, failure);
  let popup = null;
  let open = null;
  const rows = choiceRows(box, "option", (id) => {
    if (id) field.setAttribute("aria-activedescendant", id);
    else field.removeAttribute("aria-activedescendant");
  });

  const settle = () => {
    send.disabled = !field.value.trim();
    drafts.set(draftKey(), field.value);
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, MAX_ROWS_PX)}px`;
  };
  const close = () => popup?.close();
  const complete = (row) => {
    const end = field.selectionStart;
    field.value = field.value.slice(0, open.from) + row.insert + field.value.slice(end);
    const caret = open.from + row.insert.length;
    close();
    field.setSelectionRange(caret, caret);
    field.focus();
    settle();
  };
  const offer = () => {
    const found = offers(field.value.slice(0, field.selectionStart));
    if (!found) return close();
    open = found;
    popup ??= showPopup(frame, box, () => {
      popup = null;
      field.removeAttribute("aria-activedescendant");
    });
    const nodes = found.rows.map((row) => {
      const choice = choiceRow({ id: uid("offer"), role: "option" }, row.label, row.description);
      choice.addEventListener("click", () => complete(row));
      return choice;
    });
    rows.fill(nodes, 0);
    return popup.place();
  };
  const submit = async () => {
    const text = field.value.trim();
    if (!text) return;
    field.value = "";
    failure.hidden = true;
    close();
    settle();
    const answer = await say(channel, text, thread);
    if (answer.ok) return;
    failure.replaceChildren(icon("warning"), `That didn't work. Try again.${answer.error ? ` (${answer.error})` : ""}`);
    failure.hidden = false;
    if (!field.value) field.value = text;
    settle();
  };

  box.addEventListener("pointerdown", (event) => event.preventDefault());
  send.addEventListener("click", submit);
  field.addEventListener("input", () => {
    settle();
    offer();
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const typedAll = open?.rows[rows.index()]?.insert.trim() === field.value.trim();
    if (popup && rows.move(event.key)) event.preventDefault();
    else if (popup && event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (popup && (event.key === "Tab" || (event.key === "Enter" && !typedAll))) {
      event.preventDefault();
      rows.current()?.click();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  });
  field.value = drafts.get(draftKey()) ?? "";
  settle();
  return { node, focus: () => field.focus() };
}
