// An app's page: its Home tab, and the tabs that lead to its messages.

import { openDm, openHome } from "./api.js";
import { avatar } from "./avatar.js";
import { patchBlocks } from "./blocks.js";
import { el } from "./dom.js";
import { go } from "./place.js";
import { displayName, dmWith, world } from "./world.js";

/** The tabs of an app: Home and Messages. `current` is one of them. */
export function appTabs(app, current) {
  const openMessages = async () => {
    const id = dmWith(app.id)?.id ?? (await openDm(app.id)).channel;
    if (id) go({ in: id, thread: null });
  };
  const tab = (name, act) =>
    el(
      "button",
      {
        type: "button",
        class: `tab${name === current ? " current" : ""}`,
        "aria-current": name === current ? "page" : null,
        on: { click: act },
      },
      name,
    );
  return el(
    "div",
    { class: "tabs" },
    tab("Home", () => go({ in: "home", thread: null })),
    tab("Messages", openMessages),
  );
}

/** Build an app's Home; opening it tells the app, which publishes what is shown. Returns `{nodes, update()}`. */
export function makeHome(app) {
  const blocks = el("div", { class: "home-blocks blocks" });
  const empty = el("p", { class: "home-empty" }, `${displayName(app)} has not published a Home for you.`);
  const page = el("div", { class: "home", tabIndex: -1 }, blocks, empty);
  const surface = { kind: "home", container: null };
  const update = () => {
    const { home } = world.state;
    surface.container = home ? { type: "view", view_id: home.id } : null;
    empty.hidden = home !== null;
    patchBlocks(blocks, home?.blocks ?? [], surface, home?.state?.values);
  };
  const title = el(
    "h1",
    { class: "pane-title" },
    avatar(app, "medium"),
    el("span", {}, displayName(app)),
    el("span", { class: "badge" }, "APP"),
  );
  openHome();
  return {
    nodes: [el("header", { class: "pane-head" }, title), appTabs(app, "Home"), page],
    update,
    focus: () => page.focus(),
  };
}
