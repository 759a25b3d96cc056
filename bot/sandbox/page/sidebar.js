// The rail, the list of channels, people and apps, and the switch between people.

import { openDm } from "./api.js";
import { avatar } from "./avatar.js";
import { el, renderOnce } from "./dom.js";
import { icon } from "./icons.js";
import { go, placeHref, readPlace } from "./place.js";
import { apps, displayName, dmWith, homeApp, people, userOf, world } from "./world.js";

/** A link to a place of the workspace, for the person who is acting. */
const hrefOf = (target) => placeHref({ as: world.state.you, in: target });

function row(target, current, mark, name, unread) {
  const badge =
    unread && !current
      ? el("span", { class: "unread", "aria-label": `${unread} unread` }, String(unread))
      : null;
  const props = {
    class: `side-row${current ? " current" : ""}${badge ? " has-unread" : ""}`,
    href: hrefOf(target),
    "aria-current": current ? "page" : null,
  };
  return el("li", {}, el("a", props, mark, el("span", { class: "side-name" }, name), badge));
}

/** A person or app without an open direct message: choosing them opens one. */
function startRow(user) {
  const start = async () => {
    const answer = await openDm(user.id);
    if (answer.ok) go({ in: answer.channel, thread: null });
  };
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", class: "side-row", on: { click: start } },
      avatar(user, "small"),
      el("span", { class: "side-name" }, displayName(user)),
    ),
  );
}

function userRow(user, place) {
  const dm = dmWith(user.id);
  if (!dm) return startRow(user);
  return row(dm.id, place.in === dm.id, avatar(user, "small"), displayName(user), dm.unread);
}

function appRow(app, place) {
  if (app.id !== homeApp()?.id) return userRow(app, place);
  const dm = dmWith(app.id);
  const current = place.in === "home" || Boolean(dm && place.in === dm.id);
  return row("home", current, avatar(app, "small"), displayName(app), dm?.unread);
}

function group(title, rows) {
  return el(
    "section",
    { class: "side-group" },
    el("h2", { class: "side-heading" }, title),
    el("ul", { "aria-label": title }, ...rows),
  );
}

/** Draw the sidebar for the current state and place. */
export function renderSidebar(node) {
  const place = readPlace();
  const { channels, team, you } = world.state;
  const signature = JSON.stringify([channels, world.state.users, place.in, you]);
  renderOnce(node, signature, () => [
    el("div", { class: "side-team" }, team.name || "Local Slack"),
    group(
      "Channels",
      channels
        .filter((channel) => channel.kind === "channel")
        .map((channel) =>
          row(channel.id, place.in === channel.id, icon("hash"), channel.name, channel.unread),
        ),
    ),
    group(
      "Direct messages",
      people()
        .filter((user) => user.id !== you)
        .map((user) => userRow(user, place)),
    ),
    group(
      "Apps",
      apps().map((app) => appRow(app, place)),
    ),
  ]);
}

/** Draw the rail: the workspace, and short ways to channels, direct messages and the app. */
export function renderRail(node) {
  const { channels, team, you } = world.state;
  const place = readPlace();
  const first = (kind) => channels.find((channel) => channel.kind === kind)?.id;
  const kind = place.in === "home" ? "home" : channels.find((channel) => channel.id === place.in)?.kind;
  const tab = (target, name, mark, current) =>
    target &&
    el(
      "a",
      { class: `rail-tab${current ? " current" : ""}`, href: hrefOf(target) },
      el("span", { class: "rail-icon" }, icon(mark)),
      el("span", {}, name),
    );
  renderOnce(node, JSON.stringify([channels.map((channel) => channel.id), kind, you, team]), () => [
    el("span", { class: "rail-team", "aria-hidden": "true" }, (team.name || "L").slice(0, 1)),
    tab(first("channel"), "Home", "home", kind === "channel"),
    tab(first("dm"), "DMs", "dms", kind === "dm"),
    homeApp() ? tab("home", "Apps", "apps", kind === "home") : null,
    el("span", { class: "rail-you" }, avatar(userOf(you))),
  ]);
}

/** Fill the switch between people; choosing one acts as that person from then on. */
export function renderPerson(select) {
  const { you } = world.state;
  renderOnce(select, JSON.stringify(people()), () =>
    people().map((user) => el("option", { value: user.id }, displayName(user))),
  );
  if (document.activeElement !== select || !select.value) select.value = you;
  select.onchange = () => go({ as: select.value });
}
