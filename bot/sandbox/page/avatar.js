// A user's picture: the first letter on the user's colour, or the gate for an app.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { displayName, homeApp } from "./world.js";

/** `size` is "large" (36 px), "medium" (24 px) or "small" (20 px). */
export function avatar(user, size = "large") {
  const mark = user.is_bot ? icon("gate") : displayName(user).slice(0, 1).toUpperCase();
  const node = el("span", { class: `avatar avatar-${size}`, "aria-hidden": "true" }, mark);
  if (user.id === homeApp()?.id) node.classList.add("avatar-home");
  else node.style.backgroundColor = user.avatar_color;
  return node;
}
