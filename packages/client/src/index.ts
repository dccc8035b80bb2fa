/** The package's public interface. */
export { type Cart, type CartState, createCart, MOST_ITEMS, type SavedCart } from "./cart.js";
export * from "./client.js";
export { now } from "./clock.js";
export {
  type NameQuery,
  searchAsYouType,
  type SearchAsYouTypeSettings,
  type SearchState,
  type TypedSearch,
} from "./search-as-you-type.js";
