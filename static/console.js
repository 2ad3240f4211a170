// What the console adds to its pages: everything works without this file, only less smoothly.
(() => {
  "use strict";

  const root = document.documentElement;
  root.classList.add("js");
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // --- Times: told by the server's clock, so that no age is ever negative ------------------------

  let offset = Date.parse(document.querySelector('meta[name="server-time"]').content) - Date.now();
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  function span(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    for (const [index, [size, unit]] of UNITS.entries()) {
      if (whole < size) continue;
      let text = `${Math.floor(whole / size).toLocaleString("en")} ${unit}`;
      const smaller = UNITS[index + 1];
      if (smaller && unit !== "min") {
        const rest = Math.floor((whole % size) / smaller[0]);
        if (rest) text += ` ${rest} ${smaller[1]}`;
      }
      return text;
    }
    return "0 s";
  }

  function relative(seconds) {
    if (Math.abs(seconds) < 1) return "just now";
    return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
  }

  function tick() {
    const now = Date.now() + offset;
    for (const time of all("time[data-relative], time[data-since]")) {
      const seconds = (now - Date.parse(time.dateTime)) / 1000;
      const text = "since" in time.dataset ? span(seconds) : relative(seconds);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // --- The live connection and its mark ----------------------------------------------------------

  const SILENT_SECONDS = 40;
  const RETRY_MILLISECONDS = 3000;
  const live = byId("live");
  let stream = byId("stream");
  let place = null;
  let paused = false;
  let heardAt = Date.now();
  let retry = null;

  function mark(state, text) {
    if (!live) return;
    live.hidden = false;
    if (live.dataset.mark === state && state !== "stale") return;
    live.dataset.mark = state;
    live.querySelector(".live-text").textContent = text;
    live.querySelector("[data-pause]").textContent = paused ? "Resume" : "Pause";
  }

  function disconnect() {
    clearTimeout(retry);
    const connection = stream._htmx?.sse;
    place = connection?.lastEventId || place;
    stream.remove();
    connection?.reader?.cancel();
  }

  // A new element asks from the place the old one had reached: nothing is missed, nothing comes twice.
  function connect() {
    const next = stream.cloneNode(false);
    next.removeAttribute("data-htmx-powered");
    if (place) {
      const address = new URL(next.getAttribute("hx-sse:connect"), location.href);
      address.searchParams.set("after", place);
      next.setAttribute("hx-sse:connect", address.pathname + address.search);
    }
    stream = next;
    document.body.append(stream);
    listen(stream);
    htmx.process(stream);
  }

  function reconnectSoon() {
    mark("gone", "Not connected; trying again");
    if (paused) return;
    clearTimeout(retry);
    retry = setTimeout(() => { disconnect(); connect(); }, RETRY_MILLISECONDS);
  }

  function togglePause() {
    if (!stream || !live) return;
    paused = !paused;
    if (paused) {
      disconnect();
      mark("paused", "Paused");
    } else {
      mark("off", "Connecting");
      connect();
    }
  }

  function heard() {
    heardAt = Date.now();
    if (!paused) mark("live", "Live");
  }

  function listen(element) {
    element.addEventListener("htmx:sse:after:connection", heard);
    element.addEventListener("htmx:sse:before:message", heard);
    element.addEventListener("htmx:sse:error", () => mark("gone", "Not connected; trying again"));
    element.addEventListener("htmx:error", () => { if (!element._htmx?.sse) reconnectSoon(); });
    element.addEventListener("pulse", (event) => {
      offset = Date.parse(event.detail.data) - Date.now();
    });
    element.addEventListener("gone", (event) => {
      notice(`Rows before ${event.detail.data} are no longer kept.`);
    });
    element.addEventListener("htmx:before:swap", beforeSwap);
    element.addEventListener("htmx:after:swap", afterSwap);
  }

  function watch() {
    const silent = (Date.now() - heardAt) / 1000;
    if (stream && !paused && live?.dataset.mark !== "gone" && silent > SILENT_SECONDS && !document.hidden) {
      mark("stale", `Nothing heard for ${span(silent)}`);
    }
  }

  // --- Live rows: each once, none under the pointer, no more than the table keeps ----------------

  const table = document.querySelector("[data-live-table]");
  const rows = byId("rows");
  const heldRows = [];
  let pill = null;

  function reading() {
    if (!table) return false;
    const selection = getSelection();
    return table.matches(":hover") || (selection.type === "Range" && table.contains(selection.anchorNode));
  }

  function beforeSwap(event) {
    const { ctx, tasks } = event.detail;
    if (!ctx.response?.raw?.headers.get("Content-Type")?.includes("text/event-stream")) {
      event.preventDefault();
      reconnectSoon();
      return;
    }
    for (const task of tasks.filter((one) => one.type === "main")) {
      const fresh = [...task.fragment.children];
      if (!fresh.length) continue;
      if (table && reading()) {
        tasks.splice(tasks.indexOf(task), 1);
        heldRows.push(...fresh);
        showPill();
      } else {
        for (const row of fresh) byId(row.id)?.remove();
      }
    }
    const changed = tasks.filter((task) => /^#state-/.test(task.target?.id ? `#${task.target.id}` : ""));
    if (changed.length) showChanged();
  }

  function afterSwap() {
    tick();
    trim();
  }

  function trim() {
    if (!table || !rows) return;
    const keep = Number(table.dataset.keep);
    while (rows.children.length > keep) rows.lastElementChild.remove();
    if (rows.children.length) document.querySelector("[data-when-empty]")?.remove();
  }

  function showPill() {
    const keep = Number(table.dataset.keep);
    if (heldRows.length > keep) heldRows.splice(0, heldRows.length - keep);
    if (!pill) {
      pill = document.createElement("button");
      pill.type = "button";
      pill.className = "held";
      pill.addEventListener("click", release);
      table.before(pill);
    }
    const count = heldRows.length;
    pill.textContent = `${count} new ${count === 1 ? "row" : "rows"}${count === keep ? " or more" : ""}`;
  }

  function release() {
    for (const row of heldRows.splice(0)) {
      byId(row.id)?.remove();
      rows.prepend(row);
    }
    pill?.remove();
    pill = null;
    trim();
  }

  function showChanged() {
    const link = document.querySelector("[data-changed]");
    if (link) {
      link.hidden = false;
      link.textContent = "Jobs on this page have moved: reload";
    }
  }

  function notice(text) {
    const line = document.createElement("p");
    line.className = "message refused";
    line.setAttribute("role", "status");
    line.textContent = text;
    document.querySelector(".top").after(line);
  }

  // --- Rows by keyboard, selection ---------------------------------------------------------------

  function move(step) {
    const list = all("[data-rows] tbody tr");
    if (!list.length) return;
    const current = list.findIndex((row) => "here" in row.dataset);
    const next = list[Math.min(list.length - 1, Math.max(0, current + step))];
    if (current >= 0) delete list[current].dataset.here;
    next.dataset.here = "";
    next.scrollIntoView({ block: "nearest" });
    next.querySelector("a")?.focus({ preventScroll: true });
  }

  const hereRow = () => document.querySelector("[data-rows] tr[data-here]");
  const form = document.querySelector("[data-selection]");
  const boxes = () => all('input[name="job"]', form);

  function showSelection() {
    const count = boxes().filter((box) => box.checked).length;
    form.querySelector("[data-selected]").textContent = count ? `${count} selected` : "Tick rows to act on them.";
    for (const button of all("[data-act]", form)) {
      if (!button.dataset.refused) button.disabled = count === 0;
    }
    const everything = form.querySelector("[data-all]");
    everything.checked = count > 0 && count === boxes().length;
    everything.indeterminate = count > 0 && count < boxes().length;
  }

  function setUpSelection() {
    let lastBox = null;
    for (const button of all("[data-act][disabled]", form)) button.dataset.refused = "yes";
    form.addEventListener("click", (event) => {
      const box = event.target;
      if (box.name !== "job") return;
      if (event.shiftKey && lastBox) {
        const list = boxes();
        const [from, to] = [list.indexOf(lastBox), list.indexOf(box)].sort((a, b) => a - b);
        for (const one of list.slice(from, to + 1)) one.checked = box.checked;
      }
      lastBox = box;
    });
    form.addEventListener("change", (event) => {
      if ("all" in event.target.dataset) for (const box of boxes()) box.checked = event.target.checked;
      showSelection();
    });
    if (form.querySelector("[data-all]")) showSelection();
  }

  // --- Keys: none of them changes anything but the view ------------------------------------------

  let goPressedAt = 0;

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, dialog, [contenteditable]") && event.target.type !== "checkbox") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (Date.now() - goPressedAt < 1200) {
      goPressedAt = 0;
      const target = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (target) { event.preventDefault(); target.click(); }
      return;
    }
    const action = {
      "/": () => document.querySelector("[data-search]")?.focus(),
      "?": () => byId("help").showModal(),
      g: () => { goPressedAt = Date.now(); },
      j: () => move(1),
      k: () => move(-1),
      x: () => hereRow()?.querySelector('input[type="checkbox"]')?.click(),
      r: togglePause,
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const area = document.createElement("textarea");
      area.value = button.dataset.copy;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1200);
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("copy" in button.dataset) copy(button);
    if ("pause" in button.dataset) togglePause();
    if ("help" in button.dataset) byId("help").showModal();
  });
  table?.addEventListener("mouseleave", () => { if (heldRows.length && !reading()) release(); });
  if (form) setUpSelection();
  // On a phone the pages are one row that scrolls: the current one is brought into sight.
  const current = document.querySelector("#nav [aria-current]");
  if (current) current.closest(".rail").scrollLeft = current.offsetLeft - root.clientWidth / 3;
  if (stream) {
    mark("off", "Connecting");
    listen(stream);
  }
  tick();
  setInterval(() => { tick(); watch(); }, 1000);
})();
