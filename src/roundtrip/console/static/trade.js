"use strict";
// Fills in a wallet's account, and sends prepared steps with the wallet, one after the other.
(() => {
  const connect = document.getElementById("connect");
  wallet.find(connect, "Use the account of ", async (provider) => {
    try {
      const [address] = await provider.request({ method: "eth_requestAccounts" });
      document.getElementById("trade-from").value = address;
    } catch (error) {
      connect.append(wallet.fault(error, "You did not choose an account."));
    }
  }, () => {});

  const list = document.getElementById("steps");
  const senders = document.getElementById("senders");
  if (!list || !senders) return;
  const { chain, from, until, side, asset, weth, usdg, raw, minRaw, decimals } = list.dataset;
  const note = (text) => { document.getElementById("send-note").textContent = text; };
  const hex = (number) => "0x" + BigInt(number).toString(16);
  const POLL_MS = 1000, MOST_POLLS = 300;
  let busy = false, startRaw = null, gasWei = 0n;

  // How much of what the trade brings the account holds, in base units, at a block.
  async function held(provider, block) {
    if (asset === "eth") return BigInt(await provider.request({ method: "eth_getBalance", params: [from, block] }));
    const to = { weth, usdg }[asset] || asset;
    const data = "0x70a08231" + from.slice(2).toLowerCase().padStart(64, "0");
    return BigInt(await provider.request({ method: "eth_call", params: [{ to, data }, block] }));
  }

  async function receiptOf(provider, hash) {
    for (let poll = 0; poll < MOST_POLLS; poll += 1) {
      const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
      if (receipt) return receipt;
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
    throw new Error("It is in no block after five minutes. Look at your wallet before you send it again.");
  }

  async function sendStep(provider, step) {
    const state = step.querySelector(".step-state");
    const { to, data, value, gas } = step.dataset;
    if (!step.dataset.hash) {
      state.textContent = "Confirm it in your wallet…";
      const call = { from, to, data, value: hex(value), gas: hex(gas), chainId: hex(chain) };
      step.dataset.hash = await provider.request({ method: "eth_sendTransaction", params: [call] });
    }
    state.textContent = "Sent. Waiting for a block…";
    const receipt = await receiptOf(provider, step.dataset.hash);
    gasWei += BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice || 0);
    const went = receipt.status === "0x1";
    state.textContent = `${went ? "Done" : "Failed"} in block ${Number(receipt.blockNumber).toLocaleString("en")}.`;
    step.dataset.state = went ? "done" : "failed";
    if (!went) throw new Error("The step failed and moved nothing but its gas. Prepare the trade again.");
    return receipt;
  }

  function show(amount) {
    const text = amount.toString().padStart(Number(decimals) + 1, "0");
    const whole = BigInt(text.slice(0, text.length - Number(decimals))).toLocaleString("en");
    const rest = Number(decimals) ? text.slice(-Number(decimals)).slice(0, 6).replace(/0+$/, "") : "";
    return rest ? `${whole}.${rest}` : whole;
  }

  function report(got, receipt) {
    const came = document.getElementById("came");
    const least = BigInt(minRaw), promised = BigInt(raw);
    const bps = promised > 0n ? Number((promised - got) * 10000n / promised) : 0;
    came.querySelector("[data-came]").textContent = show(got);
    came.querySelector("[data-against]").textContent = got >= promised ? "all that was promised"
      : got >= least ? `${(bps / 100).toFixed(2)} % less than promised, within what you accepted`
        : "less than the least that was promised";
    came.classList.toggle("fault", got < least);
    came.querySelector("[data-transaction]").href = `/transaction/${receipt.transactionHash}`;
    came.hidden = false;
    came.scrollIntoView({ block: "nearest" });
  }

  async function send(provider) {
    if (busy) return;
    busy = true;
    note("");
    const steps = [...list.querySelectorAll("li[data-to]")];
    try {
      const accounts = await provider.request({ method: "eth_requestAccounts" });
      if (!accounts.some((one) => one.toLowerCase() === from.toLowerCase())) {
        throw new Error(`This trade is for the account ${from}. Choose it in your wallet, or prepare the trade again for another account.`);
      }
      if (Date.now() > Date.parse(until)) throw new Error("The trade is too old. Prepare it again.");
      if (BigInt(await provider.request({ method: "eth_chainId" })) !== BigInt(chain)) {
        await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: hex(chain) }] });
      }
      if (startRaw === null) startRaw = await held(provider, "latest");
      let last = null;
      // A step that is done, from an attempt before, is not sent again.
      for (const step of steps) if (step.dataset.state !== "done") last = await sendStep(provider, step);
      senders.hidden = true;
      note("All steps are done.");
      const endRaw = await held(provider, last.blockNumber);
      report(endRaw - startRaw + (asset === "eth" ? gasWei : 0n), last);
    } catch (error) {
      const text = wallet.fault(error, "You refused it in your wallet. Nothing more was sent.");
      if (error.code === 4902) note(`Your wallet does not know the chain ${chain}. Add it there first.`);
      else note(text);
      for (const step of steps) {
        const state = step.querySelector(".step-state");
        if (!step.dataset.hash) state.textContent = "";
      }
    } finally {
      busy = false;
    }
  }

  wallet.find(senders, side === "sell" ? "Sell with " : "Buy with ", send, () => {
    note("No wallet was found in this browser. Open this page in your wallet's own browser, or send the bytes above by other means.");
  });
})();
