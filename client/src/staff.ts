/** The types of the staff endpoints; a website never needs them. */
export type { components as StaffComponents, paths as StaffPaths } from "./staff-schema.js";
