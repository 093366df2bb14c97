"use strict";
// One signature of a wallet opens a session.
(() => {
  const form = document.getElementById("sign-in");
  const note = (text) => { document.getElementById("wallet-note").textContent = text; };

  async function signIn(provider) {
    try {
      note("Your wallet asks which account it is…");
      const [address] = await provider.request({ method: "eth_requestAccounts" });
      const { claim, claimMessage } = await wallet.text("/sign-in/text", { address });
      note("Your wallet shows the text to sign. It moves nothing.");
      form.elements.signature.value = await wallet.sign(provider, claimMessage, address);
      form.elements.claim.value = claim;
      form.elements.address.value = address;
      form.submit();
    } catch (error) {
      note(wallet.fault(error, "You did not sign. Nothing happened."));
    }
  }

  note("Choose a wallet: it shows the text before you sign.");
  wallet.find(document.getElementById("wallets"), "Sign in with ", signIn, () => {
    note("No wallet was found in this browser. Any wallet extension does: it needs no eth, and no network of ours.");
  });
})();
