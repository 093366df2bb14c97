"use strict";
// The token's page: shows the age of the check, when a new one may be made, and the copy buttons.

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
    // A wrong clock of the reader could make the age negative: the exact time stays then.
    if (seconds < 0) continue;
    one.title ||= one.textContent;
    one.textContent = `${lasting(seconds)}\u00a0ago`;
  }
}

async function toClipboard(source) {
  if (navigator.clipboard) return navigator.clipboard.writeText(source.textContent);
  // Without TLS browsers offer only this.
  getSelection().selectAllChildren(source);
  if (!document.execCommand("copy")) throw new Error("no clipboard");
}

async function copy(button) {
  const label = (button.dataset.label ??= button.textContent);
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
    button.textContent = label;
    note.textContent = "";
  }, NOTE_MS);
}

// An answer is shared for some seconds: until then the same one would come back.
function tellNext() {
  const age = document.querySelector("[data-age-of]");
  for (const link of document.querySelectorAll("[data-again-after]")) {
    const seconds = (Date.now() - Date.parse(age.dataset.ageOf)) / 1000;
    const left = Math.ceil(Number(link.dataset.againAfter) - seconds);
    // A wrong clock of the reader must not hold the link back for long.
    const waits = left > 0 && seconds >= 0;
    link.nextElementSibling.textContent = waits ? `(a new check in ${left}\u00a0s)` : "";
    if (waits) link.setAttribute("aria-disabled", "true");
    else link.removeAttribute("aria-disabled");
  }
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-again-after][aria-disabled]")) event.preventDefault();
});

// Parts may come anew.
function showCopies() {
  for (const button of document.querySelectorAll("[data-copy-of]")) button.hidden = false;
}
showCopies();
document.addEventListener("htmx:afterSettle", showCopies);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-of]");
  if (button) copy(button);
});

// Parts that come are fetched a screen before they are seen, so that nothing jumps under the reader; not before the
// first scroll, since a phone has enough to do while the page comes.
const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    htmx.trigger(target, "near");
  }
}, { rootMargin: "100% 0px" });
window.addEventListener("scroll", () => {
  for (const part of document.querySelectorAll("[data-near]")) near.observe(part);
}, { once: true, passive: true });

// The size's slider: each place is a size that was simulated. A press checks it in full.
document.addEventListener("htmx:afterSettle", () => {
  const slider = document.getElementById("size-slider"), told = document.getElementById("size-told");
  const table = document.querySelector("[data-sizes]");
  if (!slider?.hidden || !table) return;
  slider.hidden = told.hidden = false;
  const show = () => {
    const row = table.tBodies[0].rows[Number(slider.value)], { eth } = row.dataset;
    const link = document.createElement("a"), path = `${table.dataset.sizes}?amount=${eth}`;
    link.href = path;
    link.textContent = "Check it";
    for (const [name, value] of [["get", path], ["target", "#sized"], ["swap", "outerHTML"], ["replace-url", "true"]]) link.setAttribute(`hx-${name}`, value);
    told.replaceChildren(...[...row.cells[0].childNodes].map((node) => node.cloneNode(true)), " ", ...[...row.cells[1].childNodes].map((node) => node.cloneNode(true)), " ", link);
    htmx.process(told);
    slider.setAttribute("aria-valuetext", told.textContent);
  };
  slider.addEventListener("input", show);
  show();
});

// The tab of the part that is shown: style sheets show it by the page's address.
function markTab() {
  const shown = location.hash.length > 1 && document.getElementById(location.hash.slice(1))?.closest(".parts-of > div");
  const tabs = [...document.querySelectorAll(".tabs a[href^='#']")];
  const now = tabs.find((tab) => shown && tab.hash === `#${shown.id}`) || tabs[0];
  for (const tab of tabs) {
    if (tab === now) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}
window.addEventListener("hashchange", markTab);
// A heading that is replaced would no longer hold its tab open: its part does.
const asked = location.hash && document.getElementById(location.hash.slice(1))?.closest(".parts-of > div");
if (asked && ["#holders", "#liquidity"].includes(location.hash)) location.replace(`#${asked.id}`);
markTab();

// How far the chain went on since the block of the check.
async function tellBehind() {
  // Another size replaces it.
  const block = document.querySelector("[data-block]");
  if (!block || document.hidden) return;
  try {
    const { head } = await (await fetch("/v1/health")).json();
    const behind = head - Number(block.dataset.block);
    if (behind >= 0) block.textContent = `${behind.toLocaleString("en")} behind the head`;
  } catch {
    // The age beside it goes on.
  }
}

setInterval(tellBehind, 5000);

// A deep check tells its steps while this page stays; then the page of its answer comes.
document.addEventListener("click", (event) => {
  const deep = event.target.closest("[data-steps]");
  if (!deep || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (deep.hasAttribute("aria-disabled")) return;
  deep.setAttribute("aria-disabled", "true");
  const list = document.getElementById("steps-done");
  list.hidden = false;
  list.textContent = "";
  const stream = new EventSource(deep.dataset.steps);
  const leave = () => {
    stream.close();
    location.assign(deep.href);
  };
  stream.addEventListener("step", ({ data }) => {
    for (const text of data.split("\n")) {
      const step = document.createElement("li");
      step.textContent = text;
      list.append(step);
    }
  });
  stream.addEventListener("end", leave);
  stream.addEventListener("error", leave);
});

function tick() {
  tellAges();
  tellNext();
}

tick();
setInterval(tick, 1000);
