// What is typed takes the place of the amount that is proposed.
document.addEventListener("DOMContentLoaded", function () {
  var amount = document.getElementById("amount");
  if (amount && document.activeElement === amount) amount.select();
});

// A receipt that was asked for is printed as soon as it stands on the page; then the next person may be typed.
document.addEventListener("htmx:afterSwap", function () {
  if (!document.getElementById("slip")) return;
  window.print();
  document.getElementById("q").focus();
});

// What goes wrong is said on a page of its own: the form is sent as it is without this script.
document.addEventListener("htmx:responseError", function (event) {
  if (event.detail.elt.tagName === "FORM") event.detail.elt.submit();
});
