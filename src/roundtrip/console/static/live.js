"use strict";
// Updates a live board. htmx reads the stream; this script replaces only rows that changed, and marks them.
(() => {
  const board = document.getElementById("board");
  const rows = document.getElementById("rows");
  const state = document.getElementById("state");
  const said = document.getElementById("state-said");
  const held = document.getElementById("held");
  if (!board || !rows) return;
  let waiting = null;

  // Screen readers hear a change of state once, not with each row.
  function turned(isLive) {
    document.getElementById("reload").hidden = isLive;
    const words = isLive ? "This board updates live." : "This board does not update live now.";
    if (said.textContent !== words) said.textContent = words;
  }

  // Rows do not change under a pointer, a focus or a selection, so that a click hits the row that was read.
  function isUsed() {
    const points = window.matchMedia("(hover: hover)").matches && rows.matches(":hover");
    const selection = document.getSelection();
    const selects = selection && !selection.isCollapsed && rows.contains(selection.anchorNode);
    return points || selects || rows.contains(document.activeElement);
  }

  // A row's text, with its times as they were sent: the page shows how long ago they are.
  function read(row) {
    const copy = row.cloneNode(true);
    for (const time of copy.querySelectorAll("time")) time.textContent = time.dateTime;
    return copy.textContent;
  }

  function put(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const before = new Map();
    for (const row of rows.querySelectorAll("[data-row]")) before.set(row.dataset.row, row);
    for (const row of fresh.content.querySelectorAll("[data-row]")) {
      const was = before.get(row.dataset.row);
      if (was && read(was) === read(row)) {
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
    lamp.textContent = "Not live now";
    state.replaceChildren(lamp, " The connection was lost; the page reconnects by itself. The rows below are older:");
    turned(false);
  });
})();
