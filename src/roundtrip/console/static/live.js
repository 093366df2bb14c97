"use strict";
// A board that changes while it is looked at. The stream is htmx's; here rows are put in place one by one, so that what
// stayed the same stays, and what changed is marked.
(() => {
  const board = document.getElementById("board");
  const rows = document.getElementById("rows");
  const state = document.getElementById("state");
  const said = document.getElementById("state-said");
  const held = document.getElementById("held");
  if (!board || !rows) return;
  let waiting = null;

  // Told once when it turns, not with each row.
  function turned(isLive) {
    document.getElementById("reload").hidden = isLive;
    const words = isLive ? "This board is live." : "This board is not live just now.";
    if (said.textContent !== words) said.textContent = words;
  }

  // Nothing moves from under a pointer, a focus or a selection: what is clicked is what was read.
  function isUsed() {
    const points = window.matchMedia("(hover: hover)").matches && rows.matches(":hover");
    const selection = document.getSelection();
    const selects = selection && !selection.isCollapsed && rows.contains(selection.anchorNode);
    return points || selects || rows.contains(document.activeElement);
  }

  function put(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const before = new Map();
    for (const row of rows.querySelectorAll("[data-row]")) before.set(row.dataset.row, row);
    for (const row of fresh.content.querySelectorAll("[data-row]")) {
      const was = before.get(row.dataset.row);
      if (was && was.textContent === row.textContent) {
        was.classList.remove("changed");
        row.replaceWith(was);
      } else row.classList.add("changed");
    }
    const scrolled = rows.querySelector(".wide")?.scrollLeft || 0;
    rows.replaceChildren(fresh.content);
    const wide = rows.querySelector(".wide");
    if (wide) wide.scrollLeft = scrolled;
  }

  function putWaiting() {
    if (waiting === null || isUsed()) return;
    put(waiting);
    waiting = null;
    held.hidden = true;
  }

  rows.addEventListener("htmx:sseBeforeMessage", (event) => {
    event.preventDefault();
    waiting = event.detail.data;
    held.hidden = !isUsed();
    putWaiting();
  });
  rows.addEventListener("pointerleave", putWaiting);
  rows.addEventListener("focusout", () => setTimeout(putWaiting));
  document.addEventListener("selectionchange", putWaiting);
  rows.addEventListener("animationend", (event) => event.target.closest("[data-row]")?.classList.remove("changed"));

  state.addEventListener("htmx:sseMessage", () => turned(Boolean(state.querySelector("[data-live=yes]"))));
  board.addEventListener("htmx:sseError", () => {
    const lamp = document.createElement("strong");
    lamp.className = "lamp is-cut";
    lamp.textContent = "Not live just now";
    state.replaceChildren(lamp, " The connection is being made again. What stands here is older:");
    turned(false);
  });
})();
