"use strict";
// A wallet in the browser (EIP-1193), found by its own announcement (EIP-6963) or where wallets of before put themselves.

const form = document.getElementById("sign-in");

function note(text) {
  document.getElementById("wallet-note").textContent = text;
}

async function sent(path, fields) {
  const answer = await fetch(path, {
    method: "POST", body: new URLSearchParams(fields), credentials: "same-origin",
    headers: { "hx-request": "true" },
  });
  if (!(answer.headers.get("content-type") || "").startsWith("application/json")) {
    const told = new DOMParser().parseFromString(await answer.text(), "text/html");
    throw new Error(told.querySelector("strong")?.textContent || "The service did not answer.");
  }
  return answer.json();
}

async function signIn(provider) {
  try {
    note("Your wallet asks which account it is…");
    const [address] = await provider.request({ method: "eth_requestAccounts" });
    const { message } = await sent("/sign-in/text", { address });
    note("Your wallet shows the text to sign. It moves nothing.");
    const utf8 = Array.from(new TextEncoder().encode(message), (one) => one.toString(16).padStart(2, "0")).join("");
    const signature = await provider.request({ method: "personal_sign", params: ["0x" + utf8, address] });
    form.elements.address.value = address;
    form.elements.signature.value = signature;
    form.submit();
  } catch (error) {
    note(error.code === 4001 ? "You did not sign. Nothing happened." : String(error.message || error));
  }
}

function offer(name, provider) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Sign in with " + name;
  button.addEventListener("click", () => signIn(provider));
  document.getElementById("wallets").append(button);
  note("Signing moves nothing and costs nothing.");
}

function lookForWallets() {
  const seen = new Set();
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
    else if (seen.size === 0) note("No wallet was found in this browser. Any wallet extension does: it needs no eth, and no network of ours.");
  }, 300);
}

if (form) lookForWallets();

// What stands short on the page is copied whole.
document.addEventListener("click", async (event) => {
  const shown = event.target.closest("[data-copy]");
  if (shown && !event.target.closest("a")) {
    await navigator.clipboard?.writeText(shown.dataset.copy);
    shown.classList.add("copied");
  }
});

// Times as this reader's clock says them; the whole stays in the title.
for (const time of document.querySelectorAll("time")) {
  time.title = time.textContent;
}
