"use strict";
// Updates a live board. htmx reads the stream. Rows that are shown change where they are; new rows and another
// order wait until the reader asks for them, so that nothing jumps. A strip without a button changes at once.
(() => {
  const board = document.getElementById("board");
  const rows = document.getElementById("rows");
  const state = document.getElementById("state");
  const said = document.getElementById("state-said");
  const news = document.getElementById("news");
  if (!board || !rows) return;
  const needs = (board.dataset.needs || "").split(" ").filter(Boolean);
  const hides = board.dataset.hides;
  const isUsual = !needs.length && !hides && !location.search;
  let waiting = null;

  // Screen readers hear a change of state once, not with each row.
  function turned(isLive) {
    if (!state) return;
    document.getElementById("reload").hidden = isLive;
    const words = isLive ? "This board updates live." : "This board does not update live now.";
    if (said.textContent !== words) said.textContent = words;
  }

  function isUsed(node) {
    const selection = document.getSelection();
    const selects = selection && !selection.isCollapsed && node.contains(selection.anchorNode);
    return selects || node.contains(document.activeElement);
  }

  const rowsIn = (node) => [...node.querySelectorAll("[data-row]")];

  function passes(row) {
    const tags = (row.dataset.tags || "").split(" ");
    return needs.every((one) => tags.includes(one)) && !(hides && tags.includes(hides));
  }

  // A row as it was sent: the page shows how long ago its times are.
  function asSent(row) {
    const copy = row.cloneNode(true);
    for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
    return copy;
  }

  // Shows a row's new state where the row is, unless the reader uses it just now.
  function renew(row, fresh) {
    const [was, is] = [asSent(row), asSent(fresh)];
    if (was.innerHTML === is.innerHTML || isUsed(row)) return;
    if (was.textContent !== is.textContent) row.classList.add("changed");
    row.innerHTML = fresh.innerHTML;
    row.classList.toggle("is-danger", isDanger(fresh));
    row.dataset.tags = fresh.dataset.tags || "";
  }

  const isDanger = (row) => row.classList.contains("is-danger") || (row.dataset.tags || "").includes("group-danger");

  function announce(fresh) {
    const shown = rowsIn(rows).map((row) => row.dataset.row);
    const wanted = fresh.filter(passes).map((row) => row.dataset.row);
    const added = wanted.filter((one) => !shown.includes(one)).length;
    news.hidden = isUsual ? shown.join() === wanted.join() : !added && shown.every((one) => wanted.includes(one));
    news.textContent = added ? `${added} new` : "New order";
  }

  function put() {
    const fresh = document.createElement("template");
    fresh.innerHTML = waiting;
    rows.replaceChildren(fresh.content);
    if (news) news.hidden = true;
  }

  rows.addEventListener("htmx:sseBeforeMessage", (event) => {
    event.preventDefault();
    waiting = event.detail.data;
    const fresh = document.createElement("template");
    fresh.innerHTML = waiting;
    if (!news) {
      const points = window.matchMedia("(hover: hover)").matches && rows.matches(":hover");
      if (!points && !isUsed(rows)) put();
      return;
    }
    const freshRows = rowsIn(fresh.content);
    if (isUsual && !rowsIn(rows).length) return put();
    const byName = new Map(freshRows.map((row) => [row.dataset.row, row]));
    for (const row of rowsIn(rows)) {
      const one = byName.get(row.dataset.row);
      row.classList.toggle("has-left", !one);
      if (one) renew(row, one);
    }
    announce(freshRows);
  });
  // Another sort or filter than the usual one is the server's to make.
  news?.addEventListener("click", () => {
    if (!isUsual) return location.reload();
    put();
    // The button is gone: the keyboard goes on in the rows.
    rows.querySelector("[data-row] a")?.focus({ preventScroll: true });
  });
  rows.addEventListener("animationend", (event) => event.target.closest("[data-row]")?.classList.remove("changed"));

  // Up and down lead from row to row.
  rows.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("[data-row]");
    if (!step || !row) return;
    const all = rowsIn(rows);
    const next = all[all.indexOf(row) + step]?.querySelector("a");
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  state?.addEventListener("htmx:sseMessage", () => turned(Boolean(state.querySelector("[data-live=yes]"))));
  board.addEventListener("htmx:sseError", () => {
    if (!state) return;
    const lamp = document.createElement("strong");
    lamp.className = "lamp is-cut";
    lamp.textContent = "Not live now";
    state.replaceChildren(lamp, " The connection was lost; the page reconnects by itself. The rows below are older:");
    turned(false);
  });
})();
