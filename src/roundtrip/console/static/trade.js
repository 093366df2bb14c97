"use strict";
// Fills in a wallet's account, and sends prepared steps with the wallet, one after the other.
(() => {
  const connect = document.getElementById("connect");
  wallet.find(connect, "Use the account of ", async (provider) => {
    try {
      const [address] = await provider.request({ method: "eth_requestAccounts" });
      document.getElementById("trade-from").value = address;
      await offerMost(provider, address);
    } catch (error) {
      connect.append(wallet.fault(error, "You did not choose an account."));
    }
  }, () => {});

  // Amounts and shares at a press.
  for (const group of document.querySelectorAll("[data-fills]")) {
    group.hidden = false;
    group.addEventListener("click", (event) => {
      const { value } = event.target.closest("button") || {};
      if (value) fill(group.dataset.fills, value);
    });
  }

  // No quote stands beside a form that it does not belong to.
  const quote = document.getElementById("quote");
  for (const event of ["htmx:beforeRequest", "htmx:responseError", "htmx:sendError"]) {
    quote?.addEventListener(event, () => quote.replaceChildren());
  }

  // A sell is of a share or of an amount: who gives one takes the other back.
  const OTHER = { "trade-percent": "trade-amount", "trade-amount": "trade-percent" };
  const clearOther = (id) => {
    const other = OTHER[id] && document.getElementById(OTHER[id]);
    if (other) other.value = "";
  };
  function fill(id, value) {
    const field = document.getElementById(id);
    field.value = value;
    clearOther(id);
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  document.getElementById("trade-form").addEventListener("input", ({ target }) => clearOther(target.id));

  // All of the wallet's eth but for what gas may cost: a hundredth, and at least a thousandth of an eth.
  async function offerMost(provider, address) {
    const button = document.getElementById("trade-max");
    if (!button) return;
    const balance = await provider.request({ method: "eth_getBalance", params: [address, "latest"] }).catch(() => null);
    if (balance === null) return;
    const wei = BigInt(balance);
    const kept = wei / 100n > 10n ** 15n ? wei / 100n : 10n ** 15n;
    if (wei <= kept) return;
    const text = (wei - kept).toString().padStart(19, "0");
    button.value = `${text.slice(0, -18)}.${text.slice(-18, -12)}`.replace(/\.?0+$/, "");
    button.hidden = false;
  }

  const list = document.getElementById("steps");
  const senders = document.getElementById("senders");
  if (!list || !senders) return;
  const { chain, from, until, side, asset, weth, usdg, raw, minRaw, decimals } = list.dataset;
  const steps = [...list.querySelectorAll("li[data-to]")];
  const note = (text) => { document.getElementById("send-note").textContent = text; };
  const hex = (number) => "0x" + BigInt(number).toString(16);
  const POLL_MS = 1000, MOST_POLLS = 300;
  const UNSURE = "This page cannot know whether a step was sent before it was loaded again. Look at your wallet first; then prepare the trade again.";
  let busy = false;

  // What was begun stands behind the # of the page's address: it outlasts a reload, and no server gets it. "nonce": the
  // account's before the first step; "sent": hashes; "of": how many steps there were.
  let begun = readBegun();

  function readBegun() {
    const told = new URLSearchParams(location.hash.slice(1));
    if (!/^\d+$/.test(told.get("nonce") || "")) return null;
    const sent = (told.get("sent") || "").split(",").filter((hash) => /^0x[0-9a-f]{64}$/i.test(hash));
    return { nonce: Number(told.get("nonce")), of: Number(told.get("of")), sent };
  }

  function keepBegun() {
    const told = begun ? `#nonce=${begun.nonce}&of=${begun.of}&sent=${begun.sent.join(",")}` : "";
    history.replaceState(history.state, "", location.pathname + location.search + told);
  }

  // How much of what the trade brings the account holds, in base units, at a block.
  async function held(provider, block) {
    if (asset === "eth") return BigInt(await provider.request({ method: "eth_getBalance", params: [from, block] }));
    const to = { weth, usdg }[asset] || asset;
    const data = "0x70a08231" + from.slice(2).toLowerCase().padStart(64, "0");
    return BigInt(await provider.request({ method: "eth_call", params: [{ to, data }, block] }));
  }

  function fault(error, refused) {
    return error.code === 4902 ? `Your wallet does not know the chain ${chain}. Add it there first.` : wallet.fault(error, refused);
  }

  async function useChain(provider) {
    if (BigInt(await provider.request({ method: "eth_chainId" })) === BigInt(chain)) return;
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: hex(chain) }] });
  }

  async function countSent(provider, block) {
    return Number(await provider.request({ method: "eth_getTransactionCount", params: [from, block] }));
  }

  async function receiptOf(provider, hash) {
    for (let poll = 0; poll < MOST_POLLS; poll += 1) {
      const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
      if (receipt) return receipt;
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
    throw new Error("It is in no block after five minutes. Look at your wallet before you send it again.");
  }

  async function waitFor(provider, hash, state) {
    state.textContent = "Sent. Waiting for a block…";
    const receipt = await receiptOf(provider, hash);
    const went = receipt.status === "0x1";
    state.textContent = `${went ? "Done" : "Failed"} in block ${Number(receipt.blockNumber).toLocaleString("en")}.`;
    if (!went) throw new Error("The step failed and moved nothing but its gas. Prepare the trade again.");
    return receipt;
  }

  async function sendStep(provider, step) {
    const state = step.querySelector(".step-state");
    const { to, data, value, gas } = step.dataset;
    if (!step.dataset.hash) {
      state.textContent = "Confirm it in your wallet…";
      const call = { from, to, data, value: hex(value), gas: hex(gas), chainId: hex(chain) };
      step.dataset.hash = await provider.request({ method: "eth_sendTransaction", params: [call] });
      begun.sent.push(step.dataset.hash);
      keepBegun();
    }
    const receipt = await waitFor(provider, step.dataset.hash, state);
    step.dataset.state = "done";
    return receipt;
  }

  function show(amount) {
    const text = amount.toString().padStart(Number(decimals) + 1, "0");
    const whole = BigInt(text.slice(0, text.length - Number(decimals))).toLocaleString("en");
    const rest = Number(decimals) ? text.slice(-Number(decimals)).slice(0, 6).replace(/0+$/, "") : "";
    return rest ? `${whole}.${rest}` : whole;
  }

  // What the last step brought: the balance after its block less that before it, and its gas where it brings eth.
  async function measure(provider, { blockNumber, gasUsed, effectiveGasPrice }) {
    const gasWei = asset === "eth" ? BigInt(gasUsed) * BigInt(effectiveGasPrice || 0) : 0n;
    const before = await held(provider, hex(BigInt(blockNumber) - 1n));
    return await held(provider, blockNumber) - before + gasWei;
  }

  async function tellEnd(provider, receipt) {
    senders.hidden = true;
    note("All steps are done.");
    const came = document.getElementById("came"), against = came.querySelector("[data-against]");
    came.querySelector("[data-transaction]").href = `/transaction/${receipt.transactionHash}`;
    let got = null;
    try {
      got = await measure(provider, receipt);
      came.querySelector("[data-came]").textContent = show(got);
    } catch {
      came.querySelector("[data-got]").textContent = "How much came could not be read through your wallet.";
    }
    // After a reload the page promises for a new trade.
    const isOld = steps.every((step) => !step.dataset.hash);
    came.querySelector("[data-promise]").hidden = isOld;
    if (!isOld && got !== null) against.textContent = compare(got);
    came.classList.toggle("t-danger", !isOld && got !== null && got < BigInt(minRaw));
    came.hidden = false;
    came.scrollIntoView({ block: "nearest" });
  }

  function compare(got) {
    const promised = BigInt(raw);
    if (got >= promised) return ", all that was promised";
    if (got < BigInt(minRaw)) return ", less than the least that was promised";
    return `, ${(Number((promised - got) * 10000n / promised) / 100).toFixed(2)} % less than promised, within what you accepted`;
  }

  // After a reload: what became of the steps that were sent. Sends nothing.
  async function look(provider) {
    if (busy || !begun) return;
    busy = true;
    try {
      await useChain(provider);
      let last = null;
      for (const hash of begun.sent) last = await waitFor(provider, hash, document.getElementById("send-note"));
      if (last && begun.sent.length >= begun.of) return await tellEnd(provider, last);
      const [done, waiting] = [await countSent(provider, "latest"), await countSent(provider, "pending")];
      if (Math.max(done, waiting) !== begun.nonce + begun.sent.length) throw new Error(UNSURE);
      note(last ? "The steps before the trade itself were sent and are done; the trade was not."
        : "Nothing was sent. If your wallet still asks for this trade, refuse it there before you send again.");
      begun = null;
      keepBegun();
      offer();
    } catch (error) {
      note(fault(error, "You refused it in your wallet. Nothing was sent."));
    } finally {
      busy = false;
    }
  }

  async function send(provider) {
    if (busy) return;
    busy = true;
    note("");
    try {
      const accounts = await provider.request({ method: "eth_requestAccounts" });
      if (!accounts.some((one) => one.toLowerCase() === from.toLowerCase())) {
        throw new Error(`This trade is for the account ${from}. Choose it in your wallet, or prepare the trade again for another account.`);
      }
      if (Date.now() > Date.parse(until)) throw new Error("The trade is too old. Prepare it again.");
      await useChain(provider);
      begun ??= { nonce: await countSent(provider, "pending"), of: steps.length, sent: [] };
      keepBegun();
      let last = null;
      // A step that is done, from an attempt before, is not sent again.
      for (const step of steps) if (step.dataset.state !== "done") last = await sendStep(provider, step);
      await tellEnd(provider, last);
    } catch (error) {
      note(fault(error, "You refused it in your wallet. Nothing more was sent."));
      for (const step of steps) if (!step.dataset.hash) step.querySelector(".step-state").textContent = "";
      // Refused: this page knows that nothing was sent.
      if (error.code === 4001 && begun?.sent.length === 0) {
        begun = null;
        keepBegun();
      }
    } finally {
      busy = false;
    }
  }

  function offer() {
    senders.replaceChildren();
    const [label, use] = begun ? ["Look what became of it with ", look] : [side === "sell" ? "Sell with " : "Buy with ", send];
    wallet.find(senders, label, use, () => {
      note("No wallet was found in this browser. Open this page in your wallet's own browser, or send the bytes below by other means.");
    });
  }

  if (begun) note("You began to send a trade on this page before. Look what became of it before you send again.");
  offer();
})();
