/** The project's folder, which contains config, dist and package.json. It is the parent of both src and dist. */
export declare const ROOT: import("url").URL;
