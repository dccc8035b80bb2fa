/** The operator page. */
document.documentElement.classList.add("scripted");
