/** The project's folder, in which config, pages and package.json are found: one above the sources as well as above the bundles in dist. */
export const ROOT = new URL("../", import.meta.url);
