"use strict";
// Makes a key with a signature of the browser's wallet (EIP-1193), and copies a key that was just made.
(() => {
  const form = document.getElementById("make-key");
  const note = (text) => { document.getElementById("key-note").textContent = text; };

  async function make(provider) {
    try {
      if (!form.reportValidity()) return;
      note("Choose your account in the wallet's window…");
      const accounts = await provider.request({ method: "eth_requestAccounts" });
      const own = accounts.find((one) => one.toLowerCase() === form.dataset.wallet);
      if (!own) {
        note("You are signed in as " + form.dataset.wallet + ", but your wallet shows another account. Switch to that account in your wallet and try again.");
        return;
      }
      const { claim, claimMessage } = await wallet.text("/account/keys/text", { csrf: form.elements.csrf.value });
      note("Read the text in your wallet and sign it. This moves no funds.");
      form.elements.signature.value = await wallet.sign(provider, claimMessage, own);
      form.elements.claim.value = claim;
      form.submit();
    } catch (error) {
      note(wallet.fault(error, "You did not sign, so no key was made."));
    }
  }

  if (form) {
    // Enter in the label starts the signature: the form is not valid without one.
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [button] = document.getElementById("key-wallets").children;
      if (button) button.click();
    });
    wallet.find(document.getElementById("key-wallets"), "Sign with ", make, () => {
      note("No wallet was found in this browser. Open this page in the browser that has your wallet.");
    });
  }

  for (const button of document.querySelectorAll("[data-copies]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const shown = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(shown.textContent);
        document.getElementById("copied").textContent = "Copied.";
      } catch {
        // Pages over plain HTTP have no clipboard: select the key for copying by hand.
        window.getSelection().selectAllChildren(shown);
        document.getElementById("copied").textContent = "Selected: press Ctrl+C or ⌘C to copy.";
      }
    });
  }
})();
