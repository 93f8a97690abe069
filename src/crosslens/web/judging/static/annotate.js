// Keys for the annotating pages, and the next pictures loaded ahead. Everything also works without this module.

const answer = document.querySelector("form#answer");
const undo = document.querySelector("#undo");
let sent = false;

function send(form, button) {
  if (sent) return;
  form.requestSubmit(button);
}

// A form that is sent twice is judged once by the server; not sending it twice spares a page that says so.
for (const form of [answer, undo]) {
  form?.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
}
// A page shown again by the back button can be used again.
addEventListener("pageshow", () => { sent = false; });

function isWriting(target) {
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === "text");
}

// Digits are where they are on every keyboard; some layouts need Shift to type them.
function digit(event) {
  const match = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  return match ? match[1] : null;
}

function chooseLabel(key) {
  const chosen = answer.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!chosen) return false;
  chosen.focus();
  if (chosen instanceof HTMLButtonElement) send(answer, chosen);
  else chosen.click();
  return true;
}

function rate(number) {
  const value = number === "0" && !answer.querySelector('input[name="rating"][value="0"]') ? "10" : number;
  const chosen = answer.querySelector(`input[name="rating"][value="${value}"]`);
  if (!chosen) return false;
  chosen.checked = true;
  chosen.focus();
  return true;
}

function handle(event) {
  const key = event.key.toLowerCase();
  if (event.shiftKey && digit(event) !== null && answer?.querySelector('input[name="rating"]')) return rate(digit(event));
  if (answer && chooseLabel(event.shiftKey ? key : digit(event) ?? key)) return true;
  if (key === "u" && undo) { send(undo); return true; }
  if (key === "g" && answer) { location.href = document.querySelector("#guidelines-link").href; return true; }
  if (key === "t" && answer?.elements.text) { answer.elements.text.focus(); return true; }
  if (key === "enter" && answer?.dataset.atOnce === "0" && !(event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement)) {
    send(answer);
    return true;
  }
  return false;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (isWriting(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (handle(event)) event.preventDefault();
});

// “Nothing is wrong” excludes the causes, and the other way round.
answer?.addEventListener("change", (event) => {
  const changed = event.target;
  if (changed.type !== "checkbox" || !changed.checked) return;
  for (const other of answer.querySelectorAll('input[type="checkbox"][name="label"]')) {
    if (other !== changed && (changed.dataset.alone === "1" || other.dataset.alone === "1")) other.checked = false;
  }
});

function loadAhead() {
  const shown = document.querySelector(".shown img");
  const size = shown?.currentSrc.includes("size=1280") ? 1280 : 640;
  for (const address of answer?.dataset.following?.split(" ").filter(Boolean) ?? []) new Image().src = `${address}?size=${size}`;
}
if (document.readyState === "complete") loadAhead();
else addEventListener("load", loadAhead);
