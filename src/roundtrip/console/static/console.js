"use strict";
// What stands short on the page is copied whole.
document.addEventListener("click", async (event) => {
  const shown = event.target.closest("[data-copy]");
  if (shown && !event.target.closest("a")) {
    await navigator.clipboard?.writeText(shown.dataset.copy);
    shown.classList.add("copied");
  }
});

// Times as this reader's clock says them; the whole stays in the title.
for (const time of document.querySelectorAll("time")) {
  time.title = time.textContent;
}
