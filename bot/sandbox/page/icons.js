// The page's own line icons, drawn on a 20 x 20 grid.

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  home: "M3 9.5 10 3l7 6.5M5 8v8.5h3.6v-4.4h2.8v4.4H15V8",
  dms: "M4 4h9a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2H8l-3.5 3v-3H4a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2Zm13 4.5a2 2 0 0 1 1 1.7V13a2 2 0 0 1-1 1.7v2.6L14.4 15H10",
  apps: "M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM14 11.3v5.4M11.3 14h5.4",
  hash: "M7.7 3 5.8 17M14.2 3l-1.9 14M3.5 7.3h13.3M3 12.7h13.3",
  close: "m4.5 4.5 11 11m0-11-11 11",
  back: "M12.5 4 6.5 10l6 6",
  send: "M3 4.2 17 10 3 15.8l1.6-5.1L11 10 4.6 9.3z",
  reply:
    "M4 4.5h12a1.5 1.5 0 0 1 1.5 1.5v7a1.5 1.5 0 0 1-1.5 1.5H9.5L5.5 18v-3.5H4A1.5 1.5 0 0 1 2.5 13V6A1.5 1.5 0 0 1 4 4.5ZM6.5 8.3h7M6.5 11h4.5",
  eye: "M1.8 10S4.8 4.7 10 4.7 18.2 10 18.2 10 15.2 15.3 10 15.3 1.8 10 1.8 10ZM10 7.6a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 0 1 0-4.8Z",
  down: "m5.5 8 4.5 4.5L14.5 8",
  check: "m4 10.5 4 4 8-9",
  warning: "M10 3.2 18 16.8H2zM10 8.3v3.6M10 14.2v.3",
  gate: "M4.5 16.5V9a5.5 5.5 0 0 1 11 0v7.5M8.2 8.6A1.9 1.9 0 1 1 10 11.2v1.1M10 14.9v.3",
  plus: "M10 4v12M4 10h12",
  file: "M5 2.5h6.5L15.5 6.5v11H5zM11.5 2.5v4h4M7.5 10.5h5.5M7.5 13.5h5.5",
  image: "M3 4h14v12H3zM3 13.5l4-4 4 4 2.2-2.2L17 15M13 7.6v.1",
};

/** An SVG icon by name; decorative, hidden from assistive technology. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Three dots, one above the other: the overflow menu. */
export function dots() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon icon-dots");
  svg.setAttribute("aria-hidden", "true");
  for (const y of [4.5, 10, 15.5]) {
    const dot = document.createElementNS(SVG, "circle");
    dot.setAttribute("cx", "10");
    dot.setAttribute("cy", String(y));
    dot.setAttribute("r", "1.7");
    svg.append(dot);
  }
  return svg;
}
