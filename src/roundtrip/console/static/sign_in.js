"use strict";
// Signs in with one signature of the browser's wallet.
(() => {
  const form = document.getElementById("sign-in");
  const note = (text) => { document.getElementById("wallet-note").textContent = text; };

  async function signIn(provider) {
    try {
      note("Choose your account in the wallet's window…");
      const [address] = await provider.request({ method: "eth_requestAccounts" });
      const { claim, claimMessage } = await wallet.text("/sign-in/text", { address });
      note("Read the text in your wallet and sign it. This moves no funds.");
      form.elements.signature.value = await wallet.sign(provider, claimMessage, address);
      form.elements.claim.value = claim;
      form.elements.address.value = address;
      form.submit();
    } catch (error) {
      note(wallet.fault(error, "You did not sign, so you are not signed in."));
    }
  }

  note("Choose your wallet. It shows you the text before you sign.");
  wallet.find(document.getElementById("wallets"), "Sign in with ", signIn, () => {
    note("No wallet was found in this browser. Install a wallet extension, or open this page in your wallet's own browser, as below. The wallet needs no eth and no network of ours.");
  });
})();
