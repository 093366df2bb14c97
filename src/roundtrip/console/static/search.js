"use strict";
// Suggestions below a search: the arrows lead into them and back, Escape and a click elsewhere close them.
document.addEventListener("keydown", (event) => {
  const form = event.target.closest("form.search, form.finder");
  if (!form) return;
  const box = form.querySelector(".suggested");
  const stops = [form.querySelector("input[type=search]"), ...box.querySelectorAll("a")];
  if (event.key === "Escape" && box.childElementCount) {
    box.replaceChildren();
    stops[0].focus();
    event.preventDefault();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = step && stops[stops.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
});

// A paste with one address or hash in it goes at once: the service takes it out of a link or a sentence.
const HASHES = /(?:^|[^0-9a-z])(0x(?:[0-9a-f]{64}|[0-9a-f]{40}))(?![0-9a-z])/gi;

document.addEventListener("paste", (event) => {
  const field = event.target.closest("form.search input[type=search], form.finder input[type=search]");
  if (!field || field.selectionEnd - field.selectionStart < field.value.length) return;
  const text = event.clipboardData.getData("text").trim();
  const found = new Set([...text.matchAll(HASHES)].map(([, hash]) => hash.toLowerCase()));
  if (found.size !== 1 || text.length > field.maxLength) return;
  event.preventDefault();
  field.value = text;
  field.form.requestSubmit();
});

// A phone's keyboard covers the lower half: the home page's field goes to the top, so that they stay visible.
document.addEventListener("input", (event) => {
  const form = event.target.closest("form.finder");
  if (form && matchMedia("(max-width: 40rem)").matches) form.scrollIntoView({ block: "start" });
});

document.addEventListener("click", (event) => {
  for (const box of document.querySelectorAll(".suggested")) {
    if (!box.closest("form").contains(event.target)) box.replaceChildren();
  }
});
