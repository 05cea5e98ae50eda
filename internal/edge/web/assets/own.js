// Has a telephone keep a candidate's page: see own_worker.js. The page is whole without it.
(() => {
  "use strict";
  const kept = document.getElementById("kept"), keeps = document.getElementById("keeps");
  if (!("serviceWorker" in navigator) || !kept || !kept.hidden) return; // what a telephone kept is not kept again
  navigator.serviceWorker.addEventListener("message", (event) => {
    if (event.data === "kept" && keeps) keeps.hidden = false;
  });
  const addresses = () => [
    location.href,
    ...[...document.querySelectorAll("link[rel=stylesheet], link[rel=icon], a[data-keep]")].map((at) => at.href),
    ...[...document.scripts].map((script) => script.src),
  ];
  window.addEventListener("load", async () => {
    try {
      await navigator.serviceWorker.register("/c/worker.js", { scope: "/c/" });
      const worker = (await navigator.serviceWorker.ready).active;
      worker.postMessage({ keep: addresses() });
    } catch (why) { // a private window keeps nothing
      console.info("this page is not kept", why);
    }
  });
})();
