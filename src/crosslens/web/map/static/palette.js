// The colours of points and legend. Categories differ in lightness too; numbers run from dark to light, as viridis does.
const CATEGORIES = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b8a90c", "#7b4ea8", "#8c564b", "#17a2a2",
  "#e377c2", "#7f8f4e",
];
const ANCHORS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
  [110, 206, 88], [181, 222, 43], [253, 231, 37],
];
const MISSES = ["#d55e00", "#0072b2"];
export const NO_VALUE = 255;
const LEVELS = 255;

const hex = (part) => Math.round(part).toString(16).padStart(2, "0");

export function levelColour(level) {
  // On dark paper the darkest colours would not be seen, on light paper neither the lightest.
  const anchors = matchMedia("(prefers-color-scheme: dark)").matches ? ANCHORS.slice(3) : ANCHORS.slice(0, -1);
  const position = (level / (LEVELS - 1)) * (anchors.length - 1);
  const lower = Math.min(Math.floor(position), anchors.length - 2);
  const share = position - lower;
  return "#" + anchors[lower].map((part, i) => hex(part + (anchors[lower + 1][i] - part) * share)).join("");
}

export function categoryColour(about, code) {
  if (about.name.startsWith("metric:")) return MISSES[code % MISSES.length];
  const own = about.colours;
  if (own[code]) return own[code];
  const free = CATEGORIES.filter((colour) => !own.includes(colour));
  return free[(code - own.slice(0, code).filter(Boolean).length) % free.length];
}

// 256 colours, one for each byte.
export function paletteOf(about, missing) {
  const colours = [];
  for (let code = 0; code < NO_VALUE; code++) {
    colours.push(about.kind === "numbers" ? levelColour(code) : categoryColour(about, code));
  }
  return [...colours, missing];
}
