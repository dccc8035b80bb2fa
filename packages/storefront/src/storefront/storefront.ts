/** The demo storefront: search, cart and price list in three languages, and an example of how a website uses the client package. */
import { createClient } from "../../../client/src/client.js";
import { Cart } from "./cart.js";
import { CartView } from "./cart-view.js";
import { showIdentity } from "./identity.js";
import { chosenLanguage, speakIn, textsIn } from "./language.js";
import { Prices } from "./prices.js";
import { Results } from "./results.js";
import { Search } from "./search.js";
import { say } from "./say.js";
import { store, takeFromAddress } from "./session.js";

const [linkedName = null, linkedLanguage = null] = takeFromAddress("q", "lang");
const client = createClient();
let texts = textsIn(chosenLanguage(linkedLanguage));

const prices = new Prices(client, texts, () => {
  cart.listChanged();
  render();
});
const cart: Cart = new Cart(client, prices, (change) => {
  cartView.changed(change);
  if (change.kind === "prices" || change.kind === "names") search.learn(cart.confirmed?.quotes.items ?? []);
  search.render(texts);
});
const results = new Results(prices, cart);
const cartView = new CartView(cart, prices, texts);
const search = new Search(client, results, texts);

const switches = document.querySelectorAll<HTMLAnchorElement>("a[data-language]");
for (const link of switches) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    texts = textsIn(chosenLanguage(link.dataset["language"] ?? null));
    store("language", texts.language);
    // What was announced is in the other language.
    say("");
    render();
  });
}
// A key that is held down presses a button once: meanwhile the next step may have taken its place.
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.repeat) event.preventDefault();
});
if (linkedLanguage !== null) store("language", texts.language);

function render(): void {
  speakIn(texts);
  showIdentity(texts);
  for (const link of switches) {
    if (link.dataset["language"] === texts.language) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  prices.render(texts);
  cartView.render(texts);
  search.render(texts);
}

render();
search.begin(linkedName);
void prices.keepCurrent();
