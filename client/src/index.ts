/** Everything that the package offers. */
export * from "./client.js";
export {
  type NameQuery,
  searchAsYouType,
  type SearchAsYouTypeSettings,
  type SearchState,
  type TypedSearch,
} from "./search-as-you-type.js";
