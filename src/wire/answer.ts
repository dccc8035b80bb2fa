/** The type of an answer of this shape: what its presenter builds, and nothing else. */
import type { z } from "zod";

export type AnswerOf<Shape extends z.ZodType> = ReadOnly<z.infer<Shape>>;

type ReadOnly<T> = T extends readonly (infer Item)[]
  ? readonly ReadOnly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: ReadOnly<T[Key]> }
    : T;
