/** The types of the staff endpoints; websites don't need them. */
export type { components as StaffComponents, paths as StaffPaths } from "./staff-schema.js";
