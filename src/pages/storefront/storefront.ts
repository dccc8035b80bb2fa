/** The demo storefront. */
document.documentElement.classList.add("scripted");
