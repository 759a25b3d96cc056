// Small helpers to build and patch DOM nodes. Data only ever becomes text nodes or checked attributes.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "readOnly", "tabIndex"]);

let lastId = 0;

/** A document-wide unique id for ARIA references. */
export function uid(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/**
 * Build an element.
 *
 * `props`: attributes; `on` maps event names to handlers, `data` fills the dataset; null, undefined and
 * false leave an attribute out. `children`: nodes, strings (as text), arrays of them, null to skip.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else if (PROPERTIES.has(name)) {
      node[name] = value;
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const patched = new WeakMap();

/**
 * Make the children of `parent` the nodes of `items`, in order. A node lives as long as its key does;
 * nodes that stay are not moved, so focus, scrolling and open menus survive.
 *
 * `make(item)` builds a node, `update(node, item)` brings a kept one up to date.
 */
export function patchList(parent, items, { key, make, update = () => {} }) {
  const before = patched.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const id = key(item);
    const known = before.get(id);
    if (known) update(known, item);
    after.set(id, known ?? make(item));
  }
  arrange(parent, [...after.values()]);
  patched.set(parent, after);
}

/** Make `nodes` the only children of `parent`, touching no node that is already in place. */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let cursor = parent.firstChild;
  for (const node of nodes) {
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
  }
}

/** Replace the children of `parent` only when `signature` differs from the last one given for it. */
export function renderOnce(parent, signature, build) {
  if (patched.get(parent) === signature) return;
  patched.set(parent, signature);
  parent.replaceChildren(...[build()].flat(Infinity).filter(Boolean));
}

/** True when an element is scrolled to its end, give or take two pixels of rounding. */
export function atEnd(scroller) {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 3;
}

/** The elements inside `root` that the Tab key reaches, in order. */
export function tabStops(root) {
  const query = "a[href], button, input, select, textarea, [tabindex]";
  return [...root.querySelectorAll(query)].filter(
    (node) => !node.disabled && node.tabIndex >= 0 && node.getClientRects().length > 0,
  );
}
