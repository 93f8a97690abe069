// Items and the legend as elements; texts are set as text, never as markup.
import { categoryColour, levelColour } from "./palette.js";

export function itemCard(item, { linked }) {
  const parts = [];
  if (item.picture) {
    const picture = document.createElement("img");
    picture.alt = item.kind === "image" ? `Image ${item.id}` : "";
    picture.loading = "lazy";
    picture.addEventListener("error", () => picture.remove());
    picture.src = item.picture;
    parts.push(picture);
  }
  const kind = document.createElement("span");
  kind.className = "kind";
  kind.textContent = item.kind;
  const name = document.createElement(linked && item.page ? "a" : "p");
  if (linked && item.page) name.href = item.page;
  name.textContent = item.text || item.id;
  parts.push(kind, name);
  return parts;
}

const plain = (number) => (Math.abs(number) >= 100 || Number.isInteger(number) ? number.toLocaleString("en", { maximumFractionDigits: 1 }) : number.toPrecision(3));

export function showLegend(target, about) {
  const none = document.createElement("p");
  none.className = "soft";
  none.textContent = about.missing ? `${about.missing.toLocaleString("en")} points without a value are grey.` : "";
  target.replaceChildren(...(about.kind === "numbers" ? scale(about) : [categories(about)]), none);
}

function categories(about) {
  const list = document.createElement("ul");
  about.labels.forEach((label, code) => {
    const entry = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.backgroundColor = categoryColour(about, code);
    entry.append(swatch, `${label} (${about.counts[code].toLocaleString("en")})`);
    list.append(entry);
  });
  return list;
}

function scale(about) {
  const bar = document.createElement("canvas");
  bar.width = 255;
  bar.height = 1;
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `${about.label}: dark is ${plain(about.low)}, light is ${plain(about.high)}, ${about.scale} scale`);
  const paint = bar.getContext("2d");
  for (let level = 0; level < 255; level++) {
    paint.fillStyle = levelColour(level);
    paint.fillRect(level, 0, 1, 1);
  }
  const ends = document.createElement("div");
  ends.className = "ends";
  for (const value of [about.low, about.high]) {
    const end = document.createElement("span");
    end.textContent = plain(value);
    ends.append(end);
  }
  return [bar, ends];
}
