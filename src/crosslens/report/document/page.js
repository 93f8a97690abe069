(function () {
  var root = document.documentElement, key = "crosslens-theme", stored = null;
  try { stored = localStorage.getItem(key); } catch (error) { stored = null; }
  if (stored === "dark" || stored === "light") { root.dataset.theme = stored; }
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  document.addEventListener("DOMContentLoaded", function () {
    var button = document.getElementById("theme");
    function say() { button.textContent = isDark() ? "Light colours" : "Dark colours"; }
    button.hidden = false;
    say();
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(key, root.dataset.theme); } catch (error) { /* not kept for next time */ }
      say();
    });
    var closed = [];
    addEventListener("beforeprint", function () {
      closed = Array.from(document.querySelectorAll("details.paper:not([open])"));
      closed.forEach(function (details) { details.open = true; });
    });
    addEventListener("afterprint", function () {
      closed.forEach(function (details) { details.open = false; });
    });
    document.querySelectorAll(".browse").forEach(narrowed);
  });
  function narrowed(browse) {
    var chips = Array.from(browse.querySelectorAll("button.chip")), chosen = {};
    var cards = Array.from(browse.querySelectorAll("[data-values]"));
    var count = browse.querySelector(".count"), more = browse.querySelector(".more");
    function fits(card) {
      var values = card.dataset.values.split("\n");
      return Object.keys(chosen).every(function (facet) { return values[facet] === chosen[facet]; });
    }
    function show() {
      var shown = 0, narrow = Object.keys(chosen).length > 0;
      cards.forEach(function (card) { card.hidden = !fits(card); shown += !card.hidden; });
      if (count) { count.textContent = narrow ? shown + " of " + cards.length + " cards" : ""; }
      if (more && narrow) { more.open = true; }
      chips.forEach(function (chip) {
        chip.setAttribute("aria-pressed", chosen[chip.dataset.facet] === chip.dataset.value);
      });
    }
    chips.forEach(function (chip) {
      chip.disabled = false;
      chip.addEventListener("click", function () {
        var facet = chip.dataset.facet;
        if (chosen[facet] === chip.dataset.value) { delete chosen[facet]; } else { chosen[facet] = chip.dataset.value; }
        show();
      });
    });
  }
})();
