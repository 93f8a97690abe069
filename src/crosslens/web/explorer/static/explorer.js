// What pages do beyond links and forms: menus that apply at once, keys, and parts that load after the page.

for (const menu of document.querySelectorAll("select[data-submit]")) {
  menu.addEventListener("change", () => {
    const cleared = menu.dataset.clears && menu.form.elements[menu.dataset.clears];
    if (cleared) cleared.value = "";
    menu.form.requestSubmit();
  });
}

const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;
const keys = { "/": "search", j: "next", k: "previous" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const target = keys[event.key] && document.querySelector(`[data-key="${keys[event.key]}"]`);
  if (!target) return;
  event.preventDefault();
  if (event.key === "/") target.focus();
  else target.click();
});

async function loadPart(part) {
  part.textContent = "Explaining …";
  try {
    const response = await fetch(part.dataset.load);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const content = page.querySelector("#explained") ?? page.querySelector(".problem");
    part.replaceChildren(content ?? "There is no explanation.");
  } catch {
    part.textContent = "The server does not answer.";
  }
}
for (const part of document.querySelectorAll("[data-load]")) loadPart(part);

// Marks that were not computed yet when the page was made: the same page has them a moment later.
async function renew(area) {
  const response = await fetch(location.href).catch(() => null);
  if (!response || !response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector("[data-results]");
  if (!fresh) return;
  if ("again" in fresh.dataset) setTimeout(renew, 1500, area);
  else area.replaceWith(fresh);
}
for (const area of document.querySelectorAll("[data-again]")) setTimeout(renew, 1500, area);
