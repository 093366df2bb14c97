"use strict";
// The board's own tab is in sight, also of a phone.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const bar = tab.parentElement;
  bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

// Updates live boards. htmx reads the stream. Rows that are shown change where they are; new rows and another
// order wait until the reader asks for them, so that nothing jumps. A list without a button changes at once.
for (const board of document.querySelectorAll("[sse-connect]")) {
  const rows = board.querySelector("[sse-swap=rows]");
  const state = board.querySelector("[sse-swap=state]");
  const said = board.querySelector("[data-said]");
  const news = board.querySelector("[data-news]");
  const reload = board.querySelector("#reload");
  const needs = (board.dataset.needs || "").split(" ").filter(Boolean);
  const hides = board.dataset.hides;
  const isUsual = "usual" in board.dataset;
  const watched = board.dataset.watched?.split(" ");
  let waiting = null;

  // Screen readers hear a change of state once, not with each row.
  function turned(isLive) {
    if (!state) return;
    reload.hidden = isLive;
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
    copy.querySelector(".star")?.remove();
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
    star(row);
  }

  const tokenOf = (link) => link.pathname.split("/")[2];

  // The star of a row, of who is signed in: the link to the token's page watches the token where it is.
  function star(row) {
    const link = watched && row.querySelector(".star");
    if (!link) return;
    const isOn = watched.includes(tokenOf(link));
    link.setAttribute("role", "button");
    link.setAttribute("aria-pressed", isOn);
  }

  async function watch(link) {
    const isOn = link.getAttribute("aria-pressed") === "true";
    const form = new URLSearchParams({ csrf: board.dataset.csrf, off: isOn ? "1" : "" });
    const answer = await fetch(`${link.pathname}/watch`, { method: "POST", body: form, headers: { "hx-request": "true" } }).catch(() => null);
    if (!answer?.ok || answer.headers.has("hx-redirect")) return location.assign(link.href);
    if (isOn) watched.splice(watched.indexOf(tokenOf(link)), 1);
    else watched.push(tokenOf(link));
    for (const one of rowsIn(rows)) star(one);
  }

  rows.addEventListener("click", (event) => {
    const link = event.target.closest(".star[aria-pressed]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    watch(link);
  });
  for (const row of rowsIn(rows)) star(row);

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
    for (const row of rowsIn(rows)) star(row);
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

  function lead(step, from) {
    const all = rowsIn(rows);
    const next = all[all.indexOf(from) + step]?.querySelector("a");
    next?.focus();
    return Boolean(next);
  }

  // Up and down, and j and k as in many programs, lead from row to row; Enter opens one.
  rows.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("[data-row]");
    if (step && row && lead(step, row)) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (!news || !step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    lead(step, document.activeElement?.closest("[data-row]"));
  });

  state?.addEventListener("htmx:sseMessage", () => turned(Boolean(state.querySelector("[data-live=yes]"))));
  board.addEventListener("htmx:sseError", () => {
    if (!state) return;
    const lamp = document.createElement("strong");
    lamp.className = "chip t-warn";
    lamp.textContent = "Not live now";
    state.replaceChildren(lamp, " The connection was lost; the page reconnects by itself. The rows below are older:");
    turned(false);
  });
}
