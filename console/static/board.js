// The live board: sets widths and figures from /live/board, fetches what changed shape, says when it is old.
// Words, addresses and the time zone stand on #board-live; the message format in console/board/__init__.py.
(() => {
  const root = document.getElementById("board-live");
  const live = document.getElementById("gk-live");
  if (!root || !live) return;
  const words = root.dataset;
  const SILENT_MS = 8000, POLL_MS = 5000, RETRY_MS = 2000;
  const clock = new Intl.DateTimeFormat("zh-CN", { timeZone: words.zone, hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const $ = (selector, from) => (from || document).querySelector(selector);
  let version = 0, at = Number($("#board").dataset.at), fresh = performance.now(), off = false, socket = null;
  let opened = "";  // id of the tile whose drawer is open
  const drawer = document.getElementById("gk-drawer");
  const pending = new Map();  // target → it changed again while its answer was on the way
  const shapes = new Map();  // of every card of the scope: with a filter on, a change of shape may bring or take a tile
  if ("wall" in words) document.documentElement.dataset.wall = "";

  // htmx swaps finished partials. Each part is its own source: of two requests of one source htmx drops the older.
  function fetchPart(url, target) {
    if (pending.has(target)) { pending.set(target, true); return; }
    if (!$(target)) return;
    pending.set(target, false);
    const done = () => { const again = pending.get(target); pending.delete(target); marks(); tick(); if (again) fetchPart(url, target); };
    htmx.ajax("GET", url, { source: target, target, swap: "outerHTML" }).then(done, done);
  }
  const fetchTile = (id) => fetchPart(words.tile.replace("/0", `/${id}`), `#card-${id}`);
  const fetchAll = () => fetchPart(words.hosts, "#board");

  function setText(node, text) { if (node && node.textContent !== text) node.textContent = text; }

  function setKeys(keys) {
    for (const [name, value, unit, detail, bad] of keys) {
      const key = $(`[data-key="${name}"]`);
      if (!key) continue;
      key.classList.toggle("is-bad", bad);
      setText($(".v span", key), value); setText($(".v small", key), unit); setText($(".d", key), detail);
    }
  }

  function setCounts(states) {
    for (const [name, count] of Object.entries(states)) {
      const node = $(`[data-count="${name}"]`);
      setText(node, String(count)); if (name === "pressure") node?.classList.toggle("gk-bad", count > 0);
    }
  }

  function setBar(bar, sizes) {
    const parts = bar ? [...bar.querySelectorAll("i")] : [];
    if (parts.length !== sizes.length) return false;
    parts.forEach((part, i) => part.style.setProperty("--m", sizes[i]));
    bar.querySelectorAll(".gk-rep").forEach((rep) => {
      rep.style.setProperty("--m", [...rep.children].reduce((sum, part) => sum + Number(part.style.getPropertyValue("--m")), 0));
    });
    return true;
  }

  function setCard(id, card) {
    const tile = document.getElementById(`card-${id}`);
    if (!tile) return;
    const bar = $(".gk-bar", tile), open = opened === tile.id;
    if (tile.dataset.shape !== card.h || !setBar(bar, card.m)) {
      fetchTile(id);
      if (open) fetchDrawer(tile);
      return;
    }
    if (open) setBar($(".gk-bar", drawer), card.m);
    setText($(".u", tile), card.u === null ? "—" : (card.u / 1024).toFixed(1));
    const load = card.l === null ? "—" : `${card.l}%`;
    if ($(".lp", tile)) setText($(".lp", tile), words.load.replace("%s", load));
    if ($(".p9", tile)) setText($(".p9", tile), card.p === null ? "" : `${card.p.toLocaleString("en")} ms`);
    $(".gk-load i", tile).style.setProperty("--p", card.l === null ? "0%" : load);
    for (const [replica, , phase, flying, progress] of card.r) {
      const doing = $(`[data-replica="${replica}"]`, tile);
      if (doing && !$(".gk-warn", doing)) setText(doing, flying === null ? "—" : flying ? words.flying.replace("%s", flying) : words.idle);
      if (phase !== "starting" || progress === null) continue;
      const text = `${Math.round(progress * 100)}%`;
      tile.querySelectorAll(`[data-progress="${replica}"]`).forEach((node) => setText(node, text));
      const index = card.r.filter((one) => one[2] === "starting").findIndex((one) => one[0] === replica);
      bar.querySelectorAll(".s-load")[index]?.style.setProperty("--p", text);
    }
  }

  // P99 of the last five minutes as a line: what a figure that changes every ten seconds does not show.
  const STEP_MS = 10000, STEPS_KEPT = 30, lines = new Map();
  function sparks() {
    for (const tile of document.querySelectorAll("#board .gk-tile")) {
      const ms = Number($(".p9", tile)?.textContent.replace(/[^0-9]/g, "")) || null, past = lines.get(tile.id) || [];
      lines.set(tile.id, [...past, ms].slice(-STEPS_KEPT));
      const known = lines.get(tile.id).map((y, i) => [i, y]).filter((point) => point[1] !== null), most = Math.max(...known.map((point) => point[1]));
      $(".gk-spark polyline", tile)?.setAttribute("points", known.map(([i, y]) => `${(60 * i) / (STEPS_KEPT - 1)},${(13 - (12 * y) / most).toFixed(1)}`).join(" "));
    }
  }

  function take(message, polled) {
    if (message.t !== "board") return;
    const gap = !polled && !message.whole && version && message.v !== version + 1;
    if (!polled) version = message.v;
    if (message.at > at || !polled) { at = Math.max(at, message.at); fresh = performance.now(); }
    tick();
    if (gap || message.layout !== $("#board").dataset.layout) { fetchAll(); return; }
    setKeys(message.keys);
    const first = !shapes.size;  // what changed while the page was on its way moved for nobody here
    const moved = Object.entries(message.cards).filter(([id, card]) => shapes.has(id) && shapes.get(id) !== card.h);
    for (const [id, card] of Object.entries(message.cards)) shapes.set(id, card.h);
    if ("narrow" in words) { if (first || moved.length) fetchAll(); } else setCounts(message.states);
    for (const [id, card] of Object.entries(message.cards)) setCard(id, card);
  }

  // Clock, countdowns and ages run by the server's time: its last word plus what has passed here since.
  function tick() {
    const silent = performance.now() - fresh;
    off = silent > SILENT_MS;
    live.classList.toggle("off", off);
    const shown = clock.format(new Date(at * 1000));
    setText(live, off ? words.off.replace("%s", shown) : shown);
    const now = at + silent / 1000;
    document.querySelectorAll("[data-until]").forEach((node) => {
      const left = Math.max(0, Math.round(Number(node.dataset.until) - now));
      setText(node, `${String(Math.floor(left / 60)).padStart(2, "0")}:${String(left % 60).padStart(2, "0")}`);
    });
    document.querySelectorAll("[data-since]").forEach((node) => {
      const s = Math.max(0, Math.round(now - Number(node.dataset.since)));
      setText(node, words.ago.replace("%s", s < 120 ? words.s.replace("%s", s) : s < 7200 ? words.min.replace("%s", Math.round(s / 60)) : words.h.replace("%s", Math.round(s / 3600))));
    });
  }

  function connect() {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${words.socket}`);
    socket.onmessage = (event) => take(JSON.parse(event.data), false);
    socket.onclose = (event) => {
      socket = null; version = 0;
      if (event.code === 4401) location.reload(); else setTimeout(connect, RETRY_MS);
    };
  }

  async function poll() {
    if (socket && socket.readyState === WebSocket.OPEN && !off) return;
    try {
      const answer = await fetch(words.numbers, { headers: { "HX-Request": "true" } });
      if (answer.status === 401) location.reload(); else if (answer.ok) take(await answer.json(), true);
    } catch { /* the clock line says it already */ }
  }

  // The drawer stays open beside the moving board; its tile wears the ring, and gets the focus back.
  function fetchDrawer(tile) {
    htmx.ajax("GET", $("a", tile).getAttribute("href"), { target: "#gk-drawer", swap: "innerHTML", source: $("a", tile) });
  }
  function marks() { if (opened) document.getElementById(opened)?.classList.add("on"); }
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target !== drawer) return;
    document.querySelectorAll("article.on").forEach((tile) => tile.classList.remove("on"));
    const from = event.detail.requestConfig.elt.closest("article");
    if (!from) return;
    opened = from.id;
    marks(); tick();
    tabler.Offcanvas.getOrCreateInstance(drawer).show();
  });
  // Arrows go from tile to tile as they lie on the screen; Enter is the link's own; Escape closes the drawer.
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function neighbour(tile, [dx, dy]) {
    const here = tile.getBoundingClientRect();
    let best = null, least = Infinity;
    for (const other of document.querySelectorAll("#board article")) {
      const there = other.getBoundingClientRect(), x = there.left - here.left, y = there.top - here.top;
      const along = dx * x + dy * y, aside = Math.abs(dx ? y : x);
      if (along > 4 && along + 3 * aside < least) { best = other; least = along + 3 * aside; }
    }
    return best;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opened) tabler.Offcanvas.getOrCreateInstance(drawer).hide();
    const tile = STEPS[event.key] && document.activeElement.closest("#board article");
    if (!tile) return;
    event.preventDefault();
    neighbour(tile, STEPS[event.key])?.querySelector("a").focus();
  });
  document.addEventListener("change", (event) => event.target.closest("select") && event.target.form?.matches("[data-auto]") && event.target.form.requestSubmit());
  drawer.addEventListener("hidden.bs.offcanvas", () => {
    const tile = document.getElementById(opened);
    opened = "";
    tile?.classList.remove("on"); tile?.querySelector("a")?.focus();
  });

  connect(); tick();
  setInterval(tick, 1000); setInterval(poll, POLL_MS); setInterval(sparks, STEP_MS);
})();
