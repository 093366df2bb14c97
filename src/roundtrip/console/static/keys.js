"use strict";
// A wallet in the browser (EIP-1193) signs for a key of its account; and a key that was just made is copied.
(() => {
  const form = document.getElementById("make-key");
  const note = (text) => { document.getElementById("key-note").textContent = text; };

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
      const { claim, claimMessage } = await wallet.text("/account/keys/text", { csrf: form.elements.csrf.value });
      note("Your wallet shows the text to sign. It moves nothing.");
      form.elements.signature.value = await wallet.sign(provider, claimMessage, own);
      form.elements.claim.value = claim;
      form.submit();
    } catch (error) {
      note(wallet.fault(error, "You did not sign. No key was made."));
    }
  }

  if (form) {
    // Enter in the label sends no form that nobody signed.
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [button] = document.getElementById("key-wallets").children;
      if (button) button.click();
    });
    wallet.find(document.getElementById("key-wallets"), "Sign with ", make, () => {
      note("Your wallet signs for each key, and none was found in this browser.");
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
        // Pages over plain HTTP have no clipboard: it is marked, to be copied by hand.
        window.getSelection().selectAllChildren(shown);
        document.getElementById("copied").textContent = "Marked: copy it by hand.";
      }
    });
  }
})();
