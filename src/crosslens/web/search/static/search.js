// Live search: a sentence or a picture, hits with scores, and what each word contributed.
import { showHits, showWhy, showWords } from "./results.js";

const live = document.getElementById("live"); // a form with a field called dataset has no dataset of its own
const form = document.getElementById("search");
const part = (id) => document.getElementById(id);
let latest = 0;

const say = (text, isProblem = false) => {
  part("status").textContent = text;
  part("status").className = isProblem ? "problem" : "soft";
};

async function request(address, options = {}) {
  const headers = { "X-CSRF-Token": live.dataset.token, ...options.headers };
  const response = await fetch(address, { ...options, headers });
  let content;
  try { content = await response.json(); } catch { content = { problem: `the server answered ${response.status}` }; }
  if (!response.ok) throw new Error(content.fix ? `${content.problem}: ${content.fix}` : content.problem);
  return content;
}

async function prepare(values, number) {
  const address = `/api/search/prepare?${new URLSearchParams(values)}`;
  const bar = part("progress");
  try {
    for (;;) {
      const answer = await request(address, { method: "POST" });
      if (number !== latest) return false;
      if (answer.state === "done") return true;
      if (answer.state === "failed") throw new Error(answer.fix ? `${answer.problem}: ${answer.fix}` : answer.problem);
      bar.hidden = false;
      if (answer.total) { bar.max = answer.total; bar.value = answer.done; } else bar.removeAttribute("value");
      const count = answer.total ? ` ${answer.done.toLocaleString("en")} of ${answer.total.toLocaleString("en")}` : "";
      say(`Preparing: ${answer.stage || "loading the encoder"}${count}`);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  } finally { bar.hidden = true; }
}

async function run(ask, text) {
  const number = ++latest;
  const data = new FormData(form);
  const values = { dataset: data.get("dataset"), encoder: data.get("encoder"), among: data.get("among") };
  live.dataset.state = "searching";
  try {
    if (!(await prepare(values, number))) return;
    say("Searching …");
    const answer = await ask(values);
    if (number !== latest) return;
    part("results").hidden = false;
    const times = answer.milliseconds;
    part("latency").textContent = `${answer.encoder}, ${answer.gallery.toLocaleString("en")} ${values.among}, exact ranking: ${times.encode.toFixed(1)} ms for the query, ${times.rank.toFixed(1)} ms to rank, ${times.total.toFixed(1)} ms in all.`;
    say(`${answer.hits.length} hits.`);
    showHits(part("hits"), answer.hits);
    showWords(part("words"), answer);
    await explain(values, answer, text, number);
    live.dataset.state = "done";
  } catch (error) {
    if (number === latest) { say(error.message, true); live.dataset.state = "failed"; }
  }
}

async function explain(values, answer, text, number) {
  const images = [...new Set(answer.hits.map((hit) => hit.image))].slice(0, 2);
  part("why").replaceChildren();
  if (!images.length) return;
  const query = new URLSearchParams({ dataset: values.dataset });
  if (text) query.set("text", text);
  for (const image of images) query.append("image", image);
  const why = await request(`/api/search/why?${query}`);
  if (number === latest) showWhy(part("why"), why, answer, values.among);
}

function searchText() {
  const text = new FormData(form).get("text").trim();
  if (!text) { say("Write a sentence, or choose a picture.", true); return; }
  part("preview").hidden = true;
  const send = (values) => request("/api/search/text", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...values, text }),
  });
  run(send, text);
}

function searchPicture(file) {
  if (!file) return;
  if (file.size > Number(live.dataset.mostBytes)) {
    say(`The picture has ${file.size.toLocaleString("en")} bytes; at most ${Number(live.dataset.mostBytes).toLocaleString("en")} are taken.`, true);
    return;
  }
  const preview = part("preview");
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.src = URL.createObjectURL(file);
  preview.hidden = false;
  const send = (values) => {
    const body = new FormData();
    body.append("picture", file);
    return request(`/api/search/picture?${new URLSearchParams(values)}`, { method: "POST", body });
  };
  run(send, null);
}

if (form) {
  form.addEventListener("submit", (event) => { event.preventDefault(); searchText(); });
  part("picture").addEventListener("change", (event) => searchPicture(event.target.files[0]));
  part("preview").addEventListener("error", () => { part("preview").hidden = true; });
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files || [])].find((own) => own.type.startsWith("image/"));
    if (file) searchPicture(file);
  });
  const drop = part("drop");
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    searchPicture(event.dataTransfer.files[0]);
  });
  if (form.elements.text.value) searchText();
}
