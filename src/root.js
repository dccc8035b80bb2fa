/** The project's folder, which contains config, dist and package.json. It is the parent of both src and dist. */
export const ROOT = new URL("../", import.meta.url);
