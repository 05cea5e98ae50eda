// What htmx is allowed here: nothing that the policy of the pages forbids (styles and code inline), and no page in the
// browser's own store, since pages hold names. Read before htmx begins.
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;
htmx.config.allowScriptTags = false;
htmx.config.historyCacheSize = 0;
htmx.config.refreshOnHistoryMiss = true;

// What only a page without htmx needs, goes: a filter is applied as soon as it is chosen.
document.documentElement.classList.add("enhanced");

// A part that is answered from another address comes from the login: the session is over. The whole page then asks for itself.
document.addEventListener("htmx:beforeSwap", function (event) {
  var asked = new URL(event.detail.pathInfo.finalRequestPath, location.href);
  var answered = new URL(event.detail.xhr.responseURL, location.href);
  if (asked.pathname !== answered.pathname) {
    event.detail.shouldSwap = false;
    location.reload();
  }
});
