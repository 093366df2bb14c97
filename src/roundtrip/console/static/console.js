"use strict";
// In a block: other scripts of a page may use the same names.
{
// A click on a shortened text copies the whole text.
document.addEventListener("click", async (event) => {
  const shown = event.target.closest("[data-copy]");
  if (shown && !event.target.closest("a")) {
    await navigator.clipboard?.writeText(shown.dataset.copy);
    shown.classList.add("copied");
  }
});

// Code that is made to be copied gets a button.
for (const block of document.querySelectorAll("pre.copyable")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = block.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });
  block.append(button);
}

// "/" and Ctrl-K go to the search, as in many programs.
document.addEventListener("keydown", (event) => {
  const isChord = event.ctrlKey || event.metaKey;
  if (event.altKey || event.key !== (isChord ? "k" : "/")) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector("main input[type=search]") || document.getElementById("q");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});

// Times: pages show exact UTC. Those marked data-ago become "3 min ago" and stay current; the exact one is in the
// tooltip, and takes its place on a click.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [10, "s"]];
const LONG_AGO_S = 90 * 86400;

function distance(at, now) {
  const seconds = Math.abs(now - at) / 1000;
  const [size, unit] = UNITS.find(([one]) => seconds >= one) || [];
  if (!size) return "now";
  // Seconds in tens, so that nothing flickers.
  const count = unit === "s" ? Math.floor(seconds / 10) * 10 : Math.floor(seconds / size);
  return at <= now ? `${count}\u00a0${unit}\u00a0ago` : `in\u00a0${count}\u00a0${unit}`;
}

function showTime(time) {
  const at = Date.parse(time.dateTime);
  if (Number.isNaN(at)) return;
  time.dataset.exact ??= time.textContent;
  const isAgo = "ago" in time.dataset && time.dataset.shown !== "exact";
  const text = isAgo && Math.abs(Date.now() - at) < LONG_AGO_S * 1000 ? distance(at, Date.now()) : time.dataset.exact;
  if (time.textContent !== text) time.textContent = text;
}

function showTimes() {
  for (const time of document.querySelectorAll("time")) showTime(time);
}

// Made when it is wanted: a board has a hundred times, and the reader's own format costs a page's start.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest("time[data-exact]");
  if (time) time.title = `${time.dataset.exact} · ${new Date(time.dateTime).toLocaleString()} (your time)`;
});

document.addEventListener("click", (event) => {
  const time = event.target.closest("time[data-ago]");
  if (!time || event.target.closest("a, button")) return;
  time.dataset.shown = time.dataset.shown === "exact" ? "" : "exact";
  showTime(time);
});

// What scrolls can be reached by the keyboard.
function reachScrollers() {
  for (const one of document.querySelectorAll(".wide, pre")) {
    if (one.hasAttribute("tabindex") || one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight) continue;
    one.tabIndex = 0;
    one.setAttribute("role", "group");
    one.setAttribute("aria-label", one.querySelector("caption")?.textContent.trim() || "This part scrolls");
  }
}

// What scrolls is known once the page is laid out: asked earlier it would be laid out twice.
let isAsked = false;

function refresh() {
  showTimes();
  if (!isAsked) requestAnimationFrame(() => { isAsked = false; reachScrollers(); });
  isAsked = true;
}

refresh();
setInterval(showTimes, 10_000);
window.addEventListener("resize", reachScrollers);
// Pieces and live boards bring new times and tables.
new MutationObserver(refresh).observe(document.body, { childList: true, subtree: true });

// Counts the seconds of an element's [data-left] down, then calls back; not before somebody looks.
function countDown(told, seconds, done) {
  const left = told.querySelector("[data-left]");
  const until = Date.now() + seconds * 1000;
  const timer = setInterval(() => {
    left.textContent = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    if (Date.now() < until || document.hidden) return;
    clearInterval(timer);
    done();
  }, 1000);
}

// A page beyond a limit comes back by itself.
const back = document.querySelector("[data-comes-back]");
if (back) countDown(back, Number(back.dataset.comesBack), () => location.reload());

// A piece beyond a limit keeps what is there, and is asked for again.
document.addEventListener("htmx:responseError", (event) => {
  const { elt, target, xhr, requestConfig, pathInfo } = event.detail;
  if (xhr.status !== 429 || requestConfig.verb !== "get") return;
  const seconds = Number(xhr.getResponseHeader("retry-after")) || 5;
  const told = document.createElement("p");
  told.className = "quiet";
  told.setAttribute("role", "status");
  told.innerHTML = 'Too fast. This part comes back by itself in <span data-left aria-hidden="true"></span> s.';
  told.querySelector("[data-left]").textContent = seconds;
  target.after(told);
  countDown(told, seconds, () => {
    told.remove();
    if (elt.isConnected) htmx.ajax("get", pathInfo.requestPath, { source: elt, target });
  });
});

// A page that comes from the browser's memory (Back) says how old it is: its verdict is of then.
const OLD_MS = 60_000;
const madeAt = Date.parse(document.body.dataset.made);

function tellAge() {
  const age = Date.now() - madeAt;
  if (!(age > OLD_MS) || document.getElementById("from-memory")) return;
  const told = document.createElement("p");
  told.id = "from-memory";
  told.className = "notice t-warn";
  told.setAttribute("role", "status");
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Load it again";
  told.append(`You see this page as it was ${distance(madeAt, Date.now())}. `, link);
  document.querySelector("main").prepend(told);
}

if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") tellAge();
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  showTimes();
  tellAge();
});
}
