// The page: follows the server's state and draws the panes for the place in the URL.

import { fetchState, follow, markRead } from "./api.js";
import { channelTitle, makeChannel } from "./channel.js";
import { arrange } from "./dom.js";
import { appTabs, makeHome } from "./home.js";
import { renderModal, startModals } from "./modal.js";
import { adoptLink, go, linkedPlace, readPlace, settle } from "./place.js";
import { tidyPopups } from "./popup.js";
import { renderPerson, renderRail, renderSidebar } from "./sidebar.js";
import { makeThread } from "./thread.js";
import { renderTime, startTime } from "./time.js";
import { channelOf, homeApp, learn, messagesIn, people, userOf, world } from "./world.js";

const RETRY_MS = 1000;
const at = (id) => document.getElementById(id);
const panes = { main: null, thread: null };

/** Complete the place: someone to act as, a channel that this person is in, a thread that exists. */
function settlePlace() {
  const place = readPlace();
  const { channels, you } = world.state;
  const home = place.in === "home" && homeApp();
  const where =
    home || channelOf(place.in)
      ? place.in
      : (channels.find((channel) => channel.kind === "channel") ?? channels[0])?.id;
  const there = !home && place.thread && messagesIn(where).some((message) => message.ts === place.thread);
  settle({ as: you, in: where ?? null, thread: there ? place.thread : null });
  return readPlace();
}

/** Show a pane in a slot, building it only when its key differs from the one that is there. */
function fill(slot, key, build) {
  if (panes[slot]?.key !== key) {
    const made = key === null ? { nodes: [], update() {} } : build();
    panes[slot] = { key, ...made };
    arrange(at(slot), made.nodes);
  }
  panes[slot].update();
}

function buildMain(place) {
  const app = homeApp();
  if (place.in === "home") return makeHome(app);
  const channel = channelOf(place.in);
  return makeChannel(channel, app && channel.with === app.id ? appTabs(app, "Messages") : null);
}

function render() {
  if (!world.state) return;
  const place = settlePlace();
  renderPerson(at("person"));
  renderRail(at("rail"));
  renderSidebar(at("sidebar"));
  fill("main", place.in && `${place.as} ${place.in}`, () => buildMain(place));
  at("thread").hidden = !place.thread;
  fill("thread", place.thread && `${place.as} ${place.in} ${place.thread}`, () =>
    makeThread(place.in, place.thread),
  );
  renderModal();
  tidyPopups();
  renderTime();
  seeChannel(place.in);
  document.title = `${titleOf(place)} - ${world.state.team.name || "Local Slack"}`;
}

/** Tell the server that the person has the channel's messages before their eyes. */
function seeChannel(id) {
  if (channelOf(id)?.unread && document.visibilityState === "visible") markRead(id);
}

/** Bring one message into view and to the keyboard: where a permanent link leads. */
function showMessage(ts) {
  const node = [...document.querySelectorAll(".message")].find((message) => message.dataset.ts === ts);
  node?.scrollIntoView({ block: "center" });
  node?.focus({ preventScroll: true });
}

function titleOf(place) {
  if (place.in === "home") return userOf(homeApp().id).real_name || homeApp().name;
  return place.in ? channelTitle(channelOf(place.in)) : "No channel";
}

let running = null;
let again = false;

/** Fetch the state and draw it. Calls made while one runs share a single run after it. */
function reload() {
  again = true;
  running ??= (async () => {
    try {
      while (again) {
        again = false;
        const askedAt = performance.now();
        const { as } = readPlace();
        const state = await fetchState(as);
        if (readPlace().as !== as) {
          // somebody else acts by now: what this one sees must not lead the page back to them
          again = true;
          continue;
        }
        learn(state, askedAt);
        render();
      }
    } finally {
      running = null;
    }
  })();
  return running;
}

const link = { stream: true, state: true };

/** Show the bar that says that the server cannot be reached while either way to it is down. */
function setLink(change) {
  Object.assign(link, change);
  at("connection").hidden = link.stream && link.state;
}

let retry = null;

async function reloadSafely() {
  clearTimeout(retry);
  try {
    await reload();
    setLink({ state: true });
  } catch (error) {
    setLink({ state: false });
    console.warn("The state could not be loaded; trying again.", error);
    retry = setTimeout(enter, RETRY_MS);
  }
}

let stop = () => {};
let following = null;

/** Act as the person in the URL: load their view and follow its changes. */
async function enter() {
  await reloadSafely();
  const you = world.state?.you;
  if (!you || following === you) return;
  stop();
  following = you;
  stop = follow(you, { onChange: reloadSafely, onLink: (up) => setLink({ stream: up }) });
}

/** Where the keyboard goes after the place changed: into the pane that opened, unless it is in use. */
function focusAfter(before) {
  const place = readPlace();
  if (place.thread && place.thread !== before.thread) panes.thread?.focus?.();
  else if (place.in !== before.in) panes.main?.focus?.();
}

const linkedTs = adoptLink();
let shownPlace = readPlace();

window.addEventListener("hashchange", async () => {
  const before = shownPlace;
  shownPlace = readPlace();
  const { as, in: where } = shownPlace;
  if (world.state && as && as !== following && people().some((user) => user.id === as)) await enter();
  else if (world.state && where !== "home" && !channelOf(where)) await reloadSafely();
  else render();
  focusAfter(before);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const place = link && linkedPlace(new URL(link.href));
  if (!place) return;
  event.preventDefault();
  go({ in: place.in, thread: place.thread });
  requestAnimationFrame(() => showMessage(place.ts));
});

document.addEventListener("visibilitychange", render);
document.addEventListener("control-released", () => queueMicrotask(render));
startModals(reloadSafely);
startTime(at("time"), reloadSafely);
enter().then(() => linkedTs && showMessage(linkedTs));
