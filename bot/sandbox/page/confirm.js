// Slack's confirmation dialog (Slack: confirm object).

import { el, uid } from "./dom.js";
import { textObject } from "./mrkdwn.js";

/** Ask before an act; resolves to true when the person confirms. */
export function confirmed(confirm) {
  return new Promise((resolve) => {
    const id = uid("confirm");
    const yes = el(
      "button",
      { type: "button", class: `button button-${confirm.style ?? "primary"}` },
      ...textObject(confirm.confirm),
    );
    const no = el("button", { type: "button", class: "button" }, ...textObject(confirm.deny));
    const dialog = el(
      "dialog",
      { class: "dialog confirm", "aria-labelledby": id },
      el(
        "header",
        { class: "dialog-head" },
        el("h2", { id, class: "dialog-title" }, ...textObject(confirm.title)),
      ),
      el("div", { class: "dialog-body" }, ...textObject(confirm.text)),
      el("footer", { class: "dialog-foot" }, no, yes),
    );
    const answer = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    yes.addEventListener("click", () => answer(true));
    no.addEventListener("click", () => answer(false));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      answer(false);
    });
    document.body.append(dialog);
    dialog.showModal();
    yes.focus();
  });
}
