/** The demo storefront: search, cart and price list in three languages, and an example of how a website uses the client package. */
import { createClient } from "../../../client/src/client.js";
import { byId } from "../element.js";
import { Cart } from "./cart.js";
import { chosenLanguage, keepLanguage, textsIn } from "./language.js";
import { Prices } from "./prices.js";
import { Search } from "./search.js";
import type { Language, PageText, Texts } from "./texts/texts.js";

const client = createClient();
let texts = textsIn(chosenLanguage());

const live = byId("live", HTMLElement);
const say = (text: string): void => {
  live.textContent = text;
};
const prices = new Prices(texts);
const cart: Cart = new Cart({ client, prices, say, texts, changed: () => search.render(texts) });
const search = new Search({ client, prices, basket: cart, say, texts });

const switches = document.querySelectorAll<HTMLAnchorElement>("a[data-language]");
for (const link of switches) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const language = languageOf(link);
    keepLanguage(language);
    speak(textsIn(language));
  });
}

function languageOf(link: HTMLAnchorElement): Language {
  const { language } = link.dataset;
  return language === "fa" || language === "ps" ? language : "en";
}

function speak(chosen: Texts): void {
  texts = chosen;
  const root = document.documentElement;
  root.lang = texts.locale === "en" || texts.language === "ps" ? texts.language : texts.locale;
  root.dir = texts.direction;
  document.title = texts.page.title;
  for (const at of document.querySelectorAll<HTMLElement>("[data-text]"))
    at.textContent = textFor(at.dataset["text"]);
  for (const at of document.querySelectorAll<HTMLElement>("[data-label]"))
    at.setAttribute("aria-label", textFor(at.dataset["label"]));
  for (const link of switches) {
    if (languageOf(link) === texts.language) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  prices.render(texts);
  search.render(texts);
  cart.render(texts);
}

function textFor(key: string | undefined): string {
  if (key !== undefined && isPageText(key)) return texts.page[key];
  throw new Error(`the page names a text that there is not: ${String(key)}`);
}

function isPageText(key: string): key is PageText {
  return Object.hasOwn(texts.page, key);
}

speak(texts);
void prices.load(client, () => {
  search.render(texts);
  cart.render(texts);
});
