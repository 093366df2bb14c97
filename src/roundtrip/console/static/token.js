"use strict";
// The token's page: shows the age of the check, and the copy buttons.

const NOTE_MS = 2500;

function lasting(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, name] = units.find(([one]) => seconds >= one) || [1, "second"];
  const count = Math.floor(seconds / size);
  // Non-breaking spaces keep the age on one line.
  return `${count}\u00a0${name}${count === 1 ? "" : "s"}`;
}

function tellAges() {
  for (const one of document.querySelectorAll("[data-age-of]")) {
    const seconds = Math.floor((Date.now() - Date.parse(one.dataset.ageOf)) / 1000);
    // A wrong clock of the reader could make the age negative: show none then.
    one.textContent = seconds >= 0 ? `, ${lasting(seconds)}\u00a0ago` : "";
  }
}

async function toClipboard(source) {
  if (navigator.clipboard) return navigator.clipboard.writeText(source.textContent);
  // Without TLS browsers offer only this.
  getSelection().selectAllChildren(source);
  if (!document.execCommand("copy")) throw new Error("no clipboard");
}

async function copy(button) {
  const note = document.getElementById("copy-note");
  let said = "Copied";
  try {
    await toClipboard(document.querySelector(button.dataset.copyOf));
  } catch {
    getSelection().selectAllChildren(document.querySelector(button.dataset.copyOf));
    said = "Selected";
  }
  button.textContent = note.textContent = said;
  setTimeout(() => {
    button.textContent = "Copy";
    note.textContent = "";
  }, NOTE_MS);
}

for (const button of document.querySelectorAll("[data-copy-of]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
tellAges();
setInterval(tellAges, 1000);
