// The only script of `memd view`: exchanges the token for a key, fetches pages with it, sends forms.
"use strict";

const page = document.getElementById("page");
const notice = document.getElementById("notice");
const shared = "BroadcastChannel" in window ? new BroadcastChannel("memd") : null;
let asked = 0; // the number of the latest request of a page: an older answer is dropped
let retry = null;

const key = () => sessionStorage.getItem("key") || "";

// ── The key ────────────────────────────────────────────────────────────────────────────────────

async function exchange(token) {
  const reply = await fetch("/key", { method: "POST", body: JSON.stringify({ token }) });
  if (!reply.ok) return false;
  sessionStorage.setItem("key", (await reply.json()).key);
  return true;
}

// Another tab of this server may have a key: pages of one origin are one reader.
function askOtherTabs() {
  return new Promise((resolve) => {
    if (!shared) return resolve(false);
    const timer = setTimeout(() => resolve(false), 300);
    shared.addEventListener("message", (event) => {
      if (!event.data.key || key()) return;
      clearTimeout(timer);
      sessionStorage.setItem("key", event.data.key);
      resolve(true);
    });
    shared.postMessage({ wanted: true });
  });
}

if (shared) {
  shared.addEventListener("message", (event) => {
    if (event.data.wanted && key()) shared.postMessage({ key: key() });
  });
}

async function begin() {
  const found = location.hash.match(/^#token=([\w-]+)$/);
  if (found) {
    history.replaceState(null, "", location.pathname + location.search);
    if (!(await exchange(found[1])) && !key()) return showLocked("This link was used already. If it was not you, end memd view with Ctrl-C.");
  }
  if (!key() && !(await askOtherTabs())) return showLocked("This page has no key.");
  await show(location.pathname + location.search, { scroll: 0, focus: false });
}

function showLocked(words) {
  sessionStorage.removeItem("key");
  const main = element("main", "", { id: "content" });
  main.append(
    element("h1", "Locked"),
    element("p", words),
    element("p", "Press Enter in the terminal in which memd view runs: it prints a new link. Or start memd view again."),
  );
  page.replaceChildren(main);
  page.removeAttribute("aria-busy");
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

// ── Pages ──────────────────────────────────────────────────────────────────────────────────────

async function get(path, again = false) {
  const headers = { "Memd-Key": key() };
  if (again) headers["Memd-Retry"] = "1";
  return fetch("/_" + path, { headers });
}

async function show(path, { scroll = 0, focus = true, again = false, only = null } = {}) {
  const number = ++asked;
  clearTimeout(retry);
  page.setAttribute("aria-busy", "true");
  let reply, answer;
  try {
    reply = await get(path, again);
    if (reply.status === 401) return showLocked("The key of this page is of an earlier memd view.");
    answer = await reply.json().catch(() => null);
  } catch {
    if (number === asked) showGone(path);
    return;
  }
  if (!answer) {
    page.removeAttribute("aria-busy");
    return say("memd view could not make this page; its terminal says why.", true);
  }
  if (number !== asked) return;
  page.removeAttribute("aria-busy");
  const fresh = new DOMParser().parseFromString(answer.html, "text/html");
  const part = only && fresh.querySelector(only);
  const place = only && page.querySelector(only);
  if (part && place) place.replaceWith(part);
  else if (!again || reply.ok) page.replaceChildren(...fresh.body.childNodes);
  document.title = answer.title;
  if (!part && reply.ok) {
    scrollTo(0, scroll);
    showWhere();
    const field = page.querySelector("[data-focus]");
    if (field) field.focus();
    else if (focus) page.querySelector("h1")?.focus({ preventScroll: true });
  }
  if (reply.status === 503) retry = setTimeout(() => show(path, { again: true, focus: false }), 2000);
  for (const waiting of page.querySelectorAll("[data-load]")) load(waiting);
}

function showGone(path) {
  page.removeAttribute("aria-busy");
  say("memd view has ended. Start it again and open its new link.", true);
  retry = setTimeout(() => show(path, { again: true, focus: false }), 5000);
}

async function load(waiting) {
  const path = waiting.dataset.load;
  delete waiting.dataset.load;
  try {
    const answer = await (await get(path)).json();
    if (answer.error) waiting.textContent = answer.error;
    else waiting.replaceChildren(...new DOMParser().parseFromString(answer.html, "text/html").body.childNodes);
  } catch {
    waiting.textContent = "";
  }
}

function go(path, { replace = false } = {}) {
  history.replaceState({ scroll: scrollY }, "");
  history[replace ? "replaceState" : "pushState"]({ scroll: 0 }, "", path);
  hush();
  return show(path);
}

function say(words, bad = false) {
  notice.textContent = words;
  notice.classList.toggle("bad", bad);
  notice.hidden = false;
}

function hush() {
  notice.hidden = true;
}

// The head scrolls on a narrow page: show the link of this page, and that there are more.
function showWhere() {
  page.querySelector(".head nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  markMore();
}

function markMore() {
  const nav = page.querySelector(".head nav");
  nav?.classList.toggle("more", nav.scrollLeft + nav.clientWidth < nav.scrollWidth - 4);
  nav?.classList.toggle("before", nav.scrollLeft > 4);
}

addEventListener("resize", markMore);
document.addEventListener("scroll", markMore, { capture: true, passive: true });

async function save(button) {
  button.disabled = true;
  try {
    const reply = await get(button.dataset.save);
    const answer = await reply.json();
    if (!reply.ok) return say(answer.error, true);
    const file = URL.createObjectURL(new Blob([answer.html], { type: "text/html" }));
    const link = element("a", "", { href: file, download: button.dataset.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(file), 10_000);
    say(`Saved as ${button.dataset.name}.`);
  } catch {
    say("memd view could not write this file.", true);
  } finally {
    button.disabled = false;
  }
}

// ── What people do ─────────────────────────────────────────────────────────────────────────────

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-save]");
  if (button) return save(button);
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const path = link.getAttribute("href");
  if (path.startsWith("#")) {
    event.preventDefault();
    const place = document.getElementById(path.slice(1));
    if (place) {
      place.tabIndex = -1;
      place.focus();
    }
  } else if (path.startsWith("/")) {
    event.preventDefault();
    go(path);
  }
});

// A key presses the first button that it stands for, unless something is being written.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, textarea, select")) return;
  if (!/^[a-z]$/.test(event.key)) return;
  page.querySelector(`[data-key="${event.key}"]`)?.click();
});

addEventListener("popstate", (event) => show(location.pathname + location.search, { scroll: event.state?.scroll || 0 }));

document.addEventListener("change", (event) => {
  const choice = event.target.closest("select[data-choose]");
  if (!choice) return;
  const to = new URL(choice.selectedOptions[0].dataset.go, location);
  if (to.pathname === location.pathname) {
    // The same question, or the same time, of another project.
    for (const [name, value] of new URLSearchParams(location.search)) {
      if (!["project", "page", "after"].includes(name)) to.searchParams.append(name, value);
    }
  }
  go(to.pathname + to.search);
});

function address(form, path) {
  const given = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) given.append(name, value);
  const text = given.toString();
  return text ? `${path}?${text}` : path;
}

let typing = null;
function search(form) {
  const path = address(form, form.dataset.live);
  history.replaceState({ scroll: 0 }, "", path);
  show(path, { only: "#results", focus: false });
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => search(form), 180);
});

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.live) {
    clearTimeout(typing);
    return search(form);
  }
  if (form.dataset.visit) return go(address(form, form.dataset.visit));
  if (form.dataset.act) return act(form);
});

async function act(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  hush();
  try {
    const reply = await fetch(form.dataset.act + location.search, {
      method: "POST",
      headers: { "Memd-Key": key(), "Content-Type": "application/json" },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    });
    const answer = await reply.json().catch(() => ({ error: "memd view refused this." }));
    if (!reply.ok) return say(answer.error, true);
    if (answer.html) {
      const place = document.getElementById("outcome");
      place.replaceChildren(...new DOMParser().parseFromString(answer.html, "text/html").body.childNodes);
      return;
    }
    await go(answer.go, { replace: true });
    say(answer.say);
  } catch {
    say("memd view has ended. Start it again and open its new link.", true);
  } finally {
    button.disabled = false;
  }
}

// `/` goes to the search, `?` lists the keys; j and k, or the arrows, walk through a list, from the search field too.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.getElementById("q");
  const rows = [...page.querySelectorAll(".memory .title, .event a[dir], .call summary")];
  const at = rows.indexOf(document.activeElement);
  const isInField = field && event.target === field;
  if (event.target.closest("input, textarea, select") && !(isInField && event.key === "ArrowDown")) return;
  if (event.key === "/") {
    event.preventDefault();
    if (field) field.focus();
    else go(document.querySelector("nav a[href^='/search']").getAttribute("href"));
  } else if (event.key === "?") {
    const keys = document.getElementById("keys");
    if (!keys.open) keys.showModal();
  } else if (event.key === "j" || (event.key === "ArrowDown" && (isInField || at >= 0))) {
    move(event, rows[at + 1]);
  } else if (event.key === "k" || (event.key === "ArrowUp" && at >= 0)) {
    move(event, rows[at - 1] || field);
  }
});

function move(event, place) {
  if (!place) return;
  event.preventDefault();
  place.focus();
}

begin();
