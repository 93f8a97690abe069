// Hits, words and reasons as elements; texts are set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function showHits(target, hits) {
  target.replaceChildren(...hits.map((hit) => {
    const entry = element("li");
    const picture = element("img");
    picture.alt = hit.kind === "image" ? `Image ${hit.id}` : `Image ${hit.image}, which the caption belongs to`;
    picture.addEventListener("error", () => picture.remove());
    picture.src = hit.picture;
    const line = element("div");
    line.append(element("span", `${hit.rank}. `), element("span", hit.score.toFixed(4), "score"));
    entry.append(picture, line);
    if (hit.text) entry.append(element("div", hit.text));
    const link = element("a", hit.id, "id");
    link.href = hit.page;
    entry.append(link);
    return entry;
  }));
}

function table(caption, heads, rows) {
  const made = element("table");
  const head = element("tr");
  head.append(...heads.map((text) => { const cell = element("th", text); cell.scope = "col"; return cell; }));
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  body.append(...rows);
  made.append(element("caption", caption), top, body);
  const scroll = element("div", "", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", caption);
  scroll.append(made);
  return scroll;
}

function bar(value, largest) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "-100 0 200 12");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "bar");
  svg.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(SVG, "rect");
  const width = largest ? (Math.abs(value) / largest) * 100 : 0;
  for (const [name, own] of Object.entries({ x: value < 0 ? -width : 0, y: 1, width, height: 10 })) rect.setAttribute(name, own);
  rect.setAttribute("class", value < 0 ? "minus" : "plus");
  const line = document.createElementNS(SVG, "line");
  for (const [name, own] of Object.entries({ x1: 0, x2: 0, y1: 0, y2: 12 })) line.setAttribute(name, own);
  svg.append(rect, line);
  return svg;
}

const signed = (value) => (value === null ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`);

export function showWords(target, answer) {
  target.replaceChildren();
  if (!answer.words.length) return;
  const largest = Math.max(...answer.words.map((word) => Math.abs(word.effect)));
  const rows = answer.words.map((word) => {
    const row = element("tr");
    const name = element("th", word.word);
    name.scope = "row";
    const drawn = element("td");
    drawn.append(bar(word.effect, largest));
    row.append(name, drawn, element("td", signed(word.effect), "number"), element("td", signed(word.lead), "number"));
    return row;
  });
  target.append(
    element("h3", "What each word adds"),
    element("p", "The score of the first hit minus its score when the word is left out; the same for its lead over the second hit.", "soft"),
    table("Effect of each word", ["Word", "Effect", "Score", "Lead"], rows),
  );
}

const VERDICTS = { satisfied: "yes", violated: "no", open: "unknown" };

export function showWhy(target, why, answer, among) {
  target.replaceChildren();
  const [first, second] = answer.hits;
  if (second) {
    target.append(element("p", `The first hit scores ${first.score.toFixed(4)}, ${(first.score - second.score).toFixed(4)} more than the second.`));
  }
  if (among === "captions" && answer.shared_words.length) {
    answer.shared_words.forEach((words, i) => {
      target.append(element("p", `The ${["first", "second"][i]} caption shares ${words.length ? `the words ${words.join(", ")}` : "no words"} with the sentence.`));
    });
  }
  if (among === "images") {
    for (const sentence of why.sentences) target.append(element("p", sentence));
  }
  for (const note of why.notes) target.append(element("p", note, "note"));
  if (among === "images" && why.mentions.length) {
    const rows = why.mentions.map((mention) => {
      const row = element("tr");
      const name = element("th", mention.text);
      name.scope = "row";
      row.append(name, element("td", mention.kind), ...mention.verdicts.map((verdict, i) => {
        const cell = element("td");
        cell.append(element("span", VERDICTS[verdict], `verdict ${verdict}`), ` (${mention.reasons[i]})`);
        return cell;
      }));
      return row;
    });
    target.append(table("What the sentence mentions, in the first two images", ["Words", "Kind", "First", "Second"].slice(0, 2 + why.images.length), rows));
  }
  const lists = { "Objects in both images": why.common, "Only in the first": why.only_first, "Only in the second": why.only_second };
  for (const [title, names] of Object.entries(lists)) {
    if (names.length && among === "images") target.append(element("p", `${title}: ${names.join(", ")}.`));
  }
}
