// What the pages of buyers do beyond their forms. Everything works without it.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");

  var problem = document.getElementById("problem");
  if (problem) problem.focus();

  // A second press sends nothing: the first is under way. Whoever comes back finds the button as it was.
  document.querySelectorAll("form[data-once]").forEach(function (form) {
    form.addEventListener("submit", function (event) {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = "1";
    });
  });
  window.addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-once]").forEach(function (form) { delete form.dataset.sent; });
  });

  document.querySelectorAll("form[data-submit-on-change] select").forEach(function (select) {
    select.addEventListener("change", function () { select.form.requestSubmit(); });
  });

  var go = document.getElementById("go");
  if (go) location.replace(go.href);

  plan(document.getElementById("plan-form"));
  live(document.getElementById("live"));

  // The plan: what is chosen is said with its price, and the arrow keys go from seat to seat.
  function plan(form) {
    if (!form) return;
    var sum = document.getElementById("seats-sum");
    var boxes = Array.from(form.querySelectorAll("input[type=checkbox]"));
    var rows = Array.from(form.querySelectorAll(".plan-row"));
    function prices() {
      var kind = form.elements.kind;
      var of = kind.tagName === "SELECT" ? kind.selectedOptions[0] : kind;
      return JSON.parse(of.dataset.prices);
    }
    function say() {
      var chosen = boxes.filter(function (box) { return box.checked; });
      var per = prices(), total = 0, priced = true;
      chosen.forEach(function (box) {
        var price = per[box.closest(".plan-row").dataset.zone];
        if (price === undefined) priced = false; else total += price;
      });
      sum.textContent = chosen.length === 0 ? sum.dataset.none :
        chosen.map(function (box) { return box.ariaLabel.split(",")[0]; }).join(", ") + (priced ? " · " + money(total, form.dataset.currency) : "");
      sum.classList.toggle("seats-some", chosen.length > 0);
    }
    // A hall that is wider than the window is shown around the first seat that is chosen, or else from its middle.
    var hall = form.querySelector(".plan");
    var first = boxes.find(function (box) { return box.checked; });
    var middle = first ? center(first) - hall.getBoundingClientRect().left + hall.scrollLeft : hall.scrollWidth / 2;
    hall.scrollLeft = middle - hall.clientWidth / 2;

    form.addEventListener("change", say);
    window.addEventListener("pageshow", say);
    say();

    // One stop of the tab key for all seats.
    var here = boxes.find(function (box) { return box.checked; }) || boxes[0];
    boxes.forEach(function (box) { box.tabIndex = box === here ? 0 : -1; });
    form.addEventListener("focusin", function (event) {
      if (event.target.type !== "checkbox") return;
      here.tabIndex = -1;
      here = event.target;
      here.tabIndex = 0;
    });
    form.addEventListener("keydown", function (event) {
      if (event.target.type !== "checkbox") return;
      var to = null;
      if (event.key === "ArrowRight") to = boxes[boxes.indexOf(event.target) + 1];
      if (event.key === "ArrowLeft") to = boxes[boxes.indexOf(event.target) - 1];
      if (event.key === "ArrowDown") to = across(event.target, 1);
      if (event.key === "ArrowUp") to = across(event.target, -1);
      if (!to) return;
      event.preventDefault();
      to.focus();
    });
    function across(box, step) {
      var middle = center(box);
      for (var i = rows.indexOf(box.closest(".plan-row")) + step; i >= 0 && i < rows.length; i += step) {
        var there = Array.from(rows[i].querySelectorAll("input[type=checkbox]"));
        if (there.length > 0) {
          return there.reduce(function (a, b) { return Math.abs(center(b) - middle) < Math.abs(center(a) - middle) ? b : a; });
        }
      }
      return null;
    }
    function center(box) {
      var at = box.parentElement.getBoundingClientRect();
      return at.left + at.width / 2;
    }
  }

  function money(minor, currency) {
    var format = new Intl.NumberFormat(document.documentElement.lang, {style: "currency", currency: currency, currencyDisplay: "code"});
    return format.format(minor / Math.pow(10, format.resolvedOptions().maximumFractionDigits));
  }

  // A reservation: how long its hold lasts is what the server said, less what went by since. A machine that slept, or whose clock was
  // changed, asks again; so does a page that is shown again, and one that waits for money.
  function live(box) {
    if (!box) return;
    var stage = box.dataset.stage, tickets = box.dataset.tickets;
    var shown = document.getElementById("countdown");
    var ends = performance.now() + Number(box.dataset.seconds) * 1000, ticked = Date.now(), asking = false, gone = false;
    function left() { return Math.max(0, Math.ceil((ends - performance.now()) / 1000)); }
    function tell() {
      if (!shown) return;
      var seconds = left();
      shown.hidden = false;
      shown.classList.toggle("countdown-short", seconds < 120);
      shown.textContent = seconds === 0 ? shown.dataset.over :
        Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0") + " " + shown.dataset.left;
    }
    function ask() {
      if (asking || gone) return;
      asking = true;
      fetch(box.dataset.state, {cache: "no-store"}).then(function (answer) {
        if (!answer.ok) throw new Error(String(answer.status));
        return answer.json();
      }).then(function (now) {
        if (now.stage !== stage || String(now.tickets) !== tickets) {
          gone = true;
          location.reload();
          return;
        }
        ends = performance.now() + now.seconds * 1000;
        tell();
      }).catch(function () { /* asked again soon */ }).finally(function () { asking = false; });
    }
    var every = stage === "paying" || stage === "late" ? 3 : 30, beat = 0;
    tell();
    setInterval(function () {
      var slept = Math.abs(Date.now() - ticked - 1000) > 3000;
      ticked = Date.now();
      tell();
      beat++;
      if (slept || beat % every === 0 || (shown && left() === 0)) ask();
    }, 1000);
    document.addEventListener("visibilitychange", function () { if (!document.hidden) ask(); });
    window.addEventListener("pageshow", ask);
    window.addEventListener("online", ask);
  }
})();
