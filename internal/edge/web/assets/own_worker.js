// Keeps the pages of candidates that were opened on this device, with their styles, letter and calendar entry, so that they open without a
// network. Whenever there is a network it is asked first; what was kept is shown only when it does not answer, with the line of the page that
// says from when it is. It answers for nothing but what lies below /c/ and the styles of those pages.
"use strict";

const FORM = "usher-candidate-"; // no other cache is touched
const CACHE = FORM + "1"; // raised when what is kept gets another form: the older one is taken away
const MOST_PAGES = 8; // on a device that several people share, the page opened longest ago gives way
const PATIENCE = 10000; // milliseconds, until a network that says nothing counts as none

const PAGE = /^\/c\/[a-z2-7]+$/;
const FILE = /^\/c\/[a-z2-7]+\/[a-z]+\.(pdf|ics)$/;
const ASSET = /^\/assets\/[a-z._]+$/;

const ours = (address) => {
  const { origin, pathname } = new URL(address);
  return origin === self.location.origin && [PAGE, FILE, ASSET].some((form) => form.test(pathname)) ? pathname : null;
};

self.addEventListener("install", (event) => event.waitUntil(self.skipWaiting()));

self.addEventListener("activate", (event) => event.waitUntil((async () => {
  const old = (await caches.keys()).filter((name) => name.startsWith(FORM) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await self.clients.claim();
})()));

self.addEventListener("fetch", (event) => {
  const path = ours(event.request.url);
  if (path === null || event.request.method !== "GET") return;
  const asked = fetch(event.request);
  const kept = asked.then((response) => keep(path, response.clone()));
  event.waitUntil(kept.catch((why) => console.info("not kept", path, why)));
  event.respondWith(answer(path, asked));
});

self.addEventListener("message", (event) => {
  if (!event.data || !Array.isArray(event.data.keep)) return;
  event.waitUntil((async () => {
    const asked = event.data.keep.filter((address) => ours(address) !== null);
    const page = asked.map(ours).find((path) => PAGE.test(path));
    if (!page) return;
    const done = await Promise.all(asked.map(async (address) => keep(ours(address), await fetch(address))));
    const named = new Set(asked.map(ours));
    const cache = await caches.open(CACHE);
    for (const path of await pathsOf(cache)) { // a letter that the page no longer has
      if (path.startsWith(page + "/") && !named.has(path)) await cache.delete(path);
    }
    if (done.every(Boolean)) event.source.postMessage("kept");
  })().catch((why) => console.info("not kept", why)));
});

// answer gives what the network says, else what was kept.
async function answer(path, asked) {
  try {
    const response = await Promise.race([asked, patience()]);
    return response.status < 500 ? response : (await keptAt(path)) || response;
  } catch {
    return (await keptAt(path)) || asked;
  }
}

const patience = () => new Promise((_, late) => setTimeout(() => late(new Error("the network says nothing")), PATIENCE));

// keep holds on to an answer under its path, whatever stands behind it: the latest is the one that is shown. It tells whether it did. A page
// that there is no more is forgotten with its files.
async function keep(path, response) {
  const cache = await caches.open(CACHE);
  if (response.status === 200 && response.type === "basic" && !response.redirected) {
    await cache.put(path, response);
    if (PAGE.test(path)) await makeRoom(cache);
    return true;
  }
  if (response.status >= 400 && response.status < 500 && response.status !== 429 && !ASSET.test(path)) await forget(cache, path);
  return false;
}

const pathsOf = async (cache) => (await cache.keys()).map((request) => new URL(request.url).pathname);

async function forget(cache, path) {
  const gone = (await pathsOf(cache)).filter((kept) => kept === path || kept.startsWith(path + "/"));
  await Promise.all(gone.map((kept) => cache.delete(kept)));
}

async function makeRoom(cache) {
  const pages = (await pathsOf(cache)).filter((path) => PAGE.test(path));
  for (const path of pages.slice(0, Math.max(0, pages.length - MOST_PAGES))) await forget(cache, path);
}

// keptAt is what was kept; a page then says so.
async function keptAt(path) {
  const response = await (await caches.open(CACHE)).match(path);
  if (!response || !PAGE.test(path)) return response;
  const text = (await response.text()).replace('id="kept" hidden', 'id="kept"');
  return new Response(text, { status: 200, headers: response.headers });
}
