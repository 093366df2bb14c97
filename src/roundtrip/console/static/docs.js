"use strict";
// Loads the API explorer once somebody wants it: it is larger than all pages together.
{
  const button = document.getElementById("open-explorer");

  function load(tag, attributes) {
    return new Promise((resolve, reject) => {
      const element = Object.assign(document.createElement(tag), attributes);
      element.addEventListener("load", resolve);
      element.addEventListener("error", reject);
      document.head.append(element);
    });
  }

  async function open() {
    button.disabled = true;
    const { script, style, document: url } = button.dataset;
    try {
      await Promise.all([load("link", { rel: "stylesheet", href: style }), load("script", { src: script })]);
    } catch {
      button.disabled = false;
      button.textContent = "It did not load. Try again";
      return;
    }
    // It leaves its list of servers without a name.
    const onComplete = () => document.getElementById("servers")?.setAttribute("aria-label", "Server");
    const shown = { tryItOutEnabled: true, defaultModelsExpandDepth: -1, validatorUrl: null };
    SwaggerUIBundle({ url, dom_id: "#explorer", onComplete, ...shown });
    button.hidden = true;
  }

  if (button) {
    button.hidden = false;
    button.addEventListener("click", open);
  }
}
