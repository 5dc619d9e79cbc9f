// Apply the saved theme before the first paint.
(() => {
  try {
    const theme = localStorage.getItem("labmates-theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, the system's theme applies.
  }
  document.documentElement.classList.add("scripted");
})();
