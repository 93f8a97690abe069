// The map page: computing, colours, hovering, selecting, searching. The points themselves are drawn in a frame.
import { fetchColours, fetchJson, fetchPoints } from "./binary.js";
import { itemCard, showLegend } from "./show.js";
import { paletteOf } from "./palette.js";

const root = document.getElementById("map");
const part = (id) => document.getElementById(id);
const api = `/api/map/${encodeURIComponent(root.dataset.run)}`;
const PAGE = 24;
const state = { method: root.dataset.method, points: null, about: null, rows: new Uint32Array(0), listed: 0, over: -1 };

const tell = (message, transfer = []) => part("frame").contentWindow.postMessage(message, "*", transfer);
const withMethod = (address) => `${address}${address.includes("?") ? "&" : "?"}method=${state.method}`;
const report = (error) => { part("status").textContent = error.message || String(error); };

// Computing the map

function showProgress(answer) {
  const failed = answer.state === "failed";
  const isBusy = answer.state === "waiting" || answer.state === "running";
  part("compute").hidden = false;
  part("compute-form").hidden = isBusy;
  const bar = part("compute-bar");
  bar.hidden = !isBusy;
  if (answer.total) { bar.max = answer.total; bar.value = answer.done; } else bar.removeAttribute("value");
  if (failed) part("compute-text").textContent = `The map could not be computed: ${answer.reason}${answer.fix ? ` (${answer.fix})` : ""}`;
  else if (isBusy) {
    const count = answer.total ? ` ${answer.done.toLocaleString("en")} of ${answer.total.toLocaleString("en")}` : "";
    part("compute-text").textContent = `Computing: ${answer.stage || "waiting"}${count}, ${Math.round(answer.seconds)} s. The page can be left meanwhile.`;
  } else part("compute-text").textContent = "The map of this run has not been computed yet. It is computed once and kept.";
}

async function follow(answer) {
  while (answer.state === "waiting" || answer.state === "running") {
    showProgress(answer);
    await new Promise((resolve) => setTimeout(resolve, 500));
    answer = await fetchJson(withMethod(api));
  }
  if (answer.state === "ready") { part("compute").hidden = true; await open(answer); } else showProgress(answer);
}

part("compute-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  state.method = new FormData(event.target).get("method");
  try {
    await follow(await fetchJson(withMethod(api), { method: "POST", headers: { "X-CSRF-Token": root.dataset.token } }));
  } catch (error) { part("compute-text").textContent = error.message; }
});

// Drawing

function theme(about) {
  const style = getComputedStyle(document.body);
  const value = (name) => style.getPropertyValue(name).trim();
  return { background: value("--paper"), active: value("--ink"), palette: paletteOf(about, value("--line")) };
}

async function open(answer) {
  part("shown").hidden = false;
  part("method").value = state.method;
  const select = part("colour");
  select.replaceChildren(...answer.colourings.map(({ name, label }) => new Option(label, name)));
  showRegions(answer.regions);
  const [points, colours] = await Promise.all([
    fetchPoints(withMethod(`${api}/points`)),
    fetchColours(withMethod(`${api}/colours?name=${encodeURIComponent(select.value)}`)),
  ]);
  state.points = points.header.points;
  state.about = colours.about;
  await loadFrame();
  const { x, y } = points;
  part("status").textContent = `${state.points.toLocaleString("en")} points: ${answer.images.toLocaleString("en")} images, ${(state.points - answer.images).toLocaleString("en")} captions.`;
  state.codes = colours.codes;
  tell({ type: "points", x, y, codes: colours.codes, theme: theme(colours.about) });
  showLegend(part("legend"), colours.about);
}

function loadFrame() {
  const frame = part("frame");
  if (frame.src) return Promise.resolve();
  return new Promise((resolve) => {
    window.addEventListener("message", function loaded(event) {
      if (event.source !== frame.contentWindow || event.data.type !== "loaded") return;
      window.removeEventListener("message", loaded);
      resolve();
    });
    frame.src = root.dataset.frame;
  });
}

part("colour")?.addEventListener("change", async (event) => {
  try {
    const { about, codes } = await fetchColours(withMethod(`${api}/colours?name=${encodeURIComponent(event.target.value)}`));
    Object.assign(state, { about, codes });
    root.dataset.state = "drawing";
    tell({ type: "colours", codes, theme: theme(about) });
    showLegend(part("legend"), about);
  } catch (error) { report(error); }
});

part("method")?.addEventListener("change", (event) => {
  location.search = `?method=${event.target.value}`;
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (state.about) tell({ type: "theme", theme: theme(state.about) });
});

// What the frame reports

const heard = {
  over: showTip,
  out() { state.over = -1; part("tip").hidden = true; },
  selected({ rows, pointer }) {
    if (rows.length === 1 && pointer === "mouse" && mode() === "move") openPage(rows[0]);
    list(rows, rows.length === 1 ? "The point that was chosen." : "Selected on the map.");
  },
  ready({ sampled }) {
    root.dataset.state = "drawn";
    if (sampled) part("status").textContent += " This computer draws slowly: while the map moves, a sample is shown.";
  },
  drawn({ milliseconds }) { root.dataset.milliseconds = Math.round(milliseconds); },
  coloured() { root.dataset.state = "drawn"; },
  failed({ problem }) { report(new Error(`The map cannot be drawn here: ${problem}. The lists below hold the same items.`)); },
};

window.addEventListener("message", (event) => {
  if (event.source === part("frame")?.contentWindow) heard[event.data.type]?.(event.data);
});

async function itemsOf(rows) {
  return (await fetchJson(withMethod(`${api}/items?rows=${rows.join(",")}`))).items;
}

async function showTip({ row, x, y }) {
  state.over = row;
  try {
    const [item] = await itemsOf([row]);
    if (state.over !== row) return;
    const tip = part("tip");
    const card = itemCard(item, { linked: false });
    if (state.about.kind === "categories" && state.codes[row] !== 255) {
      const line = document.createElement("p");
      line.className = "soft";
      line.textContent = `${state.about.label}: ${state.about.labels[state.codes[row]]}`;
      card.push(line);
    }
    tip.replaceChildren(...card);
    tip.hidden = false;
    const area = tip.parentElement;
    tip.style.left = `${Math.max(0, Math.min(x + 14, area.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, y + 14 + tip.offsetHeight > area.clientHeight ? y - tip.offsetHeight - 14 : y + 14)}px`;
  } catch (error) { report(error); }
}

async function openPage(row) {
  try {
    const [item] = await itemsOf([row]);
    if (item.page) location.href = item.page;
  } catch (error) { report(error); }
}

// Selecting and finding

async function list(rows, why) {
  state.rows = rows;
  state.listed = 0;
  part("selection").replaceChildren();
  part("selection-text").textContent = rows.length ? `${rows.length.toLocaleString("en")} items. ${why}` : "Nothing is selected.";
  part("more").hidden = true;
  if (rows.length) await listMore();
}

async function listMore() {
  const shown = state.rows;
  const rows = Array.from(shown.slice(state.listed, state.listed + PAGE));
  const items = await itemsOf(rows);
  if (shown !== state.rows) return;
  state.listed += rows.length;
  part("selection").append(...items.map((item) => {
    const entry = document.createElement("li");
    entry.append(...itemCard(item, { linked: true }));
    return entry;
  }));
  part("more").hidden = state.listed >= state.rows.length;
}

function choose(rows, why) {
  tell({ type: "select", rows });
  list(rows, why).catch(report);
}

part("more")?.addEventListener("click", () => listMore().catch(report));
part("controls")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = part("find").value.trim();
  try {
    const rows = text ? (await fetchJson(withMethod(`${api}/find?text=${encodeURIComponent(text)}`))).rows : [];
    choose(Uint32Array.from(rows), `Contain “${text}”.`);
  } catch (error) { report(error); }
});

const mode = () => document.querySelector("[data-mode][aria-pressed=true]").dataset.mode;
for (const button of document.querySelectorAll("[data-mode]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-mode]")) other.setAttribute("aria-pressed", String(other === button));
    tell({ type: "mode", mode: button.dataset.mode });
  });
}
part("closer")?.addEventListener("click", () => tell({ type: "zoom", factor: 1.6 }));
part("further")?.addEventListener("click", () => tell({ type: "zoom", factor: 1 / 1.6 }));
part("whole")?.addEventListener("click", () => tell({ type: "view", area: null }));

function showRegions(regions) {
  part("regions").replaceChildren(...regions.map((region) => {
    const row = document.createElement("tr");
    const cells = [region.name, region.images, region.captions].map((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (i) cell.className = "number"; else cell.scope = "row";
      cell.textContent = typeof text === "number" ? text.toLocaleString("en") : text;
      return cell;
    });
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Select";
    button.setAttribute("aria-label", `Select the region ${region.name}`);
    button.addEventListener("click", () => selectRegion(region).catch(report));
    const last = document.createElement("td");
    last.append(button);
    row.append(...cells, last);
    return row;
  }));
}

async function selectRegion(region) {
  if (!state.clusters) state.clusters = (await fetchColours(withMethod(`${api}/colours?name=cluster`))).codes;
  const rows = [];
  state.clusters.forEach((code, row) => { if (code === region.number) rows.push(row); });
  choose(Uint32Array.from(rows), `Region: ${region.name}.`);
}

if (part("compute")) fetchJson(withMethod(api)).then(follow).catch((error) => {
  part("compute").hidden = false;
  part("compute-text").textContent = error.message;
});
