// A table that is wider than its place scrolls: let keys reach it, too. The theme wraps tables after the page is there.
(() => {
  const reach = () => {
    for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
      one.tabIndex = 0;
      one.setAttribute("role", "region");
      one.setAttribute("aria-label", "Table");
    }
  };
  new MutationObserver(reach).observe(document.documentElement, { childList: true, subtree: true });
  reach();
})();
