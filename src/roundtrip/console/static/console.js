"use strict";
// A click on a shortened text copies the whole text.
document.addEventListener("click", async (event) => {
  const shown = event.target.closest("[data-copy]");
  if (shown && !event.target.closest("a")) {
    await navigator.clipboard?.writeText(shown.dataset.copy);
    shown.classList.add("copied");
  }
});

// Pages show UTC; the tooltip shows the reader's local time.
for (const time of document.querySelectorAll("time")) {
  const at = new Date(time.dateTime);
  time.title = Number.isNaN(at.getTime()) ? time.textContent : `${at.toLocaleString()} (your time)`;
}
