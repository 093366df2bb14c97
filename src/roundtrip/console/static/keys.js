"use strict";
// A wallet in the browser (EIP-1193) signs for a key of its account; and a key that was just made is copied.
(() => {
  const form = document.getElementById("make-key");
  const note = (text) => { document.getElementById("key-note").textContent = text; };

  async function textToSign() {
    const answer = await fetch("/account/keys/text", {
      method: "POST", body: new URLSearchParams({ csrf: form.elements.csrf.value }), credentials: "same-origin",
      headers: { "hx-request": "true" },
    });
    const elsewhere = answer.headers.get("hx-redirect");
    if (elsewhere) window.location.assign(elsewhere);
    if (!(answer.headers.get("content-type") || "").startsWith("application/json")) {
      const told = new DOMParser().parseFromString(await answer.text(), "text/html");
      throw new Error(told.querySelector("strong")?.textContent || "The service did not answer.");
    }
    return (await answer.json()).message;
  }

  async function make(provider) {
    try {
      if (!form.reportValidity()) return;
      note("Your wallet asks which account it is…");
      const accounts = await provider.request({ method: "eth_requestAccounts" });
      const own = accounts.find((one) => one.toLowerCase() === form.dataset.wallet);
      if (!own) {
        note("You are signed in as " + form.dataset.wallet + ", and your wallet shows another account. Choose that one in it.");
        return;
      }
      const message = await textToSign();
      note("Your wallet shows the text to sign. It moves nothing.");
      const utf8 = Array.from(new TextEncoder().encode(message), (one) => one.toString(16).padStart(2, "0")).join("");
      form.elements.signature.value = await provider.request({ method: "personal_sign", params: ["0x" + utf8, own] });
      form.submit();
    } catch (error) {
      note(error.code === 4001 ? "You did not sign. No key was made." : String(error.message || error));
    }
  }

  function offer(name, provider) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Sign with " + name;
    button.addEventListener("click", () => make(provider));
    document.getElementById("key-wallets").append(button);
  }

  if (form) {
    const seen = new Set();
    // Enter in the label sends no form that nobody signed.
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [button] = document.getElementById("key-wallets").children;
      if (button) button.click();
    });
    window.addEventListener("eip6963:announceProvider", (event) => {
      const { info, provider } = event.detail;
      if (!seen.has(info.uuid)) {
        seen.add(info.uuid);
        offer(String(info.name).slice(0, 40), provider);
      }
    });
    window.dispatchEvent(new Event("eip6963:requestProvider"));
    setTimeout(() => {
      if (seen.size === 0 && window.ethereum) offer("the wallet of this browser", window.ethereum);
      else if (seen.size === 0) note("Your wallet signs for each key, and none was found in this browser.");
    }, 300);
  }

  for (const button of document.querySelectorAll("[data-copies]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const shown = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(shown.textContent);
        document.getElementById("copied").textContent = "Copied.";
      } catch {
        // Pages over plain HTTP have no clipboard: it is marked, to be copied by hand.
        window.getSelection().selectAllChildren(shown);
        document.getElementById("copied").textContent = "Marked: copy it by hand.";
      }
    });
  }
})();
