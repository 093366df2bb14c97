"use strict";
// Finds wallets in the browser (EIP-1193): announced ones (EIP-6963), else window.ethereum.

const wallet = {
  // Adds a button for each wallet, which calls `use` with it. Calls `none` if there is no wallet.
  find(into, label, use, none) {
    const seen = new Set();
    const offer = (name, provider) => {
      const button = document.createElement("button");
      button.type = "button";
      if ("primary" in into.dataset) button.className = "primary";
      button.textContent = label + name;
      button.addEventListener("click", () => use(provider));
      into.append(button);
    };
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
      else if (seen.size === 0) none();
    }, 300);
  },

  // Requests the text to sign (claimMessage) and the claim to send with the signature. Throws the service's
  // error message.
  async text(path, fields) {
    const answer = await fetch(path, {
      method: "POST", body: new URLSearchParams(fields), credentials: "same-origin",
      headers: { "hx-request": "true" },
    });
    const elsewhere = answer.headers.get("hx-redirect");
    if (elsewhere) window.location.assign(elsewhere);
    if (!(answer.headers.get("content-type") || "").startsWith("application/json")) {
      const told = new DOMParser().parseFromString(await answer.text(), "text/html");
      throw new Error(told.querySelector("strong")?.textContent || "The service did not answer. Try again in a few seconds.");
    }
    return answer.json();
  },

  sign(provider, message, address) {
    const utf8 = Array.from(new TextEncoder().encode(message), (one) => one.toString(16).padStart(2, "0")).join("");
    return provider.request({ method: "personal_sign", params: ["0x" + utf8, address] });
  },

  // A sentence for the error. Code 4001: the user refused in the wallet (EIP-1193).
  fault(error, refused) {
    return error.code === 4001 ? refused : String(error.message || error);
  },
};
