// Before the page is drawn: the theme that was chosen here, if any.
(() => {
  try {
    const theme = localStorage.getItem("labmates-theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // A browser that keeps nothing has the theme of its system.
  }
  document.documentElement.classList.add("scripted");
})();
