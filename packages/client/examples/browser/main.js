// @ts-check
/** A search box and a cart without a framework: from a word to a signed cart, which the form posts to the checkout. */
import { createCart, createClient, searchAsYouType } from "af-storefront-client";

const client = createClient({ baseUrl: "https://names.example.af" });
const search = searchAsYouType(client, { onChange: showSearch });
const cart = createCart(client);

const query = found("query", HTMLInputElement);
const checkout = found("checkout", HTMLFormElement);
const results = found("results", HTMLElement);
const notice = found("status", HTMLElement);

query.addEventListener("input", () => search.type({ q: query.value }));
document.getElementById("search")?.addEventListener("submit", (event) => {
  event.preventDefault();
  search.search({ q: query.value });
});
checkout.addEventListener("submit", (event) => {
  event.preventDefault();
  void order();
});

async function order() {
  const promise = await cart.confirm();
  if (promise === null) {
    notice.textContent = cart.state.problem?.message ?? "None of these names can be ordered right now.";
    return;
  }
  const field = checkout.querySelector("input");
  if (field) field.value = promise;
  checkout.submit();
}

/** @param {import("af-storefront-client").SearchState} state */
function showSearch({ phase, results: names, problem }) {
  notice.textContent = problem?.message ?? phase;
  results.replaceChildren(
    ...names.map(({ domain, unicodeName, status, price }) => {
      const item = document.createElement("li");
      item.textContent = `${unicodeName}: ${price ? `${price.amount} ${price.currency}` : status} `;
      if (price) {
        const add = document.createElement("button");
        add.textContent = "Add to cart";
        add.addEventListener("click", () => {
          cart.add({ domain, action: "registration" });
          checkout.querySelector("button")?.removeAttribute("disabled");
        });
        item.append(add);
      }
      return item;
    }),
  );
}

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 */
function found(id, kind) {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`the page has no ${id}`);
}
