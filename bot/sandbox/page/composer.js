// The box to write in: Enter sends, "/" offers the slash commands, "@" the people.

import { runShortcut, say } from "./api.js";
import { avatar } from "./avatar.js";
import { el, uid } from "./dom.js";
import { icon } from "./icons.js";
import { attachMenu } from "./menu.js";
import { choiceRow, choiceRows, showPopup } from "./popup.js";
import { apps, displayName, people, world } from "./world.js";

const MAX_HEIGHT_PX = 180;
const HELP = "Enter to send · Shift+Enter for a new line · / for commands";
const drafts = new Map();

/** What to offer for the text before the caret: `{from, rows: [{insert, label, description}]}` or null. */
function offers(before) {
  const command = /^\/(\S*)$/.exec(before);
  if (command) {
    const rows = world.state.commands
      .filter((item) => item.command.startsWith(before))
      .map((item) => ({
        insert: `${item.command} `,
        label: [item.command, " ", el("span", { class: "usage" }, item.usage ?? "")],
        description: [item.description ?? ""],
      }));
    return rows.length ? { from: 0, rows } : null;
  }
  const name = /(?:^|\s)@([\p{L}\p{N}._-]*)$/u.exec(before);
  if (!name || before.startsWith("/")) return null;
  const wanted = name[1].toLowerCase();
  const rows = [...people(), ...apps()]
    .filter((user) => [user.name, displayName(user)].some((word) => word.toLowerCase().startsWith(wanted)))
    .map((user) => ({
      insert: `@${user.name} `,
      label: [avatar(user, "small"), " ", displayName(user)],
      description: [`@${user.name}`],
    }));
  return rows.length ? { from: before.length - name[1].length - 1, rows } : null;
}

class Composer {
  constructor({ channel, thread, label, onSent }) {
    this.channel = channel;
    this.thread = thread;
    this.onSent = onSent;
    this.draft = `${world.state.you}:${channel}:${thread ?? ""}`;
    this.popup = null;
    /** What the open list offers; see `offers`. */
    this.offered = null;
    this.build(label);
    this.rows = choiceRows(this.box, "option", (id) => this.activate(id));
    this.listen();
    this.field.value = drafts.get(this.draft) ?? "";
    this.settle();
  }

  build(label) {
    const listId = uid("offers");
    this.box = el("div", { id: listId, role: "listbox", "aria-label": "Suggestions" });
    this.field = el("textarea", {
      class: "composer-field",
      rows: 1,
      placeholder: label,
      "aria-label": label,
      "aria-autocomplete": "list",
      "aria-controls": listId,
    });
    this.send = el(
      "button",
      { type: "button", class: "send", "aria-label": "Send", title: "Send", disabled: true },
      icon("send"),
    );
    const help = el("span", { class: "composer-help" }, HELP);
    const foot = el("div", { class: "composer-foot" }, this.shortcuts(), help, this.send);
    this.frame = el("div", { class: "composer-frame" }, this.field, foot);
    this.failure = el("div", { class: "composer-failure", role: "alert", hidden: true });
    this.node = el("div", { class: "composer" }, this.frame, this.failure);
  }

  /** The apps' global shortcuts behind a plus sign, if there are any. */
  shortcuts() {
    const offered = world.state.shortcuts.filter((item) => item.type === "global");
    if (!offered.length) return null;
    const button = el(
      "button",
      { type: "button", class: "shortcuts", "aria-label": "Shortcuts", title: "Shortcuts" },
      icon("plus"),
    );
    const items = offered.map((item) => ({
      text: [item.name],
      description: [item.description || item.app],
      act: async () => this.fail(await runShortcut(item.callback_id)),
    }));
    attachMenu(button, "Shortcuts", items);
    return button;
  }

  /** Say that something did not work; nothing when it did. */
  fail(answer) {
    this.failure.hidden = answer.ok;
    if (answer.ok) return;
    const why = answer.error ? ` (${answer.error})` : "";
    this.failure.replaceChildren(icon("warning"), `That didn't work. Try again.${why}`);
  }

  listen() {
    // The field keeps the focus while the list is used, so that leaving the field closes the list.
    this.box.addEventListener("pointerdown", (event) => event.preventDefault());
    this.send.addEventListener("click", () => this.submit());
    this.field.addEventListener("blur", () => this.close());
    this.field.addEventListener("input", () => {
      this.settle();
      this.offer();
    });
    this.field.addEventListener("keydown", (event) => {
      if (!event.isComposing && this.handles(event)) event.preventDefault();
    });
  }

  activate(id) {
    if (id) this.field.setAttribute("aria-activedescendant", id);
    else this.field.removeAttribute("aria-activedescendant");
  }

  /** Follow the text: remember it, fit the height, allow sending. */
  settle() {
    this.send.disabled = !this.field.value.trim();
    drafts.set(this.draft, this.field.value);
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, MAX_HEIGHT_PX)}px`;
  }

  close() {
    this.popup?.close();
  }

  /** Show what fits the text before the caret, if anything does. */
  offer() {
    this.offered = offers(this.field.value.slice(0, this.field.selectionStart));
    if (!this.offered) {
      this.close();
      return;
    }
    this.popup ??= showPopup(this.frame, this.box, () => {
      this.popup = null;
      this.activate(null);
    });
    const nodes = this.offered.rows.map((row) => {
      const choice = choiceRow({ id: uid("offer"), role: "option" }, row.label, row.description);
      choice.addEventListener("click", () => this.complete(row));
      return choice;
    });
    this.rows.fill(nodes, 0);
    this.popup.place();
  }

  complete({ insert }) {
    const { from } = this.offered;
    this.field.setRangeText(insert, from, this.field.selectionStart, "end");
    this.close();
    this.field.focus();
    this.settle();
  }

  async submit() {
    const text = this.field.value.trim();
    if (!text) return;
    this.field.value = "";
    this.failure.hidden = true;
    this.close();
    this.settle();
    const answer = await say(this.channel, text, this.thread);
    if (answer.ok) {
      this.onSent();
      return;
    }
    this.fail(answer);
    if (!this.field.value) this.field.value = text;
    this.settle();
  }

  /** Do what a key stands for; false when it is an ordinary key. */
  handles({ key, shiftKey }) {
    if (this.popup) {
      if (key === "ArrowDown" || key === "ArrowUp") return this.rows.move(key);
      if (key === "Escape") {
        this.close();
        return true;
      }
      const written = this.offered.rows[this.rows.index()].insert.trim() === this.field.value.trim();
      if (key === "Tab" || (key === "Enter" && !shiftKey && !written)) {
        this.rows.current().click();
        return true;
      }
    }
    if (key !== "Enter" || shiftKey) return false;
    this.submit();
    return true;
  }
}

/** A composer for `{channel, thread?, label}`; `onSent` runs after each message. Returns `{node, focus()}`. */
export function makeComposer(settings) {
  const composer = new Composer(settings);
  return { node: composer.node, focus: () => composer.field.focus() };
}
