// Loaded before the styles: the theme of the cookie (rendered by the server) or of the system, without a flash.
(() => {
  const root = document.documentElement;
  if (!root.dataset.bsTheme) root.dataset.bsTheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-gk]");
    if (!button) return;
    if (button.dataset.gk === "menu") {
      button.setAttribute("aria-expanded", document.getElementById("gk-nav").classList.toggle("open"));
    } else if (button.dataset.gk === "theme") {
      root.dataset.bsTheme = root.dataset.bsTheme === "dark" ? "light" : "dark";
      document.cookie = `gongka_theme=${root.dataset.bsTheme}; path=/; max-age=31536000; samesite=lax`;
    } else if (button.dataset.gk === "copy") {
      copy(document.getElementById(button.dataset.from)).then(() => { button.textContent = button.dataset.done; });
    }
  });
  // Without https there is no clipboard to write to: then the text is selected, one key away from copied.
  async function copy(node) {
    if (navigator.clipboard) return navigator.clipboard.writeText(node.textContent);
    getSelection().selectAllChildren(node);
    if (!document.execCommand("copy")) throw new Error("select and copy by hand");
  }
  addEventListener("keydown", (event) => {
    const box = document.getElementById("gk-q"), busy = event.target.closest && event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key === "/" && box && !busy && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); box.focus(); box.select(); }
    if (event.key === "Escape") document.querySelectorAll("details.gk-me[open]").forEach((menu) => { menu.open = false; });
  });
})();
